"""The trained network: standardisation, encoder, projection head; and its use in inference."""

from __future__ import annotations

import torch
from torch import nn

from .._statistics import FARTHEST


class Network(nn.Module):
    """Encoder and projection head: (n, ...) → (n, projection_dim)."""

    def __init__(self, encoder, projector):
        super().__init__()
        self.encoder = encoder
        self.projector = projector

    def forward(self, x):
        return self.projector(self.encoder(x))


class Directions(nn.Module):
    """What ``transform`` hands out of projections: for most similarities, the projections.

    Parameters
    ----------
    similarity : Similarity
        Its ``directions`` is applied to each part.
    n_parts : int
        How many projections stand side by side.
    """

    def __init__(self, similarity, n_parts):
        super().__init__()
        self.similarity, self.n_parts = similarity, n_parts

    def forward(self, z):
        """Map (..., n_parts · (d + n_extra)) to (..., n_parts · d)."""
        return self.similarity.directions(z.unflatten(-1, (self.n_parts, -1))).flatten(-2)


class Standardize(nn.Module):
    """Bring each feature or channel to zero mean and unit variance; the encoder's first step.

    uint8 images are divided by 255 first; vectors are clipped at a million standard deviations.

    Parameters
    ----------
    mean, std : Tensor of shape (n_features,) or (channels, 1, 1)
    channels_last : bool, default=False
        Whether images are handed on in channels-last memory format.
    """

    def __init__(self, mean, std, channels_last=False):
        super().__init__()
        self.memory_format = torch.channels_last if channels_last else torch.contiguous_format
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def forward(self, x):
        """Standardise a batch of shape (n, n_features) or (n, channels, height, width)."""
        if x.dtype == torch.uint8:
            x = x / 255
        if x.ndim == 4:
            x = x.contiguous(memory_format=self.memory_format)
        x = (x - self.mean).div_(self.std)
        return x.clamp_(-FARTHEST, FARTHEST) if x.ndim == 2 else x


def channel_statistics(images):
    """Return mean and standard deviation of each channel, shape (channels, 1, 1).

    Parameters
    ----------
    images : Tensor of shape (n, channels, height, width)
        Some of the training images, uint8 or float.
    """
    some = images.float() / (255 if images.dtype == torch.uint8 else 1)
    std, mean = torch.std_mean(some, (0, 2, 3), correction=0)
    return mean[:, None, None], torch.where(std > 1e-6, std, 1.0)[:, None, None]
