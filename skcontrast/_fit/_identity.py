"""What a fit is of: its parameters and data, to tell whether a checkpoint belongs to it."""

from __future__ import annotations

import hashlib
import json
import mmap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from .._data._sources import LazySamples
from .._network._network import Network
from ..augmentation import Augmentation
from ..kinds._base import Kind
from ._choices import Choices
from ._resume import describe

# Parameters that do not change what is fitted, and the seed, which is compared as a number.
_INDIFFERENT = {
    "callbacks", "checkpoint", "checkpoint_every", "device", "memory_budget", "n_workers",
    "output", "random_state", "verbose", "warm_start",
}  # fmt: skip
_LONGEST = 80
_CHUNK_BYTES = 2**24
# Of what is not in memory, so many rows are compared.
_ROWS_COMPARED = 256
_ROWS_READ_TWICE = 4


@dataclass(frozen=True)
class Identity:
    """What distinguishes a fit from others.

    Attributes
    ----------
    parameters : dict of str to str
        Descriptions of the parameters, at any depth.
    data : dict of str to str
        Checksums of X and of what is known about the samples, by the name in `fit`.
    start : str
        Checksum of the network from which the fit continues, empty for a new one.
    """

    parameters: dict[str, str]
    data: dict[str, str]
    start: str

    @property
    def code(self) -> str:
        """A short name for fits with these parameters and data."""
        text = json.dumps([self.parameters, self.data], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def difference(self, before: dict[str, Any]) -> str | None:
        """Return how the identity of an earlier fit differs, or None if it does not.

        Parameters
        ----------
        before : dict
            The attributes of the earlier identity.
        """
        names = sorted(self.parameters.keys() | before["parameters"].keys())
        for name in names:
            old, new = (found.get(name) for found in (before["parameters"], self.parameters))
            if old != new:
                old, new = ("not there" if text is None else text for text in (old, new))
                return f"its parameter {name!r} was {old} and is {new} now"
        for name in sorted(self.data.keys() | before["data"].keys()):
            if self.data.get(name) != before["data"].get(name):
                return f"it was passed a different {name}"
        if self.start != before["start"]:
            return "it continued from a different embedder"
        return None


def identity_of(
    choices: Choices,
    chain: list[Augmentation] | None,
    kind: Kind,
    X: Any,
    known: dict[str, Tensor],
    start: Network | None,
) -> Identity:
    """Return what a fit is of.

    Parameters
    ----------
    choices : Choices
        The user's parameters, checked.
    chain : list of Augmentation or None
        What draws the views, if the user has chosen it.
    kind : Kind
        The kind of X.
    X : array-like of length n_samples
        As its kind returns it.
    known : dict of str to Tensor
        What is known about the samples.
    start : Network or None
        The network from which the fit continues.
    """
    settings = {**choices.settings, "augmentation": chain}
    parameters = {
        path: text
        for name, value in settings.items()
        if name not in _INDIFFERENT
        for path, text in _flat(name, describe(value))
    }
    names = {"labels": "y", "weights": "sample_weight"}
    data = {"X": checksum(X if isinstance(X, LazySamples) else None, kind.arrays(X))}
    data |= {names.get(name, name): checksum(None, [t.numpy()]) for name, t in known.items()}
    tensors = [] if start is None else [t.numpy(force=True) for t in _numbers(start)]
    return Identity(parameters, data, checksum(None, tensors) if tensors else "")


def _numbers(network: Network) -> Iterator[Tensor]:
    yield from network.parameters()
    yield from network.buffers()


def _flat(path: str, described: Any) -> Iterator[tuple[str, str]]:
    """Yield what `describe` returns as pairs of a parameter's name, at any depth, and a text."""
    if isinstance(described, tuple) and len(described) == 2 and isinstance(described[1], dict):
        yield path, described[0]
        for name, item in described[1].items():
            yield from _flat(f"{path}__{name}", item)
    elif isinstance(described, dict):
        yield path, f"a dictionary of {len(described)}"
        for name, item in described.items():
            yield from _flat(f"{path}[{name!r}]", item)
    elif isinstance(described, list) and any(not _is_number(item) for item in described):
        yield path, f"a list of {len(described)}"
        for k, item in enumerate(described):
            yield from _flat(f"{path}[{k}]", item)
    else:
        text = str(described)
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        yield path, text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({digest})"


def _is_number(value: Any) -> bool:
    return isinstance(value, (bool, int, float))


def checksum(lazy: LazySamples | None, arrays: Sequence[Any]) -> str:
    """Return a text that differs, almost surely, for other arrays.

    All bytes of arrays in memory count, and 256 rows of memory maps and Datasets. Of a Dataset
    whose samples are different each time they are read, only the shape counts.

    Parameters
    ----------
    lazy : LazySamples or None
        The Dataset among the arrays.
    arrays : list of array-like
        What is compared.
    """
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.shape} {array.dtype}".encode())
        if lazy is None or array is not lazy or not _is_random(lazy):
            for part in _parts(array):
                found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()


def _is_random(samples: LazySamples) -> bool:
    """Return whether a Dataset returns other samples when it is read again."""
    rows = samples[:_ROWS_READ_TWICE], samples[:_ROWS_READ_TWICE]
    return rows[0].tobytes() != rows[1].tobytes()


def _parts(array: Any) -> Iterable[np.ndarray]:
    """Yield the rows of an array in memory, or some rows of one that is not."""
    if not array.ndim or not len(array):
        return
    if _is_on_disk(array):
        yield array[:: -(-len(array) // _ROWS_COMPARED)]
        return
    step = max(1, _CHUNK_BYTES // max(1, array[:1].nbytes))
    yield from (array[k : k + step] for k in range(0, len(array), step))


def _is_on_disk(array: Any) -> bool:
    """Return whether an array is a Dataset, or reads from a memory map."""
    if not isinstance(array, np.ndarray):
        return True
    owner: Any = array
    while isinstance(owner, np.ndarray) and not isinstance(owner, np.memmap):
        owner = owner.base
    return isinstance(owner, (np.memmap, mmap.mmap))
