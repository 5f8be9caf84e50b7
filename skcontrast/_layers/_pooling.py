"""Averages of maps over grids of cells, and images made smaller."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def average_to(cells: Sequence[int], sides: Sequence[int]) -> nn.Module:
    """Return the average pooling from a map of `sides` pixels to one of `cells` pixels.

    Every pixel counts: windows overlap where they must. Unlike AdaptiveAvgPool2d it has a
    deterministic gradient on every device.
    """
    (height, width), (rows, columns) = sides, cells
    down, right = height // rows, width // columns
    kernel = (height - (rows - 1) * down, width - (columns - 1) * right)
    return nn.AvgPool2d(kernel, (down, right))


class GridMeans(nn.Module):
    """Means of maps over a grid of cells that overlap by a pixel at most.

    They are those of AdaptiveAvgPool2d, as products with two matrices, in a third of its time.

    Parameters
    ----------
    cells, sides : sequence of int
        Rows and columns of the grid, and of the maps.
    """

    rows: Tensor
    columns: Tensor

    def __init__(self, cells: Sequence[int], sides: Sequence[int]):
        super().__init__()
        self.n_places_behind = math.prod(cells)  # see `use_threads_for`
        for name, few, side in zip(("rows", "columns"), cells, sides, strict=True):
            matrix = F.adaptive_avg_pool2d(torch.eye(side)[None], (few, side))[0]
            self.register_buffer(name, matrix)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, height, width) to (n, channels, rows, columns)."""
        return self.rows.to(x.dtype) @ x @ self.columns.T.to(x.dtype)


def bounded_grid(cells: Sequence[int], most: int) -> list[int]:
    """Return rows and columns of a grid of at most so many cells, unless it is a square.

    Only the longer side is cut.
    """
    shorter = min(cells)
    return [min(side, max(shorter, most // shorter)) for side in cells]


def reduced_sides(sides: Sequence[int], largest: int | None) -> tuple[int, int]:
    """Return the sides of images that have at most the area of a square; None is any area.

    The proportions stay until the shorter side is half of the square's, then the longer one
    shrinks alone: the few rows of a strip or a spectrogram are what it consists of.
    """
    height, width = sides
    if largest is None or height * width <= largest**2:
        return height, width
    factor = largest / math.sqrt(height * width)
    least = min(height, width, max(1, largest // 2))
    if factor * min(sides) >= least:
        return round(factor * height), round(factor * width)
    longer = largest**2 // least
    return (least, longer) if height < width else (longer, least)


def reduced(images: Tensor, sides: Sequence[int] | None) -> Tensor:
    """Return images (n, channels, height, width) of these sides; None leaves them as they are."""
    if sides is None or tuple(images.shape[-2:]) == tuple(sides):
        return images
    if images.dtype == torch.uint8 and images.device.type != "cpu":
        images = images / 255
    return F.interpolate(images, tuple(sides), mode="bilinear", antialias=True)


class Reduced(nn.Module):
    """A layer behind a reduction of images, as products with two matrices, in every runtime alike.

    Parameters
    ----------
    layer : torch.nn.Module
        Maps images in [0, 1] of sides `smaller`.
    sides, smaller : sequence of int
        Height and width of the images, and those to which they are reduced; others are passed on.
    """

    rows: Tensor
    columns: Tensor

    def __init__(self, layer: nn.Module, sides: Sequence[int], smaller: Sequence[int]):
        super().__init__()
        self.layer = layer
        for name, one, less in zip(("rows", "columns"), sides, smaller, strict=True):
            # Each column is the image of a single bright pixel.
            matrix = reduced(torch.eye(one)[None, None], (less, one))[0, 0]
            self.register_buffer(name, matrix)

    @property
    def sides(self) -> tuple[int, int]:
        """Height and width of the reduced images."""
        return len(self.rows), len(self.columns)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, height, width), uint8 or floats in [0, 1]."""
        if x.shape[-2:] != self.sides:
            x = x / 255 if x.dtype == torch.uint8 else x
            x = self.rows @ x @ self.columns.T
        return self.layer(x)
