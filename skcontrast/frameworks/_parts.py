"""Two parts of every sample, each with an encoder of its own."""

from __future__ import annotations

import torch
from torch import nn


class Split(nn.Module):
    """Which features of a vector, or channels of an image, belong to which of two parts.

    Parameters
    ----------
    first, second : Tensor of shape (k,), dtype int64
        Features or channels of the parts.
    sample_shape : tuple of int
        Shape of one sample.
    convert : torch.nn.Module, default=None
        Applied to the samples before they are standardised and split.
    """

    def __init__(self, first, second, sample_shape, convert=None):
        super().__init__()
        self.register_buffer("first", first)
        self.register_buffer("second", second)
        self.convert = nn.Identity() if convert is None else convert
        self.shapes = [(len(part), *sample_shape[1:]) for part in (first, second)]

    @property
    def is_of_channels(self):
        """Whether the parts are features or channels of the samples as they are."""
        return isinstance(self.convert, nn.Identity)

    @property
    def border(self):
        """Where the second part begins, None if the first are not the first features."""
        n = len(self.first)
        return n if self.is_of_channels and self.first.tolist() == list(range(n)) else None

    def forward(self, x):
        """Return the parts of x, shape (n, ...)."""
        return x.index_select(1, self.first), x.index_select(1, self.second)


class Parts(nn.Module):
    """Two networks side by side, each for a part; what they return is concatenated.

    Parameters
    ----------
    split : callable
        Returns the two parts of a batch.
    networks : list of torch.nn.Module
        One for each part.
    """

    def __init__(self, split, networks):
        super().__init__()
        self.split, self.networks = split, nn.ModuleList(networks)

    def forward(self, x):
        """Return both networks' outputs of x, shape (n, sum of their widths)."""
        parts = self.split(x)
        return torch.cat([net(part) for net, part in zip(self.networks, parts, strict=True)], 1)


class Halves(nn.Module):
    """Cut vectors at a place."""

    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, h):
        """Return the first `width` numbers and the others."""
        return h[:, : self.width], h[:, self.width :]
