"""Representations that are wide and deep: learned, and beside it what needs no training."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import torch
from torch import Tensor, nn

# In standard deviations: clips values that are rare in training.
_FARTHEST = 10.0


class SideFeatures(nn.Module):
    r"""Blocks of features beside what a network has learned, standardised and weighed.

    .. math:: h = \Big(\sqrt{\tfrac{a_1 w}{a w_1}}\, \frac{h_1 - \mu_1}{\sigma_1},\;
        \sqrt{\tfrac{a_2 w}{a w_2}}\, \frac{h_2 - \mu_2}{\sigma_2},\; \dots\Big)

    with blocks of widths :math:`w_1, w_2, \dots`, in all w, and weights :math:`a_1 = 1, a_2,
    \dots`, in all a: the shares of the blocks in the squared norm. All columns are clipped at ten
    standard deviations, so that no sample is told by one of them alone. While the network is
    trained, nothing is clipped, the blocks that are not learned are zero, and the projection head
    reads the learned one alone.

    Parameters
    ----------
    learned_width : int
        Width of the learned block, which is the first.
    """

    # False within `learned_alone`.
    _shows_all = True

    def __init__(self, learned_width: int):
        super().__init__()
        self.learned_width = learned_width
        self.scale = RunningScale(learned_width, affine=False)
        self.blocks, self.scales = nn.ModuleList(), nn.ModuleList()
        self.weights = [1.0]

    @property
    def width(self) -> int:
        """The width of all blocks together."""
        return self.learned_width + sum(len(cast(Scale, scale).mean) for scale in self.scales)

    @property
    def raw_columns(self) -> slice | None:
        """Where the samples themselves stand in the representation, None if they do not."""
        start = self.learned_width
        for block, scale in zip(self.blocks, self.scales, strict=True):
            stop = start + len(cast(Scale, scale).mean)
            if isinstance(block, nn.Flatten):
                return slice(start, stop)
            start = stop
        return None

    def forward(self, learned: Tensor, x: Any) -> Tensor:
        """Map the learned block (n, learned_width) of a batch x to (n, width)."""
        # A block of weight w has w shares of the squared length, however many columns it has.
        unit = self.width / sum(self.weights)
        if self._shows_all:
            learned = self.scale(learned)
            learned = learned if self.training else learned.clamp(-_FARTHEST, _FARTHEST)
            learned = learned * (unit / self.learned_width) ** 0.5
        if self.training or not self._shows_all:
            return nn.functional.pad(learned, (0, self.width - self.learned_width))
        parts = [learned]
        for block, scale, weight in zip(self.blocks, self.scales, self.weights[1:], strict=True):
            width = len(cast(Scale, scale).mean)
            parts.append(scale(block(x)) * (weight * unit / width) ** 0.5)
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
            How much the block counts; the learned one counts 1.
        """
        found = torch.cat([block(batch) for batch in batches])
        variance, mean = torch.var_mean(found, 0, correction=0)
        if one_scale:
            variance = variance.mean().expand_as(variance)
        deviation = variance.sqrt()
        # As in StandardScaler: what varies less than the rounding of its mean is constant.
        varies = deviation > 1e-5 * (1 + mean.abs())
        deviation = torch.where(varies, deviation, 1.0)
        if not one_scale:  # a block weighs as much with constant columns as without
            deviation = deviation * varies.float().mean().clamp_min(1 / len(varies)).sqrt()
        self.blocks.append(block)
        self.scales.append(Scale(mean, deviation))
        self.weights.append(float(weight))

    @torch.no_grad()
    def start(self, deep: nn.Module, batches: Iterable[Any]) -> None:
        """Standardise by what the deep network returns before it is trained.

        The first step replaces this; without it, the start and the end could not be compared.
        """
        found = torch.cat([deep.eval()(batch) for batch in batches])
        variance, mean = torch.var_mean(found, 0, correction=0)
        self.scale.running_mean, self.scale.running_var = mean, variance


class RunningScale(nn.BatchNorm1d):
    """Batch normalisation whose first ten batches weigh alike: short fits have the right scale."""

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, width) to (n, width)."""
        if self.training and self.num_batches_tracked is not None:
            self.momentum = max(0.1, 1 / (1 + int(self.num_batches_tracked)))
        return super().forward(x)


class WideNetwork(nn.Module):
    """A network, and beside what it has learned the blocks that need no training.

    Parameters
    ----------
    deep : torch.nn.Module
        Maps a batch to (n, learned_width).
    beside : SideFeatures
        What stands beside.
    """

    def __init__(self, deep: nn.Module, beside: SideFeatures):
        super().__init__()
        self.deep, self.beside = deep, beside

    def forward(self, x: Any) -> Tensor:
        """Map a batch of n samples to (n, width)."""
        return self.beside(self.deep(x), x)


def wide_part(encoder: nn.Module) -> SideFeatures | None:
    """Return what stands beside the learned part of an encoder, a trained one too, or None."""
    while isinstance(encoder, nn.Sequential) and len(encoder):
        encoder = encoder[-1]
    return encoder.beside if isinstance(encoder, WideNetwork) else None


@contextmanager
def learned_alone(network: nn.Module) -> Iterator[None]:
    """While entered, wide encoders return their learned block, not standardised, and zeros."""
    wide = [part for part in network.modules() if isinstance(part, SideFeatures)]
    for part in wide:
        part._shows_all = False
    try:
        yield
    finally:
        for part in wide:
            del part._shows_all


class Scale(nn.Module):
    """Standardise columns, up to ten standard deviations.

    Parameters
    ----------
    mean, deviation : Tensor of shape (width,)
        Of training samples.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, mean: Tensor, deviation: Tensor):
        super().__init__()
        self.register_buffer("mean", mean)
        self.register_buffer("deviation", deviation)

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, width) to (n, width)."""
        return ((x - self.mean) / self.deviation).clamp(-_FARTHEST, _FARTHEST)


class FirstColumns(nn.Module):
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
