"""The last finished epoch of a fit, in memory and in the file from which the same call resumes."""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import re
import tempfile
from pathlib import Path
from typing import Any

import torch

from .._storage._file import replace_file, without_batches
from ._net import ContrastiveNet
from ._settings import Settings
from ._training_state import capture, copied, restore

# Raised when a change makes older versions misread the files of this one.
_FORMAT = 1
_ADVICE = "Pass a different folder as 'checkpoint', or delete the file to start again."
# In `checkpoint`, replaced by a name that depends on parameters and data.
_PLACE = "{fit}"
# What torch.load raises for a file that is damaged, or of something else.
_UNREADABLE = (
    AttributeError, EOFError, IndexError, KeyError, RuntimeError, TypeError, ValueError,
    pickle.UnpicklingError,
)  # fmt: skip


class EpochState:
    """The state at the end of the last finished epoch of a fit.

    An interrupt returns to it. With a path it is written to a file, from which the same call
    resumes.

    Parameters
    ----------
    seed : int
        Of the fit.
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
            content = {"format": _FORMAT, "identity": self.identity, "seed": self.seed}
            rows = copied(without_batches(net.history))
            buffer = io.BytesIO()
            torch.save({**content, "state": {**state, "history": rows}}, buffer)
            if self.state is None:
                _check_readable(buffer)
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
        if not given:
            raise ValueError("it is empty; the working folder is '.'")
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


def _check_readable(buffer: io.BytesIO) -> None:
    """Raise TypeError if torch would not load a file, which would be found out too late."""
    buffer.seek(0)
    try:
        torch.load(buffer, weights_only=True)
    except pickle.UnpicklingError as error:
        found = re.search(r"GLOBAL (\S+)", str(error))
        raise TypeError(
            f"'checkpoint' keeps numbers, text and tensors, but the state of this fit has a "
            f"{found[1] if found else 'different object'}. It comes from the optimizer, from a "
            "network's extra state or from a callback."
        ) from error


def _refusal(path: Path | None, problem: str) -> ValueError:
    return ValueError(f"The checkpoint {path} {problem}. {_ADVICE}")
