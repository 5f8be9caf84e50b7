"""Representations that are wide and deep: learned, and beside it what needs no training."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import torch
from torch import Tensor, nn

# In standard deviations: what training samples hardly had must not outweigh all else.
_FARTHEST = 10.0


class Beside(nn.Module):
    r"""Blocks of features beside what a network has learned, standardised and weighed.

    .. math:: h = \Big(\sqrt{\tfrac{a_1 w}{a w_1}}\, \frac{h_1 - \mu_1}{\sigma_1},\;
        \sqrt{\tfrac{a_2 w}{a w_2}}\, \frac{h_2 - \mu_2}{\sigma_2},\; \dots\Big)

    with blocks of widths :math:`w_1, w_2, \dots`, in all w, and of weights :math:`a_1 = 1, a_2,
    \dots`, in all a, which are 1 unless said otherwise; what is not learned is clipped at ten
    standard deviations. While the network is trained, the blocks that are not learned are
    zero, and the projection head reads the learned one alone.

    Parameters
    ----------
    learned_width : int
        Width of the learned block, which is the first.
    """

    def __init__(self, learned_width: int):
        super().__init__()
        self.learned_width = learned_width
        self.scale = nn.BatchNorm1d(learned_width, affine=False)
        self.blocks, self.scales = nn.ModuleList(), nn.ModuleList()

    @property
    def width(self) -> int:
        """The width of all blocks together."""
        return self.learned_width + sum(len(cast(Scale, scale).mean) for scale in self.scales)

    def forward(self, learned: Tensor, x: Any) -> Tensor:
        """Map the learned block (n, learned_width) of a batch x to (n, width)."""
        total = 1 + sum(cast(Scale, scale).weight for scale in self.scales)
        share = self.width / total
        parts = [self.scale(learned) * (share / self.learned_width) ** 0.5]
        for block, scale in zip(self.blocks, self.scales, strict=True):
            width, weight = len(cast(Scale, scale).mean), cast(Scale, scale).weight
            if self.training:
                parts.append(learned.new_zeros(len(learned), width))
            else:
                parts.append(scale(block(x)) * (weight * share / width) ** 0.5)
        return torch.cat(parts, 1)

    @torch.no_grad()
    def add(
        self,
        block: nn.Module,
        batches: Iterable[Any],
        *,
        one_scale: bool = False,
        weight: float = 1.0,
    ) -> None:
        """Add a block, standardised by what it returns for training samples.

        Parameters
        ----------
        block : torch.nn.Module
            Maps a batch to (n, w).
        batches : iterable
            Training samples.
        one_scale : bool, default=False
            Whether its columns have one unit, and are divided by one number.
        weight : float, default=1.0
            Its weight, where what is learned has 1.
        """
        found = torch.cat([block(batch) for batch in batches])
        variance, mean = torch.var_mean(found, 0, correction=0)
        if one_scale:
            variance = variance.mean().expand_as(variance)
        deviation = variance.sqrt()
        # As in StandardScaler: what varies less than the rounding of its mean is constant.
        deviation = torch.where(deviation > 1e-5 * (1 + mean.abs()), deviation, 1.0)
        self.blocks.append(block)
        self.scales.append(Scale(mean, deviation, weight))


class Scale(nn.Module):
    """Standardise columns, up to ten standard deviations.

    Parameters
    ----------
    mean, deviation : Tensor of shape (width,)
        Of training samples.
    weight : float, default=1.0
        The weight of the columns among others, for :class:`Beside`.
    """

    mean: Tensor
    deviation: Tensor
    weight: float = 1.0

    def __init__(self, mean: Tensor, deviation: Tensor, weight: float = 1.0):
        super().__init__()
        self.weight = weight
        self.register_buffer("mean", mean)
        self.register_buffer("deviation", deviation)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, width) to (n, width)."""
        return ((x - self.mean) / self.deviation).clamp(-_FARTHEST, _FARTHEST)


class Leading(nn.Module):
    """The first columns of a representation.

    Parameters
    ----------
    width : int
        Their number.
    """

    def __init__(self, width: int):
        super().__init__()
        self.width = width

    def forward(self, h: Tensor) -> Tensor:
        """Map (n, d) to (n, width)."""
        return h[:, : self.width]
