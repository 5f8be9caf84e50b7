"""The last finished epoch of a fit, in memory and in the file from which the same call resumes."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from .._storage._file import (
    MALFORMED,
    pack,
    problem_in,
    read_file,
    remove_parts,
    replace_file,
    without_batches,
)
from .._storage._values import Reader, Writer
from .._version import versions
from .._warnings import warn
from ._identity import Identity
from ._net import ContrastiveNet
from ._settings import Settings
from ._training_state import attributes_not_saved, capture, check_optimizer, restore

# Raised when a change makes older versions misread the files of this one.
FORMAT = 1
_HEADER = "skcontrast checkpoint"
_FIELDS = {"format", "versions", "identity", "seed", "finished", "state"}
_PACKAGES = ("skcontrast", "torch", "numpy")
_ADVICE = "Pass a different folder as 'checkpoint', or delete the file to start again."
# In `checkpoint`, replaced by a name that depends on parameters and data.
_PLACE = "{fit}"


class EpochState:
    """The state at the end of the last finished epoch of a fit, to which an interrupt returns.

    If the user wants a checkpoint, it is written to a file as well, from which the same call
    resumes.

    Parameters
    ----------
    seed : int
        Of the fit.
    path : Path, default=None
        The file, if the user wants one.
    identity : Identity, default=None
        Identifies the fit in the file.
    found : dict, default=None
        The state in the file, if there is one.
    is_finished : bool, default=False
        Whether the fit in the file is finished.
    """

    def __init__(
        self,
        seed: int = 0,
        path: Path | None = None,
        identity: Identity | None = None,
        found: dict[str, Any] | None = None,
        is_finished: bool = False,
    ):
        self.seed, self.path, self.identity = seed, path, identity
        self.found, self.is_finished = found, is_finished
        self.state: dict[str, Any] | None = None
        self._written: int | None = None

    def begin(self, net: ContrastiveNet) -> int:
        """Resume from the file if it has a state; return how many epochs are left."""
        if self.found is not None:
            self._resume(net, self.found)
        elif len(net.history):
            self.state = capture(net)
        return max(0, net.first_epoch_ + net.max_epochs - len(net.history))

    def is_over(self, net: ContrastiveNet) -> bool:
        """Return whether the fit has been finished before; then its end is restored."""
        if self.is_finished and self.found is not None:
            self._resume(net, self.found)
        return self.is_finished

    def end_epoch(self, net: ContrastiveNet) -> None:
        """Keep the state of an epoch that is finished, callbacks included."""
        self.state = capture(net)
        self._write(net, self.state)

    def go_back(self, net: ContrastiveNet) -> None:
        """Return to the last finished epoch, if there is one, and write it.

        An epoch whose steps are done is finished, even if not all callbacks have heard of it. A
        resumed fit repeats it, so that they do.
        """
        if self.state is None:
            return
        if "train_loss" not in net.history[-1]:
            restore(net, self.state)
        if len(net.history) > net.first_epoch_ and self._written != self.state["n_epochs"]:
            self._write(net, self.state, is_interrupted=True)

    def finish(self, net: ContrastiveNet) -> None:
        """Write the state at the end of the fit, of which nothing is left to do."""
        if self.path is not None:
            self._write(net, capture(net), is_finished=True)

    def _resume(self, net: ContrastiveNet, found: dict[str, Any]) -> None:
        """Bring a net to the state of the file, or raise ValueError if it is a different net."""
        self.found = None
        try:
            check_optimizer(net, found)
            restore(net, found)
        except MALFORMED as error:
            raise _refusal(self.path, "does not fit this embedder", error) from error
        self._written = found["n_epochs"]
        self.state = {name: value for name, value in found.items() if name != "history"}

    def _write(
        self,
        net: ContrastiveNet,
        state: dict[str, Any],
        *,
        is_finished: bool = False,
        is_interrupted: bool = False,
    ) -> None:
        """Write a state of the fit, or raise OSError; then the old file stays.

        After an interrupt, a file that cannot be written does not take away what the embedder has
        learned.
        """
        if self.path is None:
            return
        if self._written is None and (names := attributes_not_saved(net)):
            warn(
                f"'checkpoint' does not keep {', '.join(names)}: a resumed fit starts them again, "
                "and ends elsewhere. A callback keeps what state_dict and load_state_dict say."
            )
        try:
            replace_file(self.path, self._packed(net, state, is_finished))
        # After Ctrl+C the fit ends anyhow, and its result is worth more than the file.
        except (OSError, TypeError, ValueError) as error:
            if not is_interrupted:
                raise
            warn(f"The checkpoint could not be written: {error}")
        self._written = state["n_epochs"]

    def _packed(self, net: ContrastiveNet, state: dict[str, Any], is_finished: bool) -> bytes:
        """Return the bytes of the file."""
        writer = Writer({})
        rows = without_batches(net.history[: state["n_epochs"]])
        content = {
            "format": FORMAT,
            "versions": versions(_PACKAGES),
            "identity": vars(self.identity),
            "seed": self.seed,
            "finished": is_finished,
            "state": writer.write({**state, "history": rows}, "state"),
        }
        if writer.custom:
            raise TypeError(
                f"'checkpoint' keeps numbers, text and arrays, but the state of this fit has a "
                f"{next(iter(writer.custom))}: it may come from the optimizer, from a network's "
                "extra state or from what a callback has written into the history."
            )
        return pack(content, writer.tensors, _HEADER)


@contextmanager
def opened_state(
    settings: Settings, identity: Identity | None, n_epochs: int
) -> Iterator[EpochState]:
    """Open the state of a fit, and its checkpoint if there is one, for as long as the fit takes.

    Parameters
    ----------
    settings : Settings
        The user's parameters, checked.
    identity : Identity or None
        Identifies the fit in its checkpoint; None if it has none.
    n_epochs : int
        Epochs of the fit that it continues.

    Raises
    ------
    OSError
        If the folder cannot be made, read or written.
    ValueError
        If the file cannot be read, or is of a different fit.
    """
    if identity is None:
        yield EpochState(settings.seed)
        return
    with exclusive(folder := _folder(settings.checkpoint, identity)):
        path = folder / f"from_epoch_{n_epochs}.safetensors"
        seed, is_finished, found = _read(path, identity, settings) or (settings.seed, False, None)
        yield EpochState(seed, path, identity, found, is_finished)


def _folder(checkpoint: Any, identity: Identity) -> Path:
    """Return the folder; the place holder in its name depends on parameters and data."""
    folder = Path(str(Path(checkpoint)).replace(_PLACE, identity.code))
    problem = "it is empty; the working folder is '.'" if checkpoint == "" else ""
    problem = "it has a NUL character" if "\0" in str(folder) else problem
    try:
        folder = folder.expanduser()
        problem = "it is a file" if folder.is_file() else problem
    except RuntimeError:
        problem = "no user of that name has a home folder"
    if problem:
        raise ValueError(
            f"The 'checkpoint' parameter of ContrastiveEmbedder must be a folder, got "
            f"{str(checkpoint)!r}: {problem}."
        )
    return folder


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Make a folder if it is missing, try to write to it, and keep other fits out of it.

    If the process is killed, the system opens the folder again.

    Raises
    ------
    OSError
        If the folder cannot be made or written to, or a link has the name of the lock.
    ValueError
        If another thread or process has it.
    """
    try:
        # A file that vanishes tells, before hours of training, whether one can be written.
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
        lock = FileLock(folder / ".lock", blocking=False).acquire()
    except Timeout as error:
        raise ValueError(
            f"The 'checkpoint' parameter of ContrastiveEmbedder names a folder that is in use: "
            f"another fit is using {folder.resolve()}. Pass a different folder, with '{_PLACE}' "
            "in its name where parameters or data differ, and fit the same candidate once at a "
            "time."
        ) from error
    except OSError as error:
        problem = f"'checkpoint' cannot be written: {error.strerror}"
        raise type(error)(error.errno, problem, error.filename or str(folder)) from error
    with lock:
        yield


def _refusal(path: Path | None, problem: str, error: Exception | None = None) -> ValueError:
    problem += "" if error is None else f": {problem_in(error)}"
    return ValueError(f"The checkpoint {path} {problem}. {_ADVICE}")


def _read(
    path: Path, identity: Identity, settings: Settings
) -> tuple[int, bool, dict[str, Any]] | None:
    """Return the seed of a file, whether its fit is finished, and its state; None without a file.

    Raises
    ------
    ValueError
        Unless the file is whole, of a known format and of this fit.
    """
    remove_parts(path)
    if not os.path.lexists(path):
        return None
    try:
        if path.is_symlink():  # in a shared folder, perhaps to a file of the user's
            raise ValueError("it is not a regular file")
        content, tensors = read_file(path, _HEADER)
        difference = identity.difference(content["identity"])
        is_given = settings.random_state is not None
        if difference is None and is_given and content["seed"] != settings.seed:
            difference = "its parameter 'random_state' was a different one"
        state = Reader({}, tensors, {}).read(content["state"])
        found = int(content["seed"]), bool(content["finished"]), state
    except MALFORMED as error:
        raise _refusal(path, "cannot be read", error) from error
    if difference is not None:
        raise _refusal(path, f"belongs to a different fit: {difference}")
    now = versions(_PACKAGES)
    if content["versions"] != now and not content["finished"]:
        warn(
            f"The checkpoint {path} was written with {content['versions']}, and the fit is "
            f"resumed with {now}: its last digits may differ from those of a fit that was never "
            "stopped."
        )
    return found
