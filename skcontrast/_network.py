"""The trained network: standardisation, encoder, projection head; and its use in inference."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn

# Channel statistics need no more images than this.
_ENOUGH_IMAGES = 10_000
_NUMBERS_PER_CALL = 2**20


class Network(nn.Module):
    """Encoder and projection head: (n, ...) → (n, projection_dim)."""

    def __init__(self, encoder, projector):
        super().__init__()
        self.encoder = encoder
        self.projector = projector

    def forward(self, x):
        return self.projector(self.encoder(x))


class Standardize(nn.Module):
    """Bring each channel of images with intensities in [0, 1] to zero mean and unit variance.

    uint8 images are divided by 255 first.

    Parameters
    ----------
    images : Tensor of shape (n, channels, height, width)
        Training images, uint8 or float, whose statistics are taken.
    enabled : bool
        If False, only uint8 is converted.
    """

    def __init__(self, images, enabled=True):
        super().__init__()
        mean, std = torch.zeros(images.shape[1]), torch.ones(images.shape[1])
        if enabled:
            some = images[:: -(-len(images) // _ENOUGH_IMAGES)]
            some = some.float() / (255 if images.dtype == torch.uint8 else 1)
            mean, std = some.mean((0, 2, 3)), some.std((0, 2, 3), correction=0)
            std = torch.where(std > 1e-6, std, 1.0)
        self.register_buffer("mean", mean[:, None, None])
        self.register_buffer("std", std[:, None, None])

    def forward(self, x):
        """Standardise a batch of shape (n, channels, height, width)."""
        if x.dtype == torch.uint8:
            x = x / 255
        return (x - self.mean) / self.std


def rows_per_call(sample_shape):
    """Return how many samples go through the encoder at a time in inference.

    Many where samples are small, for whom the call itself costs; few where activations are large.
    """
    return min(max(_NUMBERS_PER_CALL // math.prod(sample_shape), 32), 2**14)


@torch.inference_mode()
def encode(module, data, batch_size, *, to_tensor=None):
    """Apply a module in inference mode, batch by batch.

    Parameters
    ----------
    module : nn.Module
        Maps (n, ...) to (n, d).
    data : array or Tensor of shape (n, ...)
        The samples.
    batch_size : int
        Samples per call.
    to_tensor : callable, default=None
        Turns a slice of `data` into what the module takes.

    Returns
    -------
    h : ndarray of shape (n, d), dtype float32
    """
    module.eval()
    parts = []
    for start in range(0, len(data), batch_size):
        batch = data[start : start + batch_size]
        h = module(batch if to_tensor is None else to_tensor(batch))
        parts.append(h.float().cpu().numpy())
    return np.concatenate(parts) if len(parts) > 1 else parts[0]
