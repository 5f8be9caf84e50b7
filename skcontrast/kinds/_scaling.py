"""From arrays to float32 tensors on one scale, here or in the first layer of a network."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from sklearn.utils import assert_all_finite
from torch import Tensor, nn

from .._data._statistics import FARTHEST, as_tensor

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
    result = np.empty(X.shape, np.float32)
    # Values that overflow are clipped to the bounds.
    with np.errstate(over="ignore"):
        step = max(1, _NUMBERS_PER_CALL // max(1, X[:1].size))
        for start in range(0, len(X), step):
            rows = slice(start, start + step)
            mapped = np.subtract(X[rows], center, dtype=np.float64)
            mapped /= scale
            result[rows] = mapped.clip(lowest, highest, out=mapped)
    return torch.from_numpy(result)


def float_of(X: np.ndarray) -> np.dtype:
    """Return the dtype of floats, of 32 bits or more, that hold the numbers of X."""
    return np.result_type(X.dtype.newbyteorder("="), np.float32)


def as_float32(values: Any) -> Tensor:
    """Return numbers as a float32 tensor."""
    return torch.as_tensor(values, dtype=torch.float32)


class Rescale(nn.Module):
    """The map of a scaler as the first layer of an exported network: cast, or `scaled`.

    Parameters
    ----------
    center, scale : Tensor of shape (n_features,) or (), dtype float64, or None
        What is subtracted and divided by; None only casts to float32.
    lowest, highest : float
        Bounds of the result, where there are a center and a scale.
    """

    def __init__(
        self,
        center: Tensor | None = None,
        scale: Tensor | None = None,
        lowest: float = -FARTHEST,
        highest: float = FARTHEST,
    ):
        super().__init__()
        self.register_buffer("center", center)
        self.register_buffer("scale", scale)
        self.lowest, self.highest = lowest, highest

    def forward(self, x: Tensor) -> Tensor:
        """Return float32, in which uint8 images stay uint8 unless they have a center."""
        if self.center is None:
            return x if x.dtype == torch.uint8 else x.float()
        x = (x.double() - self.center) / self.scale
        return x.clamp(self.lowest, self.highest).float()


class Standardize(nn.Module):
    """The encoder's first step: bring each feature or channel to zero mean and unit variance.

    uint8 images are divided by 255 first; vectors are clipped at a million standard deviations.

    Parameters
    ----------
    mean, std : Tensor of shape (n_features,) or (channels, 1, 1)
        Mean and standard deviation of each feature or channel.
    channels_last : bool, default=False
        Whether images are passed on in channels-last memory format.
    """

    def __init__(self, mean: Tensor, std: Tensor, channels_last: bool = False):
        super().__init__()
        # A flag, because torch.channels_last itself cannot be unpickled everywhere.
        self.channels_last = channels_last
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def forward(self, x: Tensor) -> Tensor:
        """Standardise a batch of shape (n, n_features) or (n, channels, height, width)."""
        if x.dtype == torch.uint8:
            x = x / 255
        if x.ndim == 4:
            layout = torch.channels_last if self.channels_last else torch.contiguous_format
            x = x.contiguous(memory_format=layout)
        x = (x - self.mean).div_(self.std)
        return x.clamp_(-FARTHEST, FARTHEST) if x.ndim == 2 else x


def channel_statistics(images: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of each channel, shape (channels, 1, 1).

    Parameters
    ----------
    images : Tensor of shape (n, channels, height, width)
        Some of the training images, uint8 or float.
    """
    some = images.float() / (255 if images.dtype == torch.uint8 else 1)
    std, mean = torch.std_mean(some, (0, 2, 3), correction=0)
    return mean[:, None, None], torch.where(std > 1e-6, std, 1.0)[:, None, None]
