"""Memory maps, read without holding more of the file than is used."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

# In these modes, the file holds what the map shows; a copy on write ("c") may differ from it.
_SHARED = ("r", "r+", "w+")
# Of a memory map, about so many bytes are held between two releases.
_BYTES_HELD = 2**25
# What is computed from a block takes a few times its memory, in float64.
_NUMBERS_PER_BLOCK = 2**21
# Around each row, Linux takes in as much as a megabyte of the file.
_ROWS_HELD = 64


def map_of(array: Any) -> np.memmap | None:
    """Return the memory map whose numbers an array shows, None if it is in memory."""
    found = None
    for owner in owners(array):
        # The last is the whole map, of which others are parts; a copy of a part has no mode.
        if isinstance(owner, np.memmap) and owner.mode is not None:
            found = owner
    return found


def owners(array: Any) -> Iterator[Any]:
    """Yield an array, and the objects whose memory it uses."""
    yield array
    if isinstance(array, (np.ndarray, memoryview)):
        yield from owners(array.base if isinstance(array, np.ndarray) else array.obj)


def release(array: Any) -> None:
    """Take the pages of a memory map that were read out of the memory that this process holds.

    They stay in the kernel's cache as long as there is room. Without it, a map that has been read
    through counts as resident as a whole, for which schedulers of batch jobs end processes.
    """
    mapped = map_of(array)
    advice = getattr(mmap, "MADV_DONTNEED", None)
    # What was written to a copy on write is in no file.
    if mapped is None or advice is None or mapped.mode not in _SHARED:
        return
    if isinstance(mapped.base, mmap.mmap):
        mapped.base.madvise(advice)


def row_blocks(X: Any, n_rows: int | None = None) -> Iterator[Any]:
    """Yield all rows of X in order, so many at a time; a memory map is not held as a whole.

    By default, rows of an array, as many as hold some million numbers.
    """
    if n_rows is None:
        n_rows = min(4096, max(1, _NUMBERS_PER_BLOCK // max(1, math.prod(X.shape[1:]))))
    n_bytes = 0
    for start in range(0, len(X), n_rows):
        block = X[start : start + n_rows]
        yield block
        n_bytes += getattr(block, "nbytes", 0)
        if n_bytes > _BYTES_HELD:
            release(X)
            n_bytes = 0


def some_rows(X: Any, rows: NDArray[np.int64]) -> Any:
    """Return rows of X; of a memory map, few rows are held at a time."""
    if map_of(X) is None or len(rows) <= _ROWS_HELD:
        samples = X[rows]
        release(X)
        return samples
    parts = range(0, len(rows), _ROWS_HELD)
    return np.concatenate([some_rows(X, rows[k : k + _ROWS_HELD]) for k in parts])
