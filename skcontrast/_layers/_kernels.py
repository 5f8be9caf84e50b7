"""Convolutions of series with fixed kernels, counted above thresholds, as a layer."""

from __future__ import annotations

from itertools import combinations, groupby

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

# Weights of a kernel, of which `_N_TWOS` are 2 and the others -1, and all such kernels.
_SIZE, _N_TWOS = 9, 3
N_KERNELS = 84
# Dilations of a kernel are at most so many; more thresholds share them.
_MOST_DILATIONS = 32
# Kernels reach no farther; a damaged file may ask for any number.
_LARGEST_DILATION = 4096
# A kernel reads at most so many channels.
_MOST_CHANNELS = 9
# Where padding makes a batch of series larger by this factor, its parts are computed apart.
_MOST_PADDING = 4
# The golden ratio: its multiples modulo 1 are spread evenly, however many there are.
_PHI = (5**0.5 + 1) / 2


class KernelLayer(nn.Module):
    r"""How often the convolutions of a series with fixed kernels exceed thresholds.

    .. math:: f = \frac{1}{T} \sum_t \big[ (w *_d x)_t > b \big]

    for each of the 84 kernels w with weights 2, three times, and -1, six times, a number of
    dilations d and of thresholds b. Every second convolution sees zeros before and after the
    series; the others are counted only where the kernel is inside of it. Of several channels, a
    kernel convolves the sum of a few.

    Parameters
    ----------
    dilations : tuple of int
        In ascending order, one for each threshold of a kernel.
    thresholds : Tensor of shape (84, n_thresholds)
        The thresholds b of each kernel.
    channels : Tensor of shape (84, m), dtype int64
        The channels of each kernel; the number of channels stands for none.
    """

    thresholds: Tensor
    channels: Tensor
    weights: Tensor

    def __init__(self, dilations: tuple[int, ...], thresholds: Tensor, channels: Tensor):
        super().__init__()
        self.dilations = dilations
        self.register_buffer("thresholds", thresholds)
        self.register_buffer("channels", channels)
        self.register_buffer("weights", kernels())

    @classmethod
    @torch.no_grad()
    def of(cls, series: Tensor, n_features: int, rng: np.random.RandomState) -> KernelLayer:
        """Return a layer whose dilations suit the longest of training series (n, channels, times).

        A threshold is a quantile of the convolution of one of them, drawn for each kernel.
        """
        _, mask = without_end(series)
        longest = int(mask.sum(-1).max())
        dilations = _dilations(longest, n_features // N_KERNELS)
        thresholds = torch.zeros(N_KERNELS, len(dilations))
        layer = cls(dilations, thresholds, _channels(series.shape[1], rng))
        shares = (_PHI * torch.arange(1, thresholds.numel() + 1, dtype=torch.float64)) % 1
        shares = shares.view(len(dilations), N_KERNELS).T.float()
        for place, (dilation, columns) in enumerate(layer._groups()):
            drawn = series[torch.from_numpy(rng.randint(len(series), size=N_KERNELS))]
            x, mask = without_end(drawn)
            mixed = layer.mixed(x).roll(place, 1).expand(-1, N_KERNELS, -1)
            own = mixed.diagonal().T[None]  # each kernel has its own series
            found = layer.convolved(own, dilation)[0]
            for kernel in range(N_KERNELS):
                values = found[kernel, mask[kernel, 0] > 0]
                thresholds[kernel, columns] = values.quantile(shares[kernel, columns])
        return layer

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, times), NaN behind the end of a series, to (n, n_features)."""
        x, mask = without_end(x)
        parts = of_like_length(mask)
        return in_order([self._shares(x[part], mask[part]) for part in parts], parts)

    def _shares(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the features of series (n, channels, times), 0 where the mask is."""
        x, shares = self.mixed(x), []
        for place, (dilation, columns) in enumerate(self._groups()):
            # A kernel reads other channels at each dilation.
            found = self.convolved(x.roll(place, 1), dilation)
            counted = torch.cat([mask, _inside(mask, dilation)], 1).transpose(1, 2)
            n_counted = counted.sum(1, keepdim=True).clamp(min=1)
            is_padded = (torch.arange(N_KERNELS, device=x.device) + place) % 2 == 0
            for column in range(columns.start, columns.stop):
                above = found > self.thresholds[:, column, None]
                share = above.to(x.dtype) @ counted / n_counted
                shares.append(torch.where(is_padded, share[..., 0], share[..., 1]))
        return torch.cat(shares, 1)

    def mixed(self, x: Tensor) -> Tensor:
        """Return sums of a few channels, (n, 84, times), or the only channel, (n, 1, times)."""
        if x.shape[1] == 1:
            return x
        x = torch.cat([x, torch.zeros_like(x[:, :1])], 1)
        total = x.index_select(1, self.channels[:, 0])
        for column in range(1, self.channels.shape[1]):
            total = total + x.index_select(1, self.channels[:, column])
        return total

    def convolved(self, x: Tensor, dilation: int) -> Tensor:
        """Return the convolutions of (n, 84 or 1, times) with the kernels, (n, 84, times).

        Products with 2 and -1 are exact and sums have one order, so that a number does not depend
        on the size of the batch: it may be a threshold.
        """
        if dilation > _LARGEST_DILATION:
            raise ValueError(f"Dilations must be at most {_LARGEST_DILATION}, got {dilation}.")
        n_times = x.shape[-1]
        padded = F.pad(x, [_SIZE // 2 * dilation] * 2)
        total = padded[..., :n_times] * self.weights[:, :1]
        for step in range(1, _SIZE):
            shifted = padded[..., step * dilation : step * dilation + n_times]
            total = torch.addcmul(total, shifted, self.weights[:, step, None])
        return total

    def _groups(self) -> list[tuple[int, slice]]:
        """Return each dilation with the columns of its thresholds."""
        found, start = [], 0
        for dilation, group in groupby(self.dilations):
            n = len(list(group))
            found.append((dilation, slice(start, start + n)))
            start += n
        return found


def kernels() -> Tensor:
    """Return the 84 kernels, shape (84, 9)."""
    weights = torch.full((N_KERNELS, _SIZE), -1.0)
    for kernel, twos in zip(weights, combinations(range(_SIZE), _N_TWOS), strict=True):
        kernel[list(twos)] = 2.0
    return weights


def without_end(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return series with zeros instead of NaN, and 1 where they are, 0 behind their ends.

    Parameters
    ----------
    x : Tensor of shape (n, channels, times)
        NaN in all channels behind the end of a series.

    Returns
    -------
    x : Tensor of shape (n, channels, times)
    mask : Tensor of shape (n, 1, times)
    """
    is_end = x[:, :1].isnan()
    return torch.where(is_end, 0.0, x), (~is_end).to(x.dtype)


def of_like_length(mask: Tensor) -> list[tuple]:
    """Return a batch of series in parts, indices of (n, channels, times), each of like lengths.

    It is one part unless most of it is padding, or its program is traced.

    Parameters
    ----------
    mask : Tensor of shape (n, 1, times)
        As `without_end` returns it.
    """
    is_traced = mask.is_meta or torch.compiler.is_compiling()
    if is_traced or _MOST_PADDING * mask.sum() >= mask.numel():
        return [(slice(None),)]
    lengths = mask.sum((1, 2)).long().clamp(min=1)
    size = lengths.log2() // 2  # up to a factor of 4
    rows = [(size == one).nonzero()[:, 0] for one in size.unique()]
    return [(some, slice(None), slice(int(lengths[some].max()))) for some in rows]


def in_order(found: list[Tensor], parts: list[tuple]) -> Tensor:
    """Return what was computed for the parts of a batch in the order of its rows."""
    if len(parts) == 1:
        return found[0]
    return torch.cat(found)[torch.cat([part[0] for part in parts]).argsort()]


def _inside(mask: Tensor, dilation: int) -> Tensor:
    """Return 1 where a kernel is inside of a series, (n, 1, times)."""
    reach = _SIZE // 2 * dilation
    padded = F.pad(mask, [reach, reach])
    n_times = mask.shape[-1]
    return padded[..., :n_times] * padded[..., 2 * reach : 2 * reach + n_times]


def _dilations(longest: int, n: int) -> tuple[int, ...]:
    """Return n dilations, from 1 to that of a kernel as long as a series, on a log scale."""
    most = min(max((longest - 1) / (_SIZE - 1), 1), _LARGEST_DILATION)
    several = np.logspace(0, np.log2(most), min(n, _MOST_DILATIONS), base=2).astype(int)
    return tuple(sorted(int(several[k % len(several)]) for k in range(n)))


def _channels(n_channels: int, rng: np.random.RandomState) -> Tensor:
    """Return the channels of each kernel, (84, m): few more often than many, up to nine."""
    most = min(n_channels, _MOST_CHANNELS)
    sizes = (2 ** rng.uniform(0, np.log2(most + 1), N_KERNELS)).astype(int).clip(1, most)
    found: NDArray[np.int64] = np.full((N_KERNELS, sizes.max()), n_channels)
    for row, size in zip(found, sizes, strict=True):
        row[:size] = np.sort(rng.choice(n_channels, size, replace=False))
    return torch.from_numpy(found)
