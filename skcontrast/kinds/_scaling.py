"""Scaling of arrays to float32 tensors, here or in the first layer of a network."""

import math
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor, nn

from .._data._array_like import as_array_like
from .._data._arrays import FARTHEST, as_tensor, row_blocks
from ..graphs._convert import is_graphs
from ._base import Kind, Request, Schema

_NUMBERS_PER_CALL = 2**20


def rows_for(numbers_per_sample: int) -> int:
    """Return the batch size for inference: larger for smaller samples."""
    return min(max(_NUMBERS_PER_CALL // numbers_per_sample, 32), 2**14)


def float_of(X: np.ndarray) -> np.dtype:
    """Return the floating dtype, of at least 32 bits, for the values of X."""
    return np.result_type(X.dtype.newbyteorder("="), np.float32)


class AffineScaler:
    """The map from arrays to float32 tensors: a cast, or a shift and a scale in float64.

    Subclasses learn ``only_casts_``, ``center_`` and ``scale_`` in `fit`.

    Parameters
    ----------
    standardize : bool, default=True
        If False, floats are only cast.
    """

    lowest, highest = -FARTHEST, FARTHEST
    only_casts_: bool
    keeps_uint8_ = False
    center_: Any = 0.0
    scale_: Any = 1.0

    def __init__(self, standardize: Any = True):
        self.standardize = standardize

    def to_tensor(self, X: Any, device: torch.device | str) -> Tensor:
        """Return X as a float32 tensor on a device, without a copy if possible."""
        if self.only_casts_:
            tensor = as_tensor(X).to(torch.float32)
            if not self.standardize and tensor.isinf().any():
                raise ValueError("X holds values too large for float32: standardize or rescale X.")
            return tensor.to(device)
        result, layer = torch.empty(X.shape), self.layer()
        for rows, out in zip(row_blocks(X), row_blocks(result), strict=True):
            out.copy_(layer(as_tensor(rows)))
        return result.to(device)

    def from_tensor(self, batch: Tensor, X: np.ndarray) -> np.ndarray:
        """Return views of X in its own units, as floats that hold its dtype."""
        return (batch.double().numpy() * self.scale_ + self.center_).astype(float_of(X))

    def layer(self) -> nn.Module:
        """Return the map as a layer on tensors of any dtype."""
        if self.only_casts_:
            return Rescale()
        moments = self.center_, self.scale_
        center, scale = (torch.as_tensor(x, dtype=torch.float64) for x in moments)
        return Rescale(center, scale, self.lowest, self.highest, self.keeps_uint8_)


class ArrayKind(Kind):
    """Base class of the kinds whose checked samples are arrays of numbers."""

    float_batches = True

    def read(self, X: Any, request: Request) -> tuple[Any, Schema]:
        if is_graphs(X):
            raise ValueError(f"X holds graphs, but {request.name} expects {self.name}.")
        size = getattr(self, "size", None)
        X = as_array_like(X, one_shape=not self.differs_in_length, size=size)
        X, schema = self._read_array(X, request)
        request.check_length(X)
        return X, schema

    def _read_array(self, X: Any, request: Request) -> tuple[Any, Schema]:
        """Check an array, or a list of arrays; see `Kind.read`."""
        raise NotImplementedError

    def rows_per_call(self, X: Any) -> int:
        """Return the number of samples that hold about a million numbers."""
        return rows_for(math.prod(X.shape[1:]))

    def nbytes(self, X: Any) -> float:
        """Return the bytes of X in float32."""
        return 4 * float(np.prod(X.shape, dtype=np.float64))

    def arrays(self, X: Any) -> list[np.ndarray]:
        """Return X itself."""
        return [X]


class Rescale(nn.Module):
    """The map of a scaler as the first layer of an exported network: cast, or shift and scale.

    Parameters
    ----------
    center, scale : Tensor of shape (n_features,) or (), dtype float64, or None
        X is shifted by −center and divided by scale; None only casts to float32.
    lowest, highest : float
        Bounds of the scaled values.
    keeps_uint8 : bool
        Whether uint8 stays uint8.
    """

    center: Tensor | None
    scale: Tensor

    def __init__(
        self,
        center: Any = None,
        scale: Any = None,
        lowest: float = 0.0,
        highest: float = 0.0,
        keeps_uint8: bool = False,
    ):
        super().__init__()
        self.register_buffer("center", center)
        self.register_buffer("scale", scale)
        self.lowest, self.highest, self.keeps_uint8 = lowest, highest, keeps_uint8

    def forward(self, x: Tensor) -> Tensor:
        """Return float32, or unchanged uint8."""
        if self.keeps_uint8 and x.dtype == torch.uint8:
            return x
        if self.center is None:
            return x.float()
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

    mean: Tensor
    std: Tensor

    def __init__(self, mean: ArrayLike, std: ArrayLike, channels_last: bool = False):
        super().__init__()
        # torch.channels_last itself cannot always be unpickled.
        self.channels_last = channels_last
        self.register_buffer("mean", torch.as_tensor(mean, dtype=torch.float32))
        self.register_buffer("std", torch.as_tensor(std, dtype=torch.float32))

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
        Training images, uint8 or float.
    """
    batch = images.float() / (255 if images.dtype == torch.uint8 else 1)
    std, mean = torch.std_mean(batch, (0, 2, 3), correction=0)
    return mean[:, None, None], torch.where(std > 1e-6, std, 1.0)[:, None, None]
