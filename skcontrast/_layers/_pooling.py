"""Averages of maps over grids of cells."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn


def average_to(cells: Sequence[int], sides: Sequence[int]) -> nn.Module:
    """Return the average pooling from a map of `sides` pixels to one of `cells` pixels.

    Every pixel counts: windows overlap where they must. Unlike AdaptiveAvgPool2d it has a
    deterministic gradient on every device.
    """
    (height, width), (rows, columns) = sides, cells
    down, right = height // rows, width // columns
    kernel = (height - (rows - 1) * down, width - (columns - 1) * right)
    return nn.AvgPool2d(kernel, (down, right))
