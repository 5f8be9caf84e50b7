"""Sources of training samples: memory, or a memory map or Dataset that is read in batches."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis
from torch import Tensor

from .._checks import naming
from .._runtime._memory import free_bytes
from ._memory_maps import map_of, some_rows
from ._parts import Parts
from ._statistics import moments, native, refuse_nonfinite

# Share of the free memory that training samples may take where no budget is given.
_SHARE = 0.5
_ENOUGH_SAMPLES = 10_000
# Of vectors, samples with at most so many numbers together.
_ENOUGH_NUMBERS = 2**24


class LazySamples:
    """A torch Dataset in the form of an array: it has a shape, and its rows are ndarrays.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset
        Items are samples, or tuples that start with one: arrays or tensors of one shape.
    """

    def __init__(self, dataset: Any):
        if not (hasattr(dataset, "__len__") and hasattr(dataset, "__getitem__")):
            raise TypeError(
                "X must be a Dataset with __len__ and __getitem__, since an iterable Dataset "
                f"cannot be shuffled: got {type(dataset).__name__}."
            )
        if not len(dataset):
            raise ValueError("Found a Dataset with 0 samples in X: at least 1 is required.")
        self.dataset = dataset
        first = self._item(0)
        self.shape, self.dtype = (len(dataset), *first.shape), first.dtype
        self.ndim = len(self.shape)

    def _item(self, row: int) -> np.ndarray:
        item = self.dataset[int(row)]
        if isinstance(item, (tuple, list)):
            if not item:
                raise ValueError(f"X must be a Dataset of samples, but sample {row} is empty.")
            item = item[0]
        if isinstance(item, Mapping):
            raise TypeError(
                "The items of a Dataset must be samples, or tuples that start with one, got a "
                f"{type(item).__name__} with the keys {sorted(map(str, item))}."
            )
        with naming("X", f"a Dataset of arrays of numbers, but sample {row} is not"):
            item = np.asarray(item)
            if item.dtype.kind == "c":
                raise ValueError("X must hold real numbers, got a Dataset of complex ones.")
            if item.dtype.kind not in "biuf":
                raise TypeError(f"its dtype is {item.dtype}")
        return native(item if item.itemsize <= 8 else item.astype(np.float64))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray:
        rows = np.atleast_1d(np.arange(len(self))[rows])
        items = [self._item(row) for row in rows]
        for row, item in zip(rows, items, strict=True):
            if item.shape != self.shape[1:]:
                raise ValueError(
                    f"The samples in X must have one shape: sample {row} has {item.shape}, "
                    f"sample 0 has {self.shape[1:]}. If they are series, pass kind='series'."
                )
        batch = np.stack(items)
        refuse_nonfinite(batch)
        return batch


class SparseSamples(LazySamples):
    """A sparse matrix whose rows are ndarrays, so that no more than a batch is dense at a time.

    Parameters
    ----------
    matrix : sparse matrix or array in CSR format, of shape (n_samples, n_features)
        Finite numbers.
    """

    def __init__(self, matrix: Any):
        self.matrix = matrix
        self.shape, self.dtype, self.ndim = matrix.shape, matrix.dtype, 2

    def __getitem__(self, rows: Any) -> NDArray:
        return self.matrix[np.atleast_1d(np.arange(len(self))[rows])].toarray()

    def mean_and_std(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return mean and standard deviation of each feature; 1 for constant ones."""
        with np.errstate(over="ignore", invalid="ignore"):
            mean, variance = mean_variance_axis(self.matrix, axis=0)
        mean, std = mean.astype(np.float64), np.sqrt(np.maximum(variance, 0.0), dtype=np.float64)
        limits = np.finfo(variance.dtype)
        low, high = min_max_axis(self.matrix, axis=0)
        # Features whose squares overflow or vanish.
        far = ~((std > 1e3 * limits.tiny**0.5) & (std < 1e-3 * limits.max**0.5)) & (low < high)
        columns = self.matrix[:, far].tocsc()
        for i, j in enumerate(np.flatnonzero(far)):
            mean[j], std[j] = np.ravel(moments(columns[:, [i]].toarray()))
        constant = std <= 10 * np.finfo(self.dtype).eps * np.abs(mean)
        return mean, np.where(constant, 1.0, std)


class InMemory:
    """Samples in one tensor, or graphs in one GraphBatch, on the device of the training.

    Parameters
    ----------
    x : Tensor of shape (n_samples, ...), or a batch of a different class
        All samples.
    """

    def __init__(self, x: Any):
        self.x = x
        self.device = x.device

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: Tensor) -> Any:
        """Return the samples of the given rows."""
        return self.x[rows.to(self.device)]

    def batches(self, parts: Sequence[Tensor]) -> Generator[Any, None, None]:
        """Yield the samples of each part, a tensor of rows."""
        yield from map(self.take, parts)


@dataclass(eq=False)
class Streamed:
    """Samples that are read, converted and moved to the device batch by batch.

    Parameters
    ----------
    X : ndarray, memmap or LazySamples of shape (n_samples, ...)
        The samples.
    to_tensor : callable
        ``to_tensor(array, device)``.
    device : torch.device
        Where they are needed.
    n_workers : int
        Threads that read ahead; 0 reads in that of the caller.
    """

    X: Any
    to_tensor: Callable
    device: torch.device
    n_workers: int

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: Tensor) -> Any:
        """Return the samples of the given rows, read in this thread."""
        return self._loaded(rows).to(self.device)

    def batches(self, parts: Sequence[Tensor]) -> Generator[Any, None, None]:
        """Yield the samples of each part, a tensor of rows."""
        with closing(read_ahead(self._loaded, parts, self.n_workers)) as samples:
            for x in samples:
                yield x.to(self.device, non_blocking=self.device.type == "cuda")

    def _loaded(self, rows: Tensor) -> Any:
        """Return the samples of the given rows on the CPU, as they are moved fastest."""
        x = self.to_tensor(some_rows(self.X, rows.cpu().numpy()), torch.device("cpu"))
        is_pinned = self.device.type == "cuda" and hasattr(x, "pin_memory")
        return x.pin_memory() if is_pinned else x


def read_ahead(read: Callable, parts: Iterable[Any], n_threads: int) -> Generator[Any, None, None]:
    """Yield what `read` returns for each part, in order; threads are at most two parts ahead each.

    Where the caller stops, by Ctrl-C or an error, nothing is waited for.
    """
    if not n_threads:
        yield from map(read, parts)
        return
    pool, ahead = ThreadPoolExecutor(n_threads), deque[Future]()
    try:
        for part in parts:
            ahead.append(pool.submit(read, part))
            if len(ahead) == 2 * n_threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def is_streamed(X: Any, n_bytes: float, device: torch.device, budget: float | None) -> bool:
    """Return whether checked samples are read batch by batch, and not held on the device at once.

    They take `n_bytes` as tensors, where 0 is held whatever its size; see `bytes_allowed`.
    """
    return n_bytes > 0 and (is_lazy(X) or n_bytes > bytes_allowed(device, budget))


def bytes_allowed(device: torch.device, budget: float | None) -> float:
    """Return the most bytes of samples on a device, of a budget in gigabytes or half of it."""
    return _SHARE * free_bytes(device) if budget is None else budget * 1e9


def subset(X: Any) -> Any:
    """Return at most 10,000 samples, evenly spread: enough for statistics of the input."""
    enough = _ENOUGH_SAMPLES
    if getattr(X, "ndim", None) == 2:
        enough = min(enough, max(2, _ENOUGH_NUMBERS // X.shape[1]))
    step = -(-len(X) // enough)
    is_read_in_part = step > 1 and map_of(X) is not None
    return some_rows(X, np.arange(0, len(X), step)) if is_read_in_part else X[::step]


def representative_array(X: Any) -> Any:
    """Return X as an array; of lazy samples, the subset."""
    return subset(X) if is_lazy(X) else X


def is_lazy(X: Any) -> bool:
    """Return whether checked samples, or a part of them, have yet to be read."""
    parts = X.parts if isinstance(X, Parts) else (X,)
    return any(isinstance(part, LazySamples) for part in parts)
