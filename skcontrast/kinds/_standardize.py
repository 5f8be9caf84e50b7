"""The first layer of a network of vectors or images."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .._statistics import FARTHEST


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
