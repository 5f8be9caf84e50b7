"""The last finished epoch of a fit, in memory and in the file from which the same call resumes."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from .._data._batches import TrainingSet
from .._distributed._connection import exchange, from_first_rank
from .._distributed._world import World
from .._storage._file import is_format, pack, read_file, remove_parts, replace_file, unpack
from .._storage._lock import exclusive
from .._storage._values import Reader, Writer
from .._warnings import warn
from ._choices import Choices
from ._identity import Identity
from ._net import ContrastiveNet
from ._resume import capture, check_state, forgotten, restore

# Raised when a change makes older versions misread the files of this one.
FORMAT = 1
_HEADER = "skcontrast checkpoint"
_FIELDS = {"format", "versions", "identity", "seed", "finished", "state"}
_PACKAGES = ("skcontrast", "torch", "numpy")
_ADVICE = "Pass a different folder as 'checkpoint', or delete the file to start again."
# In `checkpoint`, replaced by a name that depends on parameters and data.
_PLACE = "{fit}"
# What a state that does not belong to a net can raise when it is read or loaded.
_MISFITS = (AttributeError, LookupError, RecursionError, RuntimeError, TypeError, ValueError)


class Checkpoint:
    """The file of one fit; where several processes share the fit, rank 0 reads and writes it.

    Parameters
    ----------
    seed : int
        Of the fit.
    world : World or None
        The processes that share the fit.

    Attributes
    ----------
    path : Path or None
        The file; None on ranks that do not write.
    identity : Identity or None
        What the fit is of; None on ranks that do not write.
    state : dict or None
        What the file holds, until it is restored.
    is_finished : bool
        Whether the fit has been finished already.
    """

    def __init__(self, seed: int, world: World | None):
        self.seed, self.world = seed, world
        self.path: Path | None = None
        self.identity: Identity | None = None
        self.state: dict[str, Any] | None = None
        self.is_finished = False
        self._written: int | None = None

    def take(self, content: dict[str, Any], tensors: dict[str, Any]) -> None:
        """Take over what a file holds."""
        self.seed, self.is_finished = int(content["seed"]), bool(content["finished"])
        self.state = Reader({}, tensors, {}).read(content["state"])

    def restore(self, net: ContrastiveNet, data: TrainingSet) -> dict[str, Any]:
        """Bring a net to the state of the file, and return the state without its history.

        Raises
        ------
        ValueError
            If the net is a different one.
        """
        state, self.state = self.state, None
        assert state is not None
        try:
            check_state(net, state)
            restore(net, data, state)
        except _MISFITS as error:
            raise ValueError(
                _refusal(self.path, f"does not fit this embedder: {error}")
            ) from error
        self._written = state["n_epochs"]
        return {name: value for name, value in state.items() if name != "history"}

    def write(
        self,
        net: ContrastiveNet,
        state: dict[str, Any],
        *,
        is_finished: bool = False,
        is_interrupted: bool = False,
    ) -> None:
        """Write a state of the fit.

        After an interrupt the ranks do not wait for each other, and a file that cannot be written
        does not take away what the embedder has learned.

        Raises
        ------
        OSError
            If the file cannot be written; the old one stays.
        """
        if is_interrupted and self._written == state["n_epochs"]:
            return
        error: Exception | None = None
        if self.path is not None:
            try:
                self._warn_of_forgotten(net)
                replace_file(self.path, self._packed(net, state, is_finished))
            except (OSError, TypeError, ValueError) as problem:
                error = problem
        self._written = state["n_epochs"]
        if is_interrupted:
            if error is not None:
                warn(f"The checkpoint could not be written: {error}")
            return
        if error is not None:
            raise error
        if self.world is not None:
            exchange(None)  # fails where rank 0 could not write

    def _packed(self, net: ContrastiveNet, state: dict[str, Any], is_finished: bool) -> bytes:
        """Return the bytes of the file."""
        assert self.identity is not None
        finished = net.history[: state["n_epochs"]]
        rows = [{k: v for k, v in row.items() if k != "batches"} for row in finished]
        writer = Writer({})
        content = {
            "format": FORMAT,
            "versions": _versions(),
            "identity": vars(self.identity),
            "seed": self.seed,
            "finished": is_finished,
            "state": writer.write({**state, "history": rows}, "state"),
        }
        if writer.own:
            raise TypeError(
                f"'checkpoint' keeps numbers, text and arrays, but the state of this fit has a "
                f"{next(iter(writer.own))}: it may come from the optimizer, from a network's "
                "extra state or from what a callback has written into the history."
            )
        return pack(content, writer.tensors, _HEADER)

    def _warn_of_forgotten(self, net: ContrastiveNet) -> None:
        """Say, once, what of the user's callbacks is not kept."""
        if self._written is None and (names := forgotten(net)):
            warn(
                f"'checkpoint' does not keep {', '.join(names)}: a resumed fit starts them again. "
                "Give the callback state_dict and load_state_dict."
            )


class EpochState:
    """The state at the end of the last finished epoch of a fit, to which an interrupt returns.

    Parameters
    ----------
    checkpoint : Checkpoint or None
        Where it is written as well, and what the fit resumes from.
    """

    def __init__(self, checkpoint: Checkpoint | None = None):
        self.checkpoint = checkpoint
        self.state: dict[str, Any] | None = None

    def begin(self, net: ContrastiveNet, data: TrainingSet) -> int:
        """Resume from the checkpoint if it has a state; return how many epochs are left."""
        self.data = data
        if self.checkpoint is not None and self.checkpoint.state is not None:
            self.state = self.checkpoint.restore(net, data)
        elif len(net.history):
            self.state = capture(net, data)
        return max(0, net.first_epoch_ + net.max_epochs - len(net.history))

    def is_over(self, net: ContrastiveNet, data: TrainingSet) -> bool:
        """Return whether the fit has been finished before; then its end is restored."""
        if self.checkpoint is None or not self.checkpoint.is_finished:
            return False
        self.checkpoint.restore(net, data)
        return True

    def end_epoch(self, net: ContrastiveNet) -> None:
        """Keep the state of an epoch that is finished, callbacks included."""
        self.state = capture(net, self.data)
        if self.checkpoint is not None:
            self.checkpoint.write(net, self.state)

    def go_back(self, net: ContrastiveNet) -> None:
        """Return to the last finished epoch, if there is one, and write it.

        An epoch whose steps are done is finished, even if not all callbacks have heard of it. A
        resumed fit repeats it, so that they do.
        """
        if self.state is None:
            return
        if "train_loss" not in net.history[-1]:
            restore(net, self.data, self.state)
        if self.checkpoint is not None and len(net.history) > net.first_epoch_:
            self.checkpoint.write(net, self.state, is_interrupted=True)

    def finish(self, net: ContrastiveNet) -> None:
        """Write the state at the end of the fit, of which nothing is left to do."""
        if self.checkpoint is not None:
            self.checkpoint.write(net, capture(net, self.data), is_finished=True)


@contextmanager
def opened_checkpoint(
    choices: Choices,
    seed: int,
    past: Any,
    make_identity: Callable[[], Identity],
    world: World | None,
) -> Iterator[Checkpoint | None]:
    """Open the checkpoint of a fit for as long as the fit takes; None if the user wants none.

    Parameters
    ----------
    choices : Choices
        The user's parameters, checked.
    seed : int
        Of this fit, if it is a new one.
    past : Fitted or None
        What it continues from.
    make_identity : callable
        Returns what the fit is of; called on rank 0.
    world : World or None
        The processes that share the fit.

    Raises
    ------
    OSError
        If the folder cannot be made, read or written.
    ValueError
        If the file cannot be read, or is of a different fit.
    """
    if choices.settings["checkpoint"] is None:
        yield None
        return
    checkpoint = Checkpoint(seed, world)
    data = b""
    with ExitStack() as stack:
        if world is None or world.rank == 0:
            checkpoint.identity = make_identity()
            folder = _folder(choices.settings["checkpoint"], checkpoint.identity)
            _check_folder(folder)
            _enter(stack, folder)
            start = 0 if past is None else past.n_epochs
            checkpoint.path = folder / f"from_epoch_{start}.safetensors"
            data = _found(checkpoint.path)
            if data:
                _check(data, checkpoint, choices)
        if world is not None:
            data = from_first_rank(data)
        if data:
            checkpoint.take(*unpack(data, _HEADER))
        yield checkpoint


def _folder(checkpoint: Any, identity: Identity) -> Path:
    """Return the folder; the place holder in its name depends on parameters and data."""
    folder = Path(str(Path(checkpoint)).replace(_PLACE, identity.code))
    problem = "it has a NUL character" if "\0" in str(folder) else ""
    if checkpoint == "":
        problem = "it is empty; the working folder is '.'"
    try:
        folder = folder.expanduser()
    except RuntimeError:
        problem = "no user of that name has a home folder"
    if problem:
        raise ValueError(
            f"The 'checkpoint' parameter of ContrastiveEmbedder must be a folder, got "
            f"{str(checkpoint)!r}: {problem}."
        )
    return folder


def _enter(stack: ExitStack, folder: Path) -> None:
    """Keep other fits out of the folder, or raise an error that says what to do."""
    try:
        stack.enter_context(exclusive(folder))
    except ValueError as error:
        raise ValueError(
            f"The 'checkpoint' parameter of ContrastiveEmbedder names a folder that is in use: "
            f"{error}. Pass a different folder, with '{_PLACE}' in its name where parameters or "
            "data differ, and fit the same candidate once at a time."
        ) from error


def _check_folder(folder: Path) -> None:
    """Raise an error if files cannot be written to a folder, which is made if it is missing."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(
            f"The 'checkpoint' parameter of ContrastiveEmbedder must be a folder, but {folder} is "
            "a file."
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise type(error)(
            error.errno, f"'checkpoint' cannot be written: {error.strerror}", str(folder)
        ) from error


def _found(path: Path) -> bytes:
    """Return the bytes of a file, if it is there, and remove what killed fits have left."""
    remove_parts(path)
    if path.is_symlink():  # in a shared folder, perhaps to a file of the user's
        raise ValueError(_refusal(path, "is not a regular file"))
    if not path.exists():
        return b""
    try:
        data = read_file(path)
    except ValueError as error:
        raise ValueError(_refusal(path, f"cannot be read: {error}")) from error
    if not data:
        raise ValueError(_refusal(path, "is damaged: it is empty"))
    return data


def _refusal(path: Path | None, problem: str) -> str:
    return f"The checkpoint {path} {problem.rstrip('.')}. {_ADVICE}"


def _check(data: bytes, checkpoint: Checkpoint, choices: Choices) -> None:
    """Raise ValueError unless a file is whole, of a known format and of this fit."""
    path, identity = checkpoint.path, checkpoint.identity
    assert identity is not None
    try:
        content, tensors = unpack(data, _HEADER)
    except (SafetensorError, RecursionError, ValueError) as error:
        raise ValueError(_refusal(path, f"is damaged: {error}")) from error
    if not isinstance(content, dict) or not is_format(content.get("format")):
        raise ValueError(_refusal(path, "is not a checkpoint of skcontrast"))
    if content["format"] > FORMAT:
        raise ValueError(
            _refusal(
                path,
                f"has format {content['format']}, of a later version of skcontrast; this version "
                f"({version('skcontrast')}) reads up to {FORMAT}",
            )
        )
    try:
        if content.keys() != _FIELDS:
            raise ValueError("its header lacks or has unknown fields")
        difference = identity.difference(content["identity"])
        given = choices.settings["random_state"]
        if difference is None and given is not None and content["seed"] != checkpoint.seed:
            difference = "its parameter 'random_state' was a different one"
        Reader({}, tensors, {}).read(content["state"])
    except _MISFITS as error:
        raise ValueError(_refusal(path, f"is damaged: {error}")) from error
    if difference is not None:
        raise ValueError(_refusal(path, f"belongs to a different fit: {difference}"))
    if content["versions"] != _versions() and not content["finished"]:
        warn(
            f"The checkpoint {path} was written with {content['versions']}, and the fit is "
            f"resumed with {_versions()}: its last digits may differ from those of a fit that was "
            "never stopped."
        )


def _versions() -> dict[str, str]:
    return {name: version(name) for name in _PACKAGES}
