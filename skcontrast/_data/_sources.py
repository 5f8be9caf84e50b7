"""Sources of training samples: memory, or a memory map or Dataset that is read in batches."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import traceback
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.utils.sparsefuncs import mean_variance_axis, min_max_axis
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, get_worker_info

from .._checks import naming
from .._distributed._world import Shares
from .._runtime._interrupts import HeldInterrupt, blocked_interrupts
from .._runtime._memory import free_bytes
from ._memory_maps import dumps, map_of, some_rows
from ._parts import Parts
from ._statistics import moments, native, refuse_nonfinite

# Share of the free memory that training samples may take where no budget is given.
_SHARE = 0.5
_ENOUGH_SAMPLES = 10_000
# Of vectors, samples with at most so many numbers together.
_ENOUGH_NUMBERS = 2**24
# After the last batch.
_END = object()


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

    def batches(
        self, parts: Sequence[Tensor], seed: int, *, whole: bool = False
    ) -> Generator[Any, None, None]:
        """Yield the samples of each part, a tensor of rows; nothing else is needed."""
        for rows in parts:
            yield self.x[rows.to(self.device)]


@dataclass(eq=False)
class Streamed(Dataset):
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
        Processes that read ahead; 0 reads in this one, as does a process that may not start any.
    shares : Shares, default=None
        The ranks that divide the samples of a batch; None reads all of them.
    """

    X: Any
    to_tensor: Callable
    device: torch.device
    n_workers: int
    shares: Shares | None = None

    def __post_init__(self) -> None:
        self.n_workers = self.n_workers if _may_start_processes() else 0

    def __len__(self) -> int:
        return len(self.X)

    def __getstate__(self) -> bytes:
        """Return a pickle for a worker that was not forked; it opens memory maps itself."""
        return dumps(vars(self))

    def __setstate__(self, state: bytes) -> None:
        """Take over the state of the process that trains."""
        self.__dict__.update(pickle.loads(state))

    def __getitem__(self, rows: NDArray) -> Tensor:
        try:
            return self.to_tensor(some_rows(self.X, rows), torch.device("cpu"))
        except Exception as error:
            if get_worker_info() is not None and not _is_sendable(error):
                raise RuntimeError("".join(traceback.format_exception(error))) from None
            raise

    def take(self, rows: Tensor) -> Any:
        """Return the samples of the given rows, read in this process."""
        return self[rows.numpy()].to(self.device)

    def batches(
        self, parts: Sequence[Tensor], seed: int, *, whole: bool = False
    ) -> Generator[Any, None, None]:
        """Yield the samples of each part, a tensor of rows; workers draw by the seed.

        Of the samples of a part, only those of this rank are read unless `whole` is True. In the
        place of others, samples of this rank are repeated.
        """
        own = (rows if whole else rows[self._own(len(rows))] for rows in parts)
        # Tensors would go by a thread of this process, which one that os.fork has made lacks.
        with closing(self._read((rows.cpu().numpy() for rows in own), seed)) as samples:
            for rows, x in zip(parts, samples, strict=True):
                n = len(rows)
                if self.shares is None or len(x) == n:
                    yield x
                    continue
                self.shares.n_samples = n  # meanwhile
                try:
                    yield x[(torch.arange(n) - self._own(n).start) % len(x)]
                finally:
                    self.shares.n_samples = 0

    def _own(self, n: int) -> slice:
        """Return which of the n samples of a batch this rank reads."""
        if self.shares is None or n < self.shares.world.size:
            return slice(None)
        return self.shares.world.share(n)

    def _read(self, parts: Iterable[NDArray], seed: int) -> Generator[Any, None, None]:
        """Yield all samples of each part."""
        on_gpu = self.device.type == "cuda"
        # Seeds the workers; without it, the loader would draw from the global generator.
        generator = torch.Generator().manual_seed(seed)
        options: dict[str, Any] = {"num_workers": self.n_workers, "pin_memory": on_gpu}
        options |= {"generator": generator, "worker_init_fn": _start_worker}
        loader = DataLoader(self, sampler=parts, batch_size=None, **options)
        with closing(_until_interrupted(loader)) as batches:
            for x in batches:
                yield x.to(self.device, non_blocking=on_gpu)


def _until_interrupted(loader: DataLoader) -> Generator[Any, None, None]:
    """Yield the batches of a loader; while it deals with worker processes, hold Ctrl-C.

    A KeyboardInterrupt while a process is forked is ignored, and one between a lock and the work
    that it guards leaves the lock taken, for which the end of the loader would wait forever.
    """
    if not loader.num_workers:
        yield from loader
        return
    batches = None
    try:
        with HeldInterrupt(), blocked_interrupts():
            batches = iter(loader)
        while True:
            with HeldInterrupt():
                batch = next(batches, _END)
            if batch is _END:
                return
            yield batch
    finally:
        with HeldInterrupt():
            del batches  # ends the workers


def _is_sendable(error: Exception) -> bool:
    """Return whether a class of exceptions can be sent; for one that cannot, torch waits."""
    try:
        pickle.dumps(type(error))
    except Exception:
        return False
    return True


def _start_worker(number: int) -> None:
    """Leave Ctrl-C, which a terminal sends to workers too, to the process that trains."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _may_start_processes() -> bool:
    """Return whether this process may start others: workers of joblib or of a loader may not."""
    ordinary = (None, *multiprocessing.get_all_start_methods())
    is_ordinary = multiprocessing.get_start_method(allow_none=True) in ordinary
    return is_ordinary and not multiprocessing.current_process().daemon


def make_source(
    X: Any,
    n_bytes: float,
    to_tensor: Callable,
    device: torch.device,
    *,
    budget: float | None,
    n_workers: int,
    n_sharing: int = 1,
    shares: Shares | None = None,
) -> InMemory | Streamed:
    """Return the samples in memory if they fit, else streamed.

    Parameters
    ----------
    X : array-like of length n_samples
        Validated.
    n_bytes : float
        The memory that X takes as tensors; 0 keeps X in memory.
    to_tensor, device : callable, torch.device
        As in `Streamed`.
    budget : float or None
        The most gigabytes that the samples may take as tensors; None is half of the free memory.
    n_workers : int
        As in `Streamed`.
    n_sharing : int, default=1
        Processes that each hold X in the same free memory.
    shares : Shares, default=None
        As in `Streamed`.
    """
    if n_bytes and (is_lazy(X) or n_bytes > bytes_allowed(device, budget) / n_sharing):
        return Streamed(X, to_tensor, device, n_workers, shares)
    return InMemory(to_tensor(X, device))


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
