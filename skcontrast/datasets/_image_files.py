"""From the binary files of image sets to arrays: sizes are checked before memory is taken."""

from __future__ import annotations

import gzip
import math
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray


def read_idx(path: Path, shape: tuple[int, ...], most: int) -> NDArray[np.uint8]:
    """Return the array of a file in the IDX format, which may be compressed by gzip.

    Parameters
    ----------
    path : Path
        The file: two zero bytes, the type (8 is uint8), the number of dimensions, the size of
        each in four bytes, big-endian, and the values.
    shape : tuple of int
        The shape of one item.
    most : int
        The largest number of items.

    Raises
    ------
    OSError
        If the file is damaged or holds something else.
    """
    opened: Any = gzip.open if path.suffix == ".gz" else open
    with _named(path), opened(path, "rb") as file:
        n_dims = 1 + len(shape)
        header = file.read(4 + 4 * n_dims)
        if len(header) < 4 + 4 * n_dims or header[:4] != bytes([0, 0, 8, n_dims]):
            raise ValueError(f"it is not an IDX file of uint8 in {n_dims} dimension(s)")
        claimed = tuple(np.frombuffer(header[4:], dtype=">u4").tolist())
        if claimed[1:] != shape or not 0 < claimed[0] <= most:
            raise ValueError(
                f"it claims to hold an array of shape {claimed}, not at most {most} items of "
                f"shape {shape}"
            )
        return _read_exactly(file, math.prod(claimed)).reshape(claimed)


def read_records(path: Path, n_labels: int, most: int) -> tuple[NDArray, NDArray]:
    """Return labels (n, n_labels) and images (n, 3, 32, 32) of a binary file of CIFAR.

    A record is the labels, a byte each, and 3072 bytes: the red, green and blue plane, by rows.
    """
    length = n_labels + 3072
    with _named(path), path.open("rb") as file:
        n = _count(path, length, most)
        records = _read_exactly(file, n * length).reshape(n, length)
    return records[:, :n_labels], records[:, n_labels:].reshape(n, 3, 32, 32)


def map_columns(path: Path, most: int) -> NDArray[np.uint8]:
    """Return a memory map of the images (n, 3, 96, 96) of a binary file of STL-10, read-only.

    Parameters
    ----------
    path : Path
        An image is three planes of 9216 bytes, each of them column by column.
    most : int
        The largest number of images.
    """
    with _named(path):
        shape = (_count(path, 3 * 96 * 96, most), 3, 96, 96)
        return np.memmap(path, dtype=np.uint8, mode="r", shape=shape).transpose(0, 1, 3, 2)


def read_bytes(path: Path, most: int) -> NDArray[np.uint8]:
    """Return the bytes of a file, at most so many."""
    with _named(path), path.open("rb") as file:
        return _read_exactly(file, _count(path, 1, most))


def check_labels(path: Path, labels: NDArray, n_classes: int, n_images: int) -> NDArray[np.int64]:
    """Return labels as int64, or raise OSError if they do not fit the classes or the images."""
    with _named(path):
        if len(labels) != n_images:
            raise ValueError(f"it has {len(labels)} labels for {n_images} images")
        if labels.min() < 0 or labels.max() >= n_classes:
            raise ValueError(f"it has labels that are none of the {n_classes} classes")
    return labels.astype(np.int64)


@contextmanager
def _named(path: Path) -> Iterator[None]:
    """Turn what a damaged file raises into an OSError that names it."""
    try:
        yield
    except (ValueError, EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise OSError(
            f"{path} cannot be read: {error}. Remove it to download it again."
        ) from error


def _count(path: Path, length: int, most: int) -> int:
    """Return how many items of a length a file has."""
    n, rest = divmod(path.stat().st_size, length)
    if rest or not 0 < n <= most:
        raise ValueError(
            f"it has {n * length + rest} bytes, not {length} for each of 1 to {most} items"
        )
    return n


def _read_exactly(file: IO[bytes], n_bytes: int) -> NDArray[np.uint8]:
    """Return the next bytes, which must be the last ones."""
    array = np.empty(n_bytes, dtype=np.uint8)
    n_read = 0
    while n_read < n_bytes:
        block = file.read(min(2**24, n_bytes - n_read))
        if not block:
            raise ValueError(f"it ends after {n_read} of {n_bytes} bytes")
        array[n_read : n_read + len(block)] = np.frombuffer(block, dtype=np.uint8)
        n_read += len(block)
    # For gzip, this also reads the checksum.
    if file.read(1):
        raise ValueError(f"it has more than the {n_bytes} bytes that it should have")
    return array
