"""Convolutions of series with fixed kernels, counted above thresholds, as a layer."""

from __future__ import annotations

from functools import reduce
from itertools import accumulate, combinations, groupby

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

# Weights of a kernel, of which `_N_TWOS` are 2 and the others -1, and all such kernels.
SIZE, _N_TWOS = 9, 3
N_KERNELS = 84
# Kernels reach no farther.
LARGEST_DILATION = 4096


def convolutions(x: Tensor, places: Tensor | None, dilation: int) -> tuple[Tensor, Tensor]:
    """Return thrice the sums at the twos, (n, 84, m), and the sums of all nine, (n, 84 or 1, m).

    A convolution is their difference. Numbers are added in one order, independent of the other
    samples: one of the results may be a threshold. For a constant series, all are exactly zero.

    Parameters
    ----------
    x : Tensor of shape (n, 84 or 1, times)
        What each kernel reads, or all.
    places : Tensor of shape (n or 1, 84 or 1, m), dtype int64, or None
        The times at which they are wanted; None is all.
    dilation : int
        From one number to the next.
    """
    padded = F.pad(x, [SIZE // 2 * dilation] * 2)
    if places is None:
        windows = padded.unfold(-1, x.shape[-1], dilation)
    else:
        steps = dilation * torch.arange(SIZE, device=x.device)
        index = (places[:, :, None] + steps[:, None]).flatten(2)
        windows = padded.gather(2, index.expand(*x.shape[:2], -1)).unflatten(2, (SIZE, -1))
    thirds = windows[:, :, :3] + windows[:, :, 3:6] + windows[:, :, 6:]
    nine = thirds[:, :, 0] + thirds[:, :, 1] + thirds[:, :, 2]
    if x.shape[1] == 1:  # kernels share the sums of two numbers
        numbers = windows[:, 0].mul(3)
        first = numbers.split(1, 1)
        pairs = torch.cat([first[i] + numbers[:, i + 1 :] for i in range(SIZE - 1)], 1)
        starts = accumulate(range(SIZE - 1, 1, -1))
        twos = [one + pairs[:, start:] for one, start in zip(first, starts, strict=False)]
        return torch.cat(twos, 1), nine
    kernels = torch.tensor(list(combinations(range(SIZE), _N_TWOS)), device=windows.device)
    first = SIZE * torch.arange(windows.shape[1], device=windows.device)
    rows, windows = first[:, None] + kernels, windows.flatten(1, 2)
    a, b, c = (windows.index_select(1, row).mul_(3) for row in rows.T)
    return b.add_(c).add_(a), nine


def is_traced(x: Tensor) -> bool:
    """Return whether a program for any shape is made, and nothing may be decided by numbers."""
    return x.is_meta or torch.compiler.is_compiling()


# The largest number of dilations of a kernel; further thresholds share them.
_MOST_DILATIONS = 32
# The largest number of channels of a kernel.
_MOST_CHANNELS = 9
# Series of at least twice this length are counted at some times, between this and its double.
_LEAST_PLACES = 500
# Numbers of a convolution that are computed at once, so that a processor keeps them in its cache.
_BLOCK, _BLOCK_ON_DEVICE = 700_000, 2**24
# Where padding makes a batch of series larger by this factor, its parts are computed apart.
_MOST_PADDING = 4
# The golden ratio: its multiples modulo 1 are spread evenly, however many there are.
_PHI = (5**0.5 + 1) / 2
_PHI_BITS = int(_PHI % 1 * 2**16)


class KernelLayer(nn.Module):
    r"""How often the convolutions of a series with fixed kernels exceed thresholds.

    .. math:: f = \frac{1}{T} \sum_t \big[ (w *_d x)_t > b \big]

    for each of the 84 kernels w with weights 2, three times, and -1, six times, a number of
    dilations d and of thresholds b. Every second convolution is padded with zeros;
    the others are counted only where the kernel is inside of it. With several channels, a
    kernel convolves the sum of a few. In series of 1,000 times or more, 500 to 1,000 are counted.
    They are spread evenly, with jitter, so that they do not coincide with periods.

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

    def __init__(self, dilations: tuple[int, ...], thresholds: Tensor, channels: Tensor):
        super().__init__()
        self.dilations = dilations
        self.register_buffer("thresholds", thresholds)
        self.register_buffer("channels", channels)

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
        # The golden ratio spreads the shares evenly over [0, 1], however many there are.
        shares = (_PHI * torch.arange(1, thresholds.numel() + 1, dtype=torch.float64)) % 1
        shares = shares.view(len(dilations), N_KERNELS).T.float()
        for place, (dilation, columns) in enumerate(layer._groups()):
            # The paper's thresholds: quantiles of what a kernel returns for one training series,
            # drawn at random for each kernel and dilation.
            drawn = series[torch.from_numpy(rng.randint(len(series), size=N_KERNELS))]
            x, mask = without_end(drawn)
            places, are_there = _places(mask)
            own = _each(x, layer.channels.roll(place, 0))
            own_places = None if places is None else places.transpose(0, 1)
            twos, nine = convolutions(own, own_places, dilation)
            for kernel, values in enumerate((twos - nine)[0]):
                # What follows the end of a series is none of it.
                known = values[are_there[kernel, 0]]
                thresholds[kernel, columns] = known.quantile(shares[kernel, columns])
        return layer

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, times), NaN behind the end of a series, to (n, n_features)."""
        x, mask = without_end(x)
        parts = of_like_length(mask)
        return in_order([self._in_blocks(x[part], mask[part]) for part in parts], parts)

    def _in_blocks(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the features of series (n, channels, times), 0 where the mask is."""
        if is_traced(x):
            return self._shares(x, mask)
        n_numbers = min(x.shape[2], 2 * _LEAST_PLACES) * N_KERNELS
        n_numbers = n_numbers if x.shape[1] == 1 else SIZE * n_numbers
        most = _BLOCK if x.device.type == "cpu" else _BLOCK_ON_DEVICE
        n_blocks = max(1, min(len(x), -(-len(x) * n_numbers // most)))  # of nearly one size
        blocks = zip(x.chunk(n_blocks), mask.chunk(n_blocks), strict=True)
        return torch.cat([self._shares(*block) for block in blocks])

    def _shares(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the features of a block of series."""
        if not is_traced(mask) and mask.all():
            mask = mask[:1]
        places, are_there = _places(mask)
        lost, n_counted = self._lost(mask, are_there, places)
        mixed, found = self.mixed(x), []
        for place, (dilation, columns) in enumerate(self._groups()):
            # A kernel reads other channels at each dilation.
            twos, nine = convolutions(mixed.roll(place, 1), places, dilation)
            nine = nine.unflatten(1, (-1, 2 if nine.shape[1] > 1 else 1)) + lost[place]
            values = twos.unflatten(1, (-1, 2)).sub_(nine).flatten(1, 2)
            for thresholds in self.thresholds[:, columns, None].unbind(1):
                # Floats, not booleans, which no processor adds up fast.
                above = (
                    (values > thresholds).to(values.dtype)
                    if is_traced(values)
                    else torch.gt(values, thresholds, out=torch.empty_like(values))
                )
                found.append(above.sum(-1))
        return torch.cat(found, 1) / n_counted

    def _lost(
        self, mask: Tensor, are_there: Tensor, places: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return where convolutions are not counted, for each dilation, and at how many they are.

        Kernels take turns: one is counted everywhere, the next where it is inside of the series.

        Returns
        -------
        lost : Tensor of shape (n_dilations, n, 1, 2, m)
            0, or NaN, which is above no threshold.
        n_counted : Tensor of shape (n, n_features)
        """
        reach = torch.tensor([SIZE // 2 * dilation for dilation, _ in self._groups()])
        reach = reach.to(mask.device)[:, None, None, None]
        if places is None:
            places = torch.arange(mask.shape[-1], device=mask.device)
        lengths = mask.sum(-1, keepdim=True)
        # As in MiniRocket, every other kernel counts only where all that it reaches lies within
        # the series; from one dilation to the next the two change places.
        inside = are_there & (places >= reach) & (places + reach < lengths)
        counted = torch.stack([are_there.expand_as(inside), inside], 3)
        counted[1::2] = counted[1::2].flip(3)
        n_counted = counted.sum(-1)[:, :, 0].clamp(min=1).to(mask.dtype)
        of_features = [
            n_counted[place].repeat(1, N_KERNELS // 2 * (columns.stop - columns.start))
            for place, (_, columns) in enumerate(self._groups())
        ]
        return torch.where(counted, 0.0, torch.nan), torch.cat(of_features, 1)

    def mixed(self, x: Tensor) -> Tensor:
        """Return sums of a few channels, (n, 84, times), or the only channel, (n, 1, times)."""
        if x.shape[1] == 1:
            return x
        x = torch.cat([x, torch.zeros_like(x[:, :1])], 1)
        total = x.index_select(1, self.channels[:, 0])
        for column in range(1, self.channels.shape[1]):
            total = total + x.index_select(1, self.channels[:, column])
        return total

    def _groups(self) -> list[tuple[int, slice]]:
        """Return each dilation with the columns of its thresholds."""
        found, start = [], 0
        for dilation, group in groupby(self.dilations):
            n = len(list(group))
            found.append((dilation, slice(start, start + n)))
            start += n
        return found


def _each(x: Tensor, channels: Tensor) -> Tensor:
    """Return what each kernel reads, (1, 84, times), in a series of its own: as in `mixed`.

    Parameters
    ----------
    x : Tensor of shape (84, channels, times)
        A series for each kernel.
    channels : Tensor of shape (84, m)
        As in `KernelLayer`.
    """
    x = torch.cat([x, torch.zeros_like(x[:, :1])], 1)
    kernels = torch.arange(len(x), device=x.device)
    first, *others = (x[kernels, column] for column in channels.T)
    return reduce(torch.add, others, first)[None]


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
    if is_traced(mask) or _MOST_PADDING * mask.sum() >= mask.numel():
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


def _places(mask: Tensor) -> tuple[Tensor | None, Tensor]:
    """Return the times at which series are counted, and which of them are before their ends.

    They depend on the length of a series alone.

    Parameters
    ----------
    mask : Tensor of shape (n, 1, times)
        As `without_end` returns it.

    Returns
    -------
    places : Tensor of shape (n, 1, m), dtype int64, or None
        None is all times.
    are_there : Tensor of shape (n, 1, m), dtype bool
    """
    n_times = mask.shape[-1]
    if not is_traced(mask) and n_times < 2 * _LEAST_PLACES:
        return None, mask > 0
    lengths = mask.sum(-1, keepdim=True).long()
    stride = (lengths // _LEAST_PLACES).clamp(min=1)
    most = n_times if is_traced(mask) else -int((-lengths // stride).min())
    place = torch.arange(most, device=mask.device)
    # Multiples of the golden ratio, modulo 1, as integers: the same on every device.
    places = place * stride + (place * _PHI_BITS % 2**16) * stride // 2**16
    return places.clamp(max=n_times - 1), places < lengths


def _dilations(longest: int, n: int) -> tuple[int, ...]:
    """Return n dilations, from 1 to that of a kernel as long as a series, on a log scale."""
    most = min(max((longest - 1) / (SIZE - 1), 1), LARGEST_DILATION)
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
