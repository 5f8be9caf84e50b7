"""Checkpoints: the state of a running fit is copied, restored and written to a file.

The state of random generators is not needed, because each epoch seeds them.
"""

import copy
import hashlib
import io
import json
import pickle
import re
import tempfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from inspect import isclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from skorch.callbacks import Callback
from skorch.history import History
from torch import Tensor, nn

from .._data._arrays import LazySamples, fingerprint
from .._data._modalities import Modalities
from .._inference import map_leaves
from .._model._model import Model
from .._model._samples import TrainingData
from .._model._settings import Settings
from .._safetensors import MALFORMED, remove_parts, replace_file, without_batches
from ._net import ContrastiveNet

# Increased when other versions would misread the files of this one.
_FORMAT = 1
_ADVICE = "Pass a different folder as 'checkpoint', or delete the file to start again."
# Placeholder in `checkpoint`; a digest of parameters and data replaces it.
_PLACEHOLDER = "{fit}"
# Types of a callback's attributes that a file can store, and containers of them.
_STORABLE = (type(None), bool, int, float, str, np.generic, Tensor)
_NESTED = (*_STORABLE, list, tuple, dict)
# Errors of torch.load for a file that is damaged or of another format.
_UNREADABLE = (*MALFORMED, EOFError, pickle.UnpicklingError)


# Parameters that may differ between the calls of one fit.
_MAY_DIFFER = {
    "callbacks", "checkpoint", "device", "max_epochs", "memory_budget", "n_workers", "output",
    "random_state", "verbose", "warm_start",
}  # fmt: skip
# Names of metadata as arguments of `fit`.
_ARGUMENTS = {"labels": "y", "weights": "sample_weight"}


@dataclass(eq=False)
class EpochState:
    """The state at the end of the last finished epoch of a fit.

    After an interrupt, the fit returns to it. With a path, it is written to a file, from which the
    same call resumes.

    Parameters
    ----------
    seed : int
        The seed of the fit.
    path : Path, default=None
        The file of the checkpoint, if there is one.
    identity : dict of str to str, default=None
        Description of parameters and data, stored in the file.
    loaded : dict, default=None
        The state that was read from the file, if there is one.
    """

    seed: int
    path: Path | None = None
    identity: dict[str, str] | None = None
    loaded: dict[str, Any] | None = None
    state: dict[str, Any] | None = None

    def resume(self, net: ContrastiveNet) -> None:
        """Restore the state of the file, if there is one, in a net."""
        if self.loaded is None:
            return
        try:
            restore(net, self.loaded)
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise _checkpoint_error(self.path, "does not fit this embedder") from error
        self.state = self.loaded

    def keep(self, net: ContrastiveNet) -> None:
        """Keep the state of a finished epoch, including the callbacks."""
        state = capture(net)
        if self.path is not None:
            map_leaves(_check_storable, state)
            content = {"format": _FORMAT, "identity": self.identity, "seed": self.seed}
            rows = copy_to_cpu(without_batches(net.history))
            buffer = io.BytesIO()
            torch.save({**content, "state": {**state, "history": rows}}, buffer)
            replace_file(self.path, buffer.getvalue())
        self.state = state

    def go_back(self, net: ContrastiveNet) -> None:
        """Return to the last finished epoch, if there is one."""
        if self.state is not None:
            restore(net, self.state)


def open_state(settings: Settings, identity: dict[str, str] | None, n_epochs: int) -> EpochState:
    """Return the epoch state of a fit, read from its checkpoint if there is one.

    Parameters
    ----------
    settings : Settings
        The user's parameters, validated.
    identity : dict of str to str or None
        Description of parameters and data; None if the fit has no checkpoint.
    n_epochs : int
        Epochs of the earlier fit that this one continues.

    Raises
    ------
    ValueError
        If the file cannot be read or belongs to another fit.
    OSError
        If the folder is not writable.
    """
    if identity is None:
        return EpochState(settings.seed)
    path = _folder(settings, identity) / f"from_epoch_{n_epochs}.pt"
    remove_parts(path)
    if not path.exists():
        return EpochState(settings.seed, path, identity)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
        if content["format"] != _FORMAT:
            raise ValueError(f"its format is {content['format']}")
    except _UNREADABLE as error:
        problem = "cannot be read: it is damaged, or of another version of skcontrast"
        raise _checkpoint_error(path, problem) from error
    seed, before, n_finished = content["seed"], content["identity"], content["state"]["n_epochs"]
    now = dict(identity)
    if settings.random_state is not None:
        before["random_state"], now["random_state"] = f"seed {seed}", f"seed {settings.seed}"
    for name in sorted(before.keys() | now.keys()):
        old, new = (texts.get(name, "missing") for texts in (before, now))
        if old != new:
            problem = f"belongs to another fit: {name!r} was {old} and is now {new}"
            raise _checkpoint_error(path, problem)
    if n_finished - n_epochs > settings.max_epochs:
        problem = f"has {n_finished - n_epochs} epochs, but 'max_epochs' is {settings.max_epochs}"
        raise _checkpoint_error(path, problem)
    return EpochState(seed, path, identity, content["state"])


def _folder(settings: Settings, identity: dict[str, str]) -> Path:
    """Create the folder and return it; a digest replaces the placeholder in its name."""
    seed = None if settings.random_state is None else settings.seed
    text = json.dumps([identity, settings.max_epochs, seed], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    folder = Path(str(settings.checkpoint).replace(_PLACEHOLDER, digest)).expanduser()
    folder.mkdir(parents=True, exist_ok=True)
    # Fails before the training, not after its first epoch.
    with tempfile.TemporaryFile(dir=folder):
        return folder


def _check_storable(value: Any) -> None:
    """Raise TypeError for a value that torch could write but not load."""
    if not isinstance(value, (*_STORABLE, torch.dtype, torch.device)):
        raise TypeError(
            "'checkpoint' keeps numbers, text and tensors, but the optimizer, the network or a "
            f"callback has a {type(value).__module__}.{type(value).__qualname__}."
        )


def _checkpoint_error(path: Path | None, problem: str) -> ValueError:
    return ValueError(f"The checkpoint {path} {problem}. {_ADVICE}")


def identity_of(settings: Settings, data: TrainingData, past: Model | None) -> dict[str, str]:
    """Return a text for each parameter and argument of a fit, by name.

    Parameters
    ----------
    settings : Settings
        The user's parameters, validated.
    data : TrainingData
        The samples and their metadata.
    past : Model or None
        The earlier fit that this one continues.
    """
    parameters = {**settings.parameters, "augmentation": data.chain}
    texts = {name: description_of(parameters[name]) for name in parameters.keys() - _MAY_DIFFER}
    modalities = data.X.modalities if isinstance(data.X, Modalities) else [data.X]
    # If a Dataset returns random samples, only their number is compared.
    arrays = [] if any(map(_is_random, modalities)) else data.schema.kind.arrays(data.X)
    texts["X"] = f"{len(data.X)} samples with checksum {fingerprint(arrays):08x}"
    for name, tensor in data.metadata.items():
        texts[_ARGUMENTS.get(name, name)] = f"an array with checksum {checksum([tensor]):08x}"
    texts["the start"] = "new" if past is None else description_of(past.network)
    return texts


def _is_random(X: Any) -> bool:
    """Return whether X is a Dataset that returns other samples when it is read again."""
    return isinstance(X, LazySamples) and X[:4].tobytes() != X[:4].tobytes()


def capture(net: ContrastiveNet) -> dict[str, Any]:
    """Return a copy, on the CPU, of the state that training changes, except the history.

    Parameters
    ----------
    net : ContrastiveNet
        A net at the end of an epoch.
    """
    named, spreads = net.module_.named_parameters(), net.spreader.has_some_labels
    # The net goes on training, so the state is copied.
    state = {
        "n_epochs": len(net.history),
        "n_threads": net.model.n_threads,
        "is_stopped": net.is_stopped_,
        "module": net.module_.state_dict(),
        "frozen": [name for name, parameter in named if not parameter.requires_grad],
        "session": net.criterion_.state_dict(),
        "optimizer": net.optimizer_.state_dict(),
        "auto": dict(net.auto.values),
        "labels": net.sampler_.metadata["labels"] if spreads else None,
        "callbacks": {name: _callback_state(callback) for name, callback in net.callbacks_},
    }
    return copy_to_cpu(state)


def restore(net: ContrastiveNet, state: dict[str, Any]) -> None:
    """Restore a state of `capture` in a net; the state is not changed.

    Parameters
    ----------
    net : ContrastiveNet
        The same net, or one that was built in the same way with the same samples.
    state : dict
        The state. If it has no "history", later rows are removed from that of the net.

    Raises
    ------
    KeyError, TypeError, ValueError, RuntimeError
        If the state does not fit the net.
    """
    state = copy_to_cpu(state)
    net.module_.load_state_dict(state["module"])
    for name, parameter in net.module_.named_parameters():
        parameter.requires_grad_(name not in state["frozen"])
    net.criterion_.load_state_dict(state["session"])
    net.optimizer_.load_state_dict(state["optimizer"])
    net.is_stopped_, net.auto.values = state["is_stopped"], state["auto"]
    if state["labels"] is not None:
        net.sampler_.metadata["labels"] = state["labels"].to(net.sampler_.device)
    for name, callback in net.callbacks_:
        _load_callback_state(callback, state["callbacks"].get(name, {}))
    # Files contain the history; for a state in memory, later epochs are removed.
    if "history" in state:
        net.history_ = History({**row, "batches": []} for row in state["history"])
    else:
        del net.history_[state["n_epochs"] :]


def copy_to_cpu(value: Any) -> Any:
    """Return a copy of nested values, with tensors on the CPU and numpy scalars as Python's."""

    def copy_of(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return leaf.detach().to("cpu", copy=True)
        return leaf.item() if isinstance(leaf, np.generic) else copy.deepcopy(leaf)

    return map_leaves(copy_of, value)


def _callback_state(callback: Callback) -> dict[str, Any]:
    """Return the ``state_dict`` of a callback, or its attributes whose names end in "_"."""
    if hasattr(callback, "state_dict"):
        return callback.state_dict()
    fitted = {k: v for k, v in vars(callback).items() if k.endswith("_") and k[0] != "_"}
    # Classes are left out, such as the `policy_` of skorch's LRScheduler.
    modules = {k: v for k, v in fitted.items() if hasattr(v, "state_dict") and not isclass(v)}
    fitted |= {k: module.state_dict() for k, module in modules.items()}
    return {k: v for k, v in fitted.items() if isinstance(v, _NESTED)}


def _load_callback_state(callback: Callback, state: dict[str, Any]) -> None:
    """Load a state of `_callback_state` into a callback."""
    if hasattr(callback, "load_state_dict"):
        callback.load_state_dict(state)
        return
    for name, value in state.items():
        attribute: Any = getattr(callback, name, None)
        if hasattr(attribute, "load_state_dict"):
            attribute.load_state_dict(value)
        else:
            setattr(callback, name, value)


def states_to_resume(net: ContrastiveNet, data: TrainingData) -> dict[str, Any]:
    """Return the states of the optimizer and of the framework's session.

    Parameters
    ----------
    net : ContrastiveNet
        A net at the end of a fit.
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
    return {"optimizer": optimizer, "framework": framework}


def resume(net: ContrastiveNet, past: Model, states: dict[str, Any], data: TrainingData) -> None:
    """Load the states of an earlier fit into a new net.

    Parameters
    ----------
    net : ContrastiveNet
        An initialised net with a copy of the earlier network.
    past : Model
        The model of the earlier fit.
    states : dict
        Its `states_to_resume`. The state of its optimizer is ignored if the optimizer or the
        number of parameters in a group has changed, that of its framework if the framework has.
    data : TrainingData
        The samples of this fit.
    """
    net.history_ = History(map(dict, past.history))
    optimizer, state = net.optimizer_, states.get("optimizer")
    expected = type(optimizer).__name__, _sizes(optimizer)
    if state is not None and (state["kind"], state["sizes"]) == expected:
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state["state"]})
    state = states.get("framework")
    if state is not None and state["kind"] == type(net.settings.framework).__name__:
        net.criterion_.resume(state["state"], state["samples"] == data.fingerprint)


def _sizes(optimizer: torch.optim.Optimizer) -> list[int]:
    """Return the number of parameters in each parameter group."""
    return [len(group["params"]) for group in optimizer.param_groups]


def description_of(value: Any) -> str:
    """Return a description of an object that is the same in every process.

    It differs for other parameters; for networks, also for other weights. Functions, and objects
    without parameters, are described by their names.
    """
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(description_of, value))}]"
    text = re.sub(" at 0x[0-9a-fA-F]+", "", repr(value))
    if not isinstance(value, nn.Module):
        return text
    structure, weights = zlib.crc32(text.encode()), checksum(value.state_dict().values())
    return f"{type(value).__name__} with checksum {structure:08x} and weights {weights:08x}"


def without_weights(text: str) -> str:
    """Return a text of `description_of` without the checksum of weights."""
    return re.sub(" and weights [0-9a-f]{8}", "", text)


def checksum(values: Iterable[Any]) -> int:
    """Return a checksum of arrays and tensors; other values are ignored."""
    tensors = [torch.as_tensor(v) for v in values if isinstance(v, (np.ndarray, Tensor))]
    known = [tensor for tensor in tensors if not nn.parameter.is_lazy(tensor)]
    return fingerprint(tensor.detach().cpu().double().numpy() for tensor in known)
