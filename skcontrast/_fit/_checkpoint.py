"""The state of a running fit: copied, put back, and kept in the file from which it resumes.

Random generators are not part of it, since each epoch seeds them by the fit's seed and its number.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import pickle
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import torch
from skorch.callbacks import Callback
from skorch.history import History
from torch import Tensor

from .._data._arrays import LazySamples, fingerprint
from .._data._modalities import Modalities
from .._network._inference import map_leaves
from .._storage._file import replace_file, without_batches
from ._net import ContrastiveNet
from ._samples import TrainingData
from ._settings import Settings, checksum, described

# Raised when a change makes older versions misread the files of this one.
_FORMAT = 1
_ADVICE = "Pass a different folder as 'checkpoint', or delete the file to start again."
# In `checkpoint`, replaced by a name that depends on parameters and data.
_PLACE = "{fit}"
# What is kept of the attributes of a callback, and what else a state may hold.
_PLAIN = (type(None), bool, int, float, str, np.generic, Tensor)
_NESTED = (*_PLAIN, list, tuple, dict)
# What torch.load raises for a file that is damaged, or of something else.
_UNREADABLE = (
    AttributeError, EOFError, IndexError, KeyError, RuntimeError, TypeError, ValueError,
    pickle.UnpicklingError,
)  # fmt: skip


# Parameters that may differ between the calls of one fit.
_MAY_DIFFER = {
    "callbacks", "checkpoint", "device", "max_epochs", "memory_budget", "n_workers", "output",
    "random_state", "verbose", "warm_start",
}  # fmt: skip
# What `fit` calls metadata.
_ARGUMENTS = {"labels": "y", "weights": "sample_weight"}


class EpochState:
    """The state at the end of the last finished epoch of a fit.

    An interrupt returns to it. With a path it is written to a file, from which the same call
    resumes.

    Parameters
    ----------
    seed : int
        The seed of the fit.
    path : Path, default=None
        The file, if the user wants one.
    identity : dict of str to str, default=None
        Describes parameters and data in the file.
    found : dict, default=None
        The state in the file, if there is one.
    """

    def __init__(
        self,
        seed: int,
        path: Path | None = None,
        identity: dict[str, str] | None = None,
        found: dict[str, Any] | None = None,
    ):
        self.seed, self.path, self.identity, self.found = seed, path, identity, found
        self.state: dict[str, Any] | None = None

    def resume(self, net: ContrastiveNet) -> None:
        """Bring a net to the state of the file, if there is one."""
        if self.found is None:
            return
        try:
            restore(net, self.found)
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise _refusal(self.path, "does not fit this embedder") from error
        self.state = self.found

    def keep(self, net: ContrastiveNet) -> None:
        """Keep the state of an epoch that is finished, callbacks included."""
        state = capture(net)
        if self.path is not None:
            map_leaves(_check_plain, state)
            content = {"format": _FORMAT, "identity": self.identity, "seed": self.seed}
            rows = copied(without_batches(net.history))
            buffer = io.BytesIO()
            torch.save({**content, "state": {**state, "history": rows}}, buffer)
            replace_file(self.path, buffer.getvalue())
        self.state = state

    def go_back(self, net: ContrastiveNet) -> None:
        """Return to the last finished epoch, if there is one."""
        if self.state is not None:
            restore(net, self.state)


def opened_state(settings: Settings, identity: dict[str, str] | None, n_epochs: int) -> EpochState:
    """Return the state of a fit, with that of its checkpoint if there is one.

    Parameters
    ----------
    settings : Settings
        The user's parameters, checked.
    identity : dict of str to str or None
        Describes parameters and data; None if the fit has no checkpoint.
    n_epochs : int
        Epochs of the fit that it continues.

    Raises
    ------
    ValueError
        If the folder cannot be written, or the file cannot be read or is of a different fit.
    """
    if identity is None:
        return EpochState(settings.seed)
    path = _folder(settings, identity) / f"from_epoch_{n_epochs}.pt"
    if not path.exists():
        return EpochState(settings.seed, path, identity)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        is_known = content["format"] == _FORMAT
    except _UNREADABLE as error:
        raise _refusal(path, "cannot be read: it is damaged or of something else") from error
    if not is_known:
        raise _refusal(path, "was written by a different version of skcontrast")
    seed, before, n_finished = content["seed"], content["identity"], content["state"]["n_epochs"]
    now = dict(identity)
    if settings.random_state is not None:
        before["random_state"], now["random_state"] = f"seed {seed}", f"seed {settings.seed}"
    for name in sorted(before.keys() | now.keys()):
        old, new = (texts.get(name, "missing") for texts in (before, now))
        if old != new:
            raise _refusal(path, f"is of a different fit: {name!r} was {old} and is {new} now")
    if n_finished - n_epochs > settings.max_epochs:
        problem = f"has {n_finished - n_epochs} epochs, but 'max_epochs' is {settings.max_epochs}"
        raise _refusal(path, problem)
    return EpochState(seed, path, identity, content["state"])


def _folder(settings: Settings, identity: dict[str, str]) -> Path:
    """Return the folder, made and writable; the place holder in its name becomes a code."""
    seed = None if settings.random_state is None else settings.seed
    described = json.dumps([identity, settings.max_epochs, seed], sort_keys=True)
    code = hashlib.sha256(described.encode()).hexdigest()[:16]
    given = str(settings.checkpoint)
    try:
        folder = Path(given.replace(_PLACE, code)).expanduser()
        folder.mkdir(parents=True, exist_ok=True)
        # Before hours of training, not after the first epoch.
        with tempfile.TemporaryFile(dir=folder):
            return folder
    except (OSError, RuntimeError, ValueError) as error:
        raise ValueError(
            f"The 'checkpoint' parameter of {settings.owner} must be a folder that can be written "
            f"to, got {given!r}: {error}."
        ) from error


def _check_plain(value: Any) -> None:
    """Raise TypeError for what torch would not load, which would be found out too late."""
    if not isinstance(value, (*_PLAIN, torch.dtype, torch.device)):
        raise TypeError(
            "'checkpoint' keeps numbers, text and tensors, but the optimizer, the network or a "
            f"callback has a {type(value).__module__}.{type(value).__qualname__}."
        )


def _refusal(path: Path | None, problem: str) -> ValueError:
    return ValueError(f"The checkpoint {path} {problem}. {_ADVICE}")


def identity_of(settings: Settings, data: TrainingData, past: Any) -> dict[str, str]:
    """Return a text for each parameter and argument of a fit, by name.

    Parameters
    ----------
    settings : Settings
        The user's parameters, checked.
    data : TrainingData
        The samples and their metadata.
    past : Fitted or None
        The fit from which it continues.
    """
    given = {**settings.given, "augmentation": data.chain}
    texts = {name: described(value) for name, value in given.items() if name not in _MAY_DIFFER}
    parts = data.X.parts if isinstance(data.X, Modalities) else [data.X]
    # A Dataset may draw its samples: then only their number is compared.
    arrays = [] if any(map(_is_random, parts)) else data.schema.kind._arrays(data.X)
    texts["X"] = f"{len(data.X)} samples with checksum {fingerprint(arrays):08x}"
    for name, tensor in data.metadata.items():
        texts[_ARGUMENTS.get(name, name)] = f"an array with checksum {checksum([tensor]):08x}"
    texts["the start"] = "new" if past is None else described(past.network)
    return texts


def _is_random(X: Any) -> bool:
    """Return whether X is a Dataset that returns other samples when it is read again."""
    rows = slice(4)
    return isinstance(X, LazySamples) and X[rows].tobytes() != X[rows].tobytes()


def capture(net: ContrastiveNet) -> dict[str, Any]:
    """Return a copy, on the CPU, of all that training changes, except the history.

    Parameters
    ----------
    net : ContrastiveNet
        At the end of an epoch. The labels of its samples may have been completed.
    """
    named, spreads = net.module_.named_parameters(), net.spreader.has_some_labels
    # Copies: the net trains on while this waits to be returned to.
    return copied(
        {
            "n_epochs": len(net.history),
            "is_stopped": net.is_stopped_,
            "module": net.module_.state_dict(),
            "frozen": [name for name, parameter in named if not parameter.requires_grad],
            "session": net.criterion_.state_dict(),
            "optimizer": net.optimizer_.state_dict(),
            "auto": dict(net.auto.values),
            "labels": net.sampler_.metadata["labels"] if spreads else None,
            "callbacks": {name: _learned(callback) for name, callback in net.callbacks_},
        }
    )


def restore(net: ContrastiveNet, state: dict[str, Any]) -> None:
    """Bring a net to a state that `capture` has returned; the state is not changed.

    Parameters
    ----------
    net : ContrastiveNet
        The same one, or one that was built in the same way, with the same samples.
    state : dict
        May have the rows of the history as "history"; otherwise later rows are removed.

    Raises
    ------
    KeyError, TypeError, ValueError, RuntimeError
        If the state does not belong to such a net.
    """
    state = copied(state)
    net.module_.load_state_dict(state["module"])
    for name, parameter in net.module_.named_parameters():
        parameter.requires_grad_(name not in state["frozen"])
    net.criterion_.load_state_dict(state["session"])
    net.optimizer_.load_state_dict(state["optimizer"])
    net.is_stopped_, net.auto.values = state["is_stopped"], state["auto"]
    if state["labels"] is not None:
        net.sampler_.metadata["labels"] = state["labels"].to(net.sampler_.device)
    for name, callback in net.callbacks_:
        _load(callback, state["callbacks"].get(name, {}))
    # A file has the history; a state within the process is cut to the epochs it had.
    if "history" in state:
        net.history_ = History({**row, "batches": []} for row in state["history"])
    else:
        del net.history_[state["n_epochs"] :]


def copied(value: Any) -> Any:
    """Return a copy of nested values, tensors on the CPU, numbers of numpy as plain ones."""

    def copy_of(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return leaf.detach().to("cpu", copy=True)
        return leaf.item() if isinstance(leaf, np.generic) else copy.deepcopy(leaf)

    return map_leaves(copy_of, value)


def _learned(callback: Callback) -> dict[str, Any]:
    """Return the state of a callback: its own, or its attributes whose names end in "_"."""
    if hasattr(callback, "state_dict"):
        return callback.state_dict()
    own = {k: v for k, v in vars(callback).items() if k.endswith("_") and not k.startswith("_")}
    # Not of classes, such as the `policy_` of skorch's LRScheduler.
    keepers = {k for k, v in own.items() if hasattr(v, "state_dict") and not isinstance(v, type)}
    own |= {name: own[name].state_dict() for name in keepers}
    return {name: value for name, value in own.items() if isinstance(value, _NESTED)}


def _load(callback: Callback, state: dict[str, Any]) -> None:
    """Give a callback a state that `_learned` has returned."""
    if hasattr(callback, "load_state_dict"):
        callback.load_state_dict(state)
        return
    for name, value in state.items():
        held: Any = getattr(callback, name, None)
        if hasattr(held, "load_state_dict"):
            held.load_state_dict(value)
        else:
            setattr(callback, name, value)


def states_to_resume(net: ContrastiveNet, data: Any) -> dict[str, Any]:
    """Return the states of the optimizer and of the session, if it has any, as `Fitted` has them.

    Parameters
    ----------
    net : ContrastiveNet
        At the end of a fit.
    data : TrainingData
        The samples of the fit.
    """
    optimizer = {
        "kind": type(net.optimizer_).__name__,
        "sizes": _sizes(net.optimizer_),
        "state": net.optimizer_.state_dict()["state"],
    }
    kind, session = type(net.settings.framework).__name__, dict(net.criterion_.state_dict())
    framework = {"kind": kind, "state": session, "samples": data.fingerprint} if session else None
    return {"optimizer_state": optimizer, "framework_state": framework}


def resume(net: ContrastiveNet, past: Any, data: Any) -> None:
    """Bring a new net to the state in which an earlier fit has left its own.

    Parameters
    ----------
    net : ContrastiveNet
        Initialised, with a copy of the earlier network.
    past : Fitted
        The earlier fit. The state of a different optimizer or framework is left out, and that of
        an optimizer of more or fewer parameters, because the framework has changed.
    data : TrainingData
        The samples of this fit.
    """
    net.history_ = History(map(dict, past.history))
    optimizer, state = net.optimizer_, past.optimizer_state
    expected = type(optimizer).__name__, _sizes(optimizer)
    if state is not None and (state["kind"], state["sizes"]) == expected:
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state["state"]})
    state = past.framework_state
    if state is not None and state["kind"] == type(net.settings.framework).__name__:
        net.criterion_.resume(state["state"], state["samples"] == data.fingerprint)


def _sizes(optimizer: torch.optim.Optimizer) -> list[int]:
    """Return the number of parameters in each group."""
    return [len(group["params"]) for group in optimizer.param_groups]
