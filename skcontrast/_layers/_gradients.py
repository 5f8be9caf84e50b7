"""Histograms of oriented gradients: which way edges run, in each cell of an image."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d, pad, relu

from ._pooling import average_to

# Of standardised images: an even region has no edges, however little it varies.
_LEAST_ENERGY = 0.1
# No orientation of a cell has a greater share of its neighbourhood.
_GREATEST_SHARE = 0.2


class GradientLayer(nn.Module):
    """Histograms of oriented gradients of images, normalised over neighbouring cells.

    Parameters
    ----------
    sides : sequence of int
        Height and width of the images.
    cell_size : int
        Pixels on a side of a cell, if the image has so many.
    n_orientations : int
        Bins of the half circle of directions.
    """

    def __init__(self, sides: Sequence[int], cell_size: int, n_orientations: int):
        super().__init__()
        self.n_orientations = n_orientations
        self.cells = average_to([max(1, side // cell_size) for side in sides], sides)
        self.cell_area = cell_size**2

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, height, width) to (n, n_orientations, rows, columns)."""
        height, width = x.shape[2:]
        right = pad(x[..., 2:] - x[..., :-2], (1, 1))[..., :width]
        down = pad(x[..., 2:, :] - x[..., :-2, :], (0, 0, 1, 1))[..., :height, :]
        strongest = (right.square() + down.square()).argmax(1, keepdim=True)
        right, down = right.gather(1, strongest), down.gather(1, strongest)
        bins = torch.arange(self.n_orientations, device=x.device).view(1, -1, 1, 1)
        turned = torch.atan2(down, right) * (self.n_orientations / torch.pi)
        far = (torch.remainder(turned, self.n_orientations) - bins).abs()
        near = relu(1 - torch.minimum(far, self.n_orientations - far))
        length = (right.square() + down.square()).sqrt()
        counts = self.cells(length * near) * self.cell_area
        energy = avg_pool2d(pad(counts.square().sum(1, keepdim=True), (1, 1, 1, 1)), 2, 1) * 4
        unit = (energy + _LEAST_ENERGY).rsqrt()
        rows, columns = counts.shape[2:]
        corners = [(i, j) for i in (0, 1) for j in (0, 1)]
        return torch.stack(
            [
                (counts * unit[..., i : i + rows, j : j + columns]).clamp(max=_GREATEST_SHARE)
                for i, j in corners
            ]
        ).sum(0)
