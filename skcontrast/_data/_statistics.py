"""Statistics of columns, and arrays as tensors."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy.stats import entropy
from sklearn.utils import assert_all_finite

from ._memory_maps import row_blocks

# Beyond this many standard deviations a value carries no more information, only overflow.
FARTHEST = 1e6


def native(X: NDArray) -> NDArray:
    """Return an array in the byte order of the machine, without a copy if it is in it."""
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


def moments(X: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return mean and standard deviation of each column of X, float64, without overflow.

    Columns are scaled by their range before anything is squared; a constant column has exactly
    its value as mean and exactly zero standard deviation.
    """
    low = high = X[0].astype(np.float64)
    for rows in row_blocks(X):
        low, high = np.minimum(low, rows.min(axis=0)), np.maximum(high, rows.max(axis=0))
    centre, half = low / 2 + high / 2, high / 2 - low / 2
    unit = np.where(half > 0, half, 1.0)
    total, squares = np.zeros_like(centre), np.zeros_like(centre)
    for rows in row_blocks(X):
        deviation = (rows - centre) / unit
        total += deviation.sum(axis=0)
        squares += np.square(deviation).sum(axis=0)
    mean = total / len(X)
    variance = np.maximum(squares / len(X) - mean**2, 0.0)
    return centre + half * mean, half * np.sqrt(variance)


def known_moments(X: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return `moments` of each column without its NaN; zeros for a column that has nothing else.

    X is searched only if the sum of a column is NaN.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        has_gaps = np.isnan(X.sum(axis=0))
    if not has_gaps.any():
        return moments(X)
    mean, std = np.zeros((2, X.shape[1]))
    for j in range(X.shape[1]):
        known = X[~np.isnan(X[:, j]), j : j + 1]
        if len(known):
            mean[j : j + 1], std[j : j + 1] = moments(known)
    return mean, std


def mean_and_std(X: NDArray) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return what to subtract from each column of X, and what to divide it by; float64."""
    mean, std = moments(X)
    # As in StandardScaler: what varies less than the rounding of its mean is constant.
    precision = np.float32 if X.dtype == np.float32 else np.float64
    std[std <= 10 * np.finfo(precision).eps * np.abs(mean)] = 1.0
    return mean, std


def spectral_rank(X: NDArray[np.float64]) -> float:
    """Return e to the entropy of the singular values of X, 0 for zeros: see `effective_rank`."""
    values = np.linalg.svd(X, compute_uv=False)
    return float(np.exp(entropy(values))) if values[0] > 0 else 0.0
