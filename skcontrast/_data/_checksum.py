"""Checksums of arrays, by which fits, also in other processes, compare their data."""

from __future__ import annotations

import hashlib
import mmap
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from ._arrays import owners, row_blocks

# Of what is not in memory, so many rows are compared.
_ROWS_COMPARED = 256
_DIGITS = 16


def checksum(arrays: Iterable[Any], *, contents: bool = True) -> str:
    """Return a text that differs, almost surely, for other arrays.

    All bytes of arrays in memory count, which takes about a second per gigabyte, and 256 rows of
    memory maps and Datasets.

    Parameters
    ----------
    arrays : iterable of array-like
        The arrays that are compared.
    contents : bool, default=True
        Whether more than the shape and the dtype of each array counts.
    """
    found = hashlib.sha256()
    for array in arrays:
        found.update(f"{array.shape} {array.dtype}".encode())
        for part in _parts(array) if contents else ():
            found.update(np.ascontiguousarray(part).tobytes())
    return found.hexdigest()[:_DIGITS]


def fingerprint(arrays: Iterable[Any]) -> int:
    """Return a number that tells arrays, by their shapes and a few rows, from different ones.

    Parameters
    ----------
    arrays : iterable of array-like
        Shape, dtype and up to 256 rows of each count.
    """
    found = zlib.crc32(b"None")
    for array in arrays:
        found = zlib.crc32(f"{array.shape} {array.dtype}".encode(), found)
        found = zlib.crc32(np.ascontiguousarray(_sampled_rows(array)).data, found)
    return found


def is_in_memory(array: Any) -> bool:
    """Return whether an array is an ndarray whose data is not in a file."""
    files = (np.memmap, mmap.mmap)
    return isinstance(array, np.ndarray) and not any(isinstance(o, files) for o in owners(array))


def _parts(array: Any) -> Iterator[np.ndarray]:
    """Yield the rows of an array in memory, or a few rows of one that is not."""
    if not array.ndim:
        yield array
    elif not is_in_memory(array):
        yield _sampled_rows(array)
    else:
        yield from row_blocks(array)  # of which a copy takes little memory


def _sampled_rows(array: Any) -> np.ndarray:
    return array[:: max(1, -(-len(array) // _ROWS_COMPARED))]
