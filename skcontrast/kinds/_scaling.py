"""From arrays to float32 tensors, and how many samples go through a network at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.utils import assert_all_finite
from torch import Tensor

from .._statistics import as_tensor

_NUMBERS_PER_CALL = 2**20


def rows_for(numbers_per_sample: int) -> int:
    """Return how many samples to encode at a time.

    Many if samples are small, since each call has a fixed cost; few if activations are large.
    """
    return min(max(_NUMBERS_PER_CALL // numbers_per_sample, 32), 2**14)


def cast(X: np.ndarray, standardize: bool) -> Tensor:
    """Return X as float32, or raise ValueError if NaN or infinity is in X or in the result."""
    tensor = as_tensor(X).to(torch.float32)
    # One sum of what is in cache finds NaN and infinity; only then are they searched for.
    if not tensor.sum().isfinite():
        with np.errstate(over="ignore", invalid="ignore"):
            assert_all_finite(X, input_name="X")
        if not standardize and not tensor.isfinite().all():
            raise ValueError(
                "X holds values too large for float32: pass standardize=True or rescale X."
            )
    return tensor


def scaled(X: np.ndarray, center: Any, scale: Any, lowest: float, highest: float) -> Tensor:
    """Return (X − center) / scale, computed in float64 and clipped, as float32."""
    # Values that overflow are clipped to the bounds.
    with np.errstate(over="ignore"):
        mapped = np.subtract(X, center, dtype=np.float64)
        mapped /= scale
    return torch.from_numpy(mapped.clip(lowest, highest, out=mapped)).to(torch.float32)


def as_float32(values: Any) -> Tensor:
    """Return numbers as a float32 tensor."""
    return torch.as_tensor(values, dtype=torch.float32)
