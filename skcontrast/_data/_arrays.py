"""Arrays of samples, in memory, in files or read lazily: rows, tensors and statistics."""

import copy
import math
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.stats import entropy
from sklearn.preprocessing import StandardScaler
from sklearn.utils import assert_all_finite

from .._checks._arguments import naming
from ._modalities import Modalities
from ._pictures import as_pixels

# Values are clipped at this many standard deviations, beyond which they would only overflow.
FARTHEST = 1e6
_ENOUGH_SAMPLES = 10_000
# The most numbers in a subset of vectors.
_ENOUGH_NUMBERS = 2**24
# The size of a block: computations in float64 take a few times its memory.
_NUMBERS_PER_BLOCK = 2**21
# Rows of each array that enter its checksum.
_ROWS_COMPARED = 256


class LazySamples:
    """A torch Dataset with the interface of an array: it has a shape, and its rows are ndarrays.

    Parameters
    ----------
    dataset : torch.utils.data.Dataset, or sequence of paths or of images of Pillow
        Items are samples, or tuples that start with one: arrays, tensors or images of one shape.
    size : int, default=None
        The height and width of paths and images of Pillow, see `as_pixels`.
    """

    def __init__(self, dataset: Any, size: int | None = None):
        if not hasattr(dataset, "__len__"):
            raise TypeError(
                "X must be a Dataset with __len__ and __getitem__, since an iterable Dataset "
                f"cannot be shuffled: got {type(dataset).__name__}."
            )
        if not len(dataset):
            raise ValueError("Found a Dataset with 0 samples in X: at least 1 is required.")
        if size and getattr(dataset, "has_default_size", False):  # an ImageFolder
            dataset = copy.copy(dataset)
            dataset.size = (size, size)
        self.dataset, self.size = dataset, size
        first = self._item(0)
        self.shape, self.dtype = (len(dataset), *first.shape), first.dtype
        self.ndim = len(self.shape)

    def _item(self, row: int) -> np.ndarray:
        try:
            item = self.dataset[int(row)]
            # Most Datasets return a sample with its label.
            item = item[0] if isinstance(item, (tuple, list)) and item else item
            item = as_pixels(item, self.size)
        except Exception as error:
            error.add_note(f"This is item {row} of the Dataset in X.")
            raise
        if isinstance(item, Mapping):
            raise TypeError(
                "The items of X must be samples or tuples (sample, ...), got a "
                f"{type(item).__name__} with the keys {sorted(map(str, item))}. Pass "
                "[item[key] for item in X], or a Dataset of the samples."
            )
        with naming("X", f"a Dataset of arrays of numbers, but sample {row} is not"):
            item = np.asarray(item)
            if item.dtype.kind not in "biuf":
                raise TypeError(f"its dtype is {item.dtype}")
        # torch has no long doubles.
        return native(item if item.itemsize <= 8 else item.astype(np.float64))

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray:
        rows = np.atleast_1d(np.arange(len(self))[rows])
        items = [self._item(row) for row in rows]
        advice = "If they are series, pass kind='series'"
        if self.ndim == 4:
            advice = "Images of Pillow get one size by kind=Images(size=224)"
        for row, item in zip(rows, items, strict=True):
            if item.shape != self.shape[1:]:
                raise ValueError(
                    f"The samples in X must have one shape: sample {row} has {item.shape}, "
                    f"sample 0 has {self.shape[1:]}. {advice}."
                )
        batch = np.stack(items)
        refuse_nonfinite(batch)
        return batch


class SparseSamples(LazySamples):
    """A sparse matrix whose rows are ndarrays, so that only a batch at a time is dense.

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


def subset(X: Any) -> Any:
    """Return at most 10,000 evenly spaced samples, or fewer wide vectors, for statistics."""
    n_most = _ENOUGH_SAMPLES
    if getattr(X, "ndim", None) == 2:
        n_most = min(n_most, max(2, _ENOUGH_NUMBERS // X.shape[1]))
    step = -(-len(X) // n_most)
    return X if step == 1 and not is_lazy(X) else X[::step]


def representative_array(X: Any) -> Any:
    """Return X as an array; for lazy samples, a subset."""
    return subset(X) if is_lazy(X) else X


def is_lazy(X: Any) -> bool:
    """Return whether validated samples, or a modality of them, are read lazily."""
    modalities = X.modalities if isinstance(X, Modalities) else (X,)
    return any(isinstance(m, LazySamples) for m in modalities)


def row_blocks(X: Any, n_rows: int | None = None) -> Iterator[Any]:
    """Yield all rows of X in order, in blocks; by default of about two million numbers."""
    if n_rows is None:
        n_rows = min(4096, max(1, _NUMBERS_PER_BLOCK // max(1, math.prod(X.shape[1:]))))
    for start in range(0, len(X), n_rows):
        yield X[start : start + n_rows]


def fingerprint(arrays: Iterable[Any]) -> int:
    """Return a checksum of the shapes and of a few rows of arrays.

    Parameters
    ----------
    arrays : iterable of array-like
        Of each, the shape, the dtype and at most 256 rows are used.
    """
    checksum = zlib.crc32(b"None")
    for array in arrays:
        checksum = zlib.crc32(f"{array.shape} {array.dtype}".encode(), checksum)
        rows = array[:: max(1, -(-len(array) // _ROWS_COMPARED))] if array.shape else array
        checksum = zlib.crc32(np.ascontiguousarray(rows).data, checksum)
    return checksum


def native(X: NDArray) -> NDArray:
    """Return an array in the byte order of the machine, without a copy if possible."""
    return X if X.dtype.isnative else X.astype(X.dtype.newbyteorder("="))


def refuse_nonfinite(X: NDArray) -> None:
    """Raise ValueError if X holds NaN or infinity."""
    if X.dtype.kind == "f":
        # Looking for NaN in the sum of X overflows near 1e308, and in half precision.
        with np.errstate(over="ignore", invalid="ignore"):
            precise = native(X) if X.itemsize > 2 else X.astype(np.float32)
            assert_all_finite(precise, input_name="X")


def as_tensor(X: ArrayLike) -> torch.Tensor:
    """Return an array as a tensor, without a copy where its rows are contiguous."""
    X = native(np.ascontiguousarray(X))
    # torch warns about arrays it must not write to (memory maps, joblib's shared memory), although
    # nothing here writes.
    if not X.flags.writeable:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            return torch.from_numpy(X)
    return torch.from_numpy(X)


def as_array(X: torch.Tensor) -> NDArray:
    """Return a tensor as an array; bfloat16, which numpy lacks, as float32."""
    X = X.detach().cpu()
    return (X.float() if X.dtype == torch.bfloat16 else X).numpy()


def column_scaler(X: NDArray | SparseSamples) -> StandardScaler:
    """Return scikit-learn's scaler of the columns of X, whose `scale_` is 1 for constant ones."""
    scaler = StandardScaler(with_mean=not isinstance(X, SparseSamples))
    with np.errstate(over="ignore", invalid="ignore"), naming("X", "numbers of finite variance"):
        for rows in [X.matrix] if isinstance(X, SparseSamples) else row_blocks(X):
            scaler.partial_fit(rows)
        assert_all_finite(scaler.var_)
    return scaler


def spectral_rank(X: NDArray[np.float64]) -> float:
    """Return e to the entropy of the singular values of X, 0 for zeros: see `effective_rank`."""
    values = np.linalg.svd(X, compute_uv=False)
    return float(np.exp(entropy(values))) if values[0] > 0 else 0.0
