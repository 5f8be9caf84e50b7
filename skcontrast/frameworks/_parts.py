"""Several parts of every sample, each with its own encoder."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import torch
from torch import Tensor, nn

from .._data._parts import PartsBatch


class Split(nn.Module):
    """The cut of a vector's features, or an image's channels, into parts.

    Parameters
    ----------
    columns : sequence of Tensor of shape (k,), dtype int64
        Features or channels of each part.
    sample_shape : tuple of int
        Shape of one sample.
    convert : torch.nn.Module, default=None
        Applied to the samples before they are standardised and split.

    Attributes
    ----------
    shapes : list of tuple
        Shape of a sample of each part.
    """

    def __init__(
        self, columns: Sequence[Tensor], sample_shape: tuple, convert: nn.Module | None = None
    ):
        super().__init__()
        for place, some in enumerate(columns):
            self.register_buffer(f"columns_{place}", some)
        self.convert = nn.Identity() if convert is None else convert
        self.shapes = [(len(some), *sample_shape[1:]) for some in columns]

    @property
    def columns(self) -> list[Tensor]:
        """Features or channels of each part."""
        return [self.get_buffer(f"columns_{place}") for place in range(len(self.shapes))]

    @property
    def is_of_channels(self) -> bool:
        """Whether the parts are features or channels of X itself, without conversion."""
        return isinstance(self.convert, nn.Identity)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the parts of samples x of shape (n, ...)."""
        return tuple(x.index_select(1, some) for some in self.columns)


class Apart(nn.Module):
    """The parts of samples that come as a batch for each part."""

    def forward(self, x: PartsBatch) -> tuple:
        """Return the batch of each part."""
        return x.parts


class SideBySide(nn.Module):
    """A network for each part; their outputs are concatenated.

    Parameters
    ----------
    split : callable
        Returns the parts of a batch.
    networks : list of torch.nn.Module
        One for each part.
    """

    def __init__(self, split: Callable, networks: Sequence[nn.Module]):
        super().__init__()
        self.split, self.networks = split, nn.ModuleList(networks)

    def forward(self, x: Tensor | PartsBatch) -> Tensor:
        """Return all networks' outputs for x, shape (n, sum of their widths)."""
        parts = self.split(x)
        return torch.cat([net(part) for net, part in zip(self.networks, parts, strict=True)], 1)


class Slices(nn.Module):
    """A cut of vectors into parts.

    Parameters
    ----------
    widths : sequence of int
        Width of each part.
    """

    def __init__(self, widths: Sequence[int]):
        super().__init__()
        self.ends: list[int | None] = list(accumulate(widths))

    def forward(self, h: Tensor) -> tuple[Tensor, ...]:
        """Return the parts of h, shapes (n, width)."""
        return tuple(
            h[:, start:end] for start, end in zip([0, *self.ends], self.ends, strict=False)
        )
