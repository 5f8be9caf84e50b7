"""Two parts of every sample, each with its own encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn


class Split(nn.Module):
    """The cut of a vector's features, or an image's channels, into two parts.

    Parameters
    ----------
    first, second : Tensor of shape (k,), dtype int64
        Features or channels of each part.
    sample_shape : tuple of int
        Shape of one sample.
    convert : torch.nn.Module, default=None
        Applied to the samples before they are standardised and split.
    """

    first: Tensor
    second: Tensor

    def __init__(
        self,
        first: Tensor,
        second: Tensor,
        sample_shape: tuple,
        convert: nn.Module | None = None,
    ):
        super().__init__()
        self.register_buffer("first", first)
        self.register_buffer("second", second)
        self.convert = nn.Identity() if convert is None else convert
        self.shapes = [(len(part), *sample_shape[1:]) for part in (first, second)]

    @property
    def is_of_channels(self) -> bool:
        """Whether the parts are features or channels of X itself, without conversion."""
        return isinstance(self.convert, nn.Identity)

    @property
    def border(self) -> int | None:
        """Where the second part begins; None unless the first part is the first features."""
        n = len(self.first)
        return n if self.is_of_channels and self.first.tolist() == list(range(n)) else None

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Return the two parts of samples x of shape (n, ...)."""
        return x.index_select(1, self.first), x.index_select(1, self.second)


class Parts(nn.Module):
    """Two networks side by side, one for each part; their outputs are concatenated.

    Parameters
    ----------
    split : callable
        Returns the two parts of a batch.
    networks : list of torch.nn.Module
        One for each part.
    """

    def __init__(self, split: Callable, networks: Sequence[nn.Module]):
        super().__init__()
        self.split, self.networks = split, nn.ModuleList(networks)

    def forward(self, x: Tensor) -> Tensor:
        """Return both networks' outputs for x, shape (n, sum of their widths)."""
        parts = self.split(x)
        return torch.cat([net(part) for net, part in zip(self.networks, parts, strict=True)], 1)


class Halves(nn.Module):
    """A cut of vectors in two.

    Parameters
    ----------
    width : int
        Width of the first part.
    """

    def __init__(self, width: int):
        super().__init__()
        self.width = width

    def forward(self, h: Tensor) -> tuple[Tensor, Tensor]:
        """Return the first `width` components of h and the rest, shapes (n, ...)."""
        return h[:, : self.width], h[:, self.width :]
