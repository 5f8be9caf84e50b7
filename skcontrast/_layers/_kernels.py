"""MiniRocket's features as a layer: how often convolutions of series exceed thresholds."""

from __future__ import annotations

from functools import reduce
from itertools import accumulate, combinations, groupby

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

# The size of a kernel, whose weights are 2 for `_N_TWOS` and -1 for others; and their number.
SIZE, _N_TWOS = 9, 3
N_KERNELS = 84
# The maximum dilation.
LARGEST_DILATION = 4096


def convolutions(x: Tensor, times: Tensor | None, dilation: int) -> tuple[Tensor, Tensor]:
    """Return 3 × the sums over weights 2, (n, 84, m), and the sums over all, (n, 84 or 1, m).

    A convolution is their difference. The order of additions does not depend on other samples,
    since a result may equal a threshold. For a constant series, differences are exactly zero.

    Parameters
    ----------
    x : Tensor of shape (n, 84 or 1, times)
        The input of each kernel, or of all.
    times : Tensor of shape (n or 1, 84 or 1, m), dtype int64, or None
        The times of the results; None is all.
    dilation : int
        The dilation.
    """
    padded = F.pad(x, [SIZE // 2 * dilation] * 2)
    if times is None:
        windows = padded.unfold(-1, x.shape[-1], dilation)
    else:
        steps = dilation * torch.arange(SIZE, device=x.device)
        index = (times[:, :, None] + steps[:, None]).flatten(2)
        windows = padded.gather(2, index.expand(*x.shape[:2], -1)).unflatten(2, (SIZE, -1))
    thirds = windows[:, :, :3] + windows[:, :, 3:6] + windows[:, :, 6:]
    nine = thirds[:, :, 0] + thirds[:, :, 1] + thirds[:, :, 2]
    if x.shape[1] == 1:  # kernels share sums of pairs
        tripled = windows[:, 0].mul(3)
        first = tripled.split(1, 1)
        pairs = torch.cat([first[i] + tripled[:, i + 1 :] for i in range(SIZE - 1)], 1)
        starts = accumulate(range(SIZE - 1, 1, -1))
        twos = [number + pairs[:, start:] for number, start in zip(first, starts, strict=False)]
        return torch.cat(twos, 1), nine
    kernels = torch.tensor(list(combinations(range(SIZE), _N_TWOS)), device=windows.device)
    first = SIZE * torch.arange(windows.shape[1], device=windows.device)
    rows, windows = first[:, None] + kernels, windows.flatten(1, 2)
    a, b, c = (windows.index_select(1, row).mul_(3) for row in rows.T)
    return b.add_(c).add_(a), nine


def is_traced(x: Tensor) -> bool:
    """Return whether a program is traced, which must not depend on values."""
    return x.is_meta or torch.compiler.is_compiling()


# The maximum number of dilations of a kernel; more thresholds share them.
_MOST_DILATIONS = 32
# The maximum number of channels of a kernel.
_MOST_CHANNELS = 9
# In series of at least twice this length, between this and twice this number of times count.
_LEAST_TIMES = 500
# Numbers of a convolution that are computed at once, so that a processor keeps them in its cache.
_BLOCK, _BLOCK_ON_DEVICE = 700_000, 2**24
# If padding multiplies a batch of series by this, series of similar lengths are grouped.
_MOST_PADDING = 4
# The golden ratio: its multiples modulo 1 are spread evenly.
_PHI = (5**0.5 + 1) / 2
_PHI_BITS = int(_PHI % 1 * 2**16)


class KernelLayer(nn.Module):
    r"""How often the convolutions of a series with fixed kernels exceed thresholds.

    .. math:: f = \frac{1}{T} \sum_t \big[ (w *_d x)_t > b \big]

    for each of the 84 kernels w with weights 2, three times, and -1, six times, a number of
    dilations d and of thresholds b. Every second convolution is padded with zeros;
    the others are counted only where the kernel is inside of it. With several channels, a
    kernel convolves the sum of a few. In series of 1,000 steps or more, 500 to 1,000 steps
    count. They are spread evenly, with jitter, so that they do not coincide with periods.

    Parameters
    ----------
    dilations : tuple of int
        The dilation of each threshold of a kernel, ascending.
    thresholds : Tensor of shape (84, n_thresholds)
        The thresholds b of each kernel.
    channels : Tensor of shape (84, m), dtype int64
        The channels of each kernel, filled up with the number of channels.
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
        """Return a layer with dilations and thresholds from training series (n, channels, times).

        Dilations depend on the longest series. A threshold is a quantile of the convolution of a
        random series.
        """
        _, mask = without_end(series)
        dilations = _dilations(int(mask.sum(-1).max()), n_features // N_KERNELS)
        thresholds = torch.zeros(N_KERNELS, len(dilations))
        layer = cls(dilations, thresholds, _channels(series.shape[1], rng))
        # The golden ratio spreads the shares evenly over [0, 1].
        shares = (_PHI * torch.arange(1, thresholds.numel() + 1, dtype=torch.float64)) % 1
        shares = shares.view(len(dilations), N_KERNELS).T.float()
        for k, (dilation, columns) in enumerate(layer._groups()):
            # As in the paper, each kernel and dilation has a random training series.
            chosen = series[torch.from_numpy(rng.randint(len(series), size=N_KERNELS))]
            x, mask = without_end(chosen)
            times, exist = _counted_times(mask)
            inputs = _inputs_of_kernels(x, layer.channels.roll(k, 0))
            times_of_kernel = None if times is None else times.transpose(0, 1)
            twos, nine = convolutions(inputs, times_of_kernel, dilation)
            for kernel, values in enumerate((twos - nine)[0]):
                known = values[exist[kernel, 0]]
                thresholds[kernel, columns] = known.quantile(shares[kernel, columns])
        return layer

    @torch.no_grad()
    def forward(self, x: Tensor) -> Tensor:
        """Map series (n, channels, times), padded with NaN, to (n, n_features)."""
        x, mask = without_end(x)
        groups = of_like_length(mask)
        return in_order([self._in_blocks(x[rows], mask[rows]) for rows in groups], groups)

    def _in_blocks(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the features of series (n, channels, times), 0 where the mask is."""
        if is_traced(x):
            return self._shares(x, mask)
        n_numbers = min(x.shape[2], 2 * _LEAST_TIMES) * N_KERNELS
        n_numbers = n_numbers if x.shape[1] == 1 else SIZE * n_numbers
        most = _BLOCK if x.device.type == "cpu" else _BLOCK_ON_DEVICE
        n_blocks = max(1, min(len(x), -(-len(x) * n_numbers // most)))  # of nearly one size
        blocks = zip(x.chunk(n_blocks), mask.chunk(n_blocks), strict=True)
        return torch.cat([self._shares(*block) for block in blocks])

    def _shares(self, x: Tensor, mask: Tensor) -> Tensor:
        """Return the features of a block of series."""
        if not is_traced(mask) and mask.all():
            mask = mask[:1]
        times, exist = _counted_times(mask)
        lost, n_counted = self._lost(mask, exist, times)
        mixed, counts = self.mixed(x), []
        for k, (dilation, columns) in enumerate(self._groups()):
            # A kernel has other channels at each dilation.
            twos, nine = convolutions(mixed.roll(k, 1), times, dilation)
            nine = nine.unflatten(1, (-1, 2 if nine.shape[1] > 1 else 1)) + lost[k]
            values = twos.unflatten(1, (-1, 2)).sub_(nine).flatten(1, 2)
            for thresholds in self.thresholds[:, columns, None].unbind(1):
                # Floats, since sums of booleans are slow.
                above = (
                    (values > thresholds).to(values.dtype)
                    if is_traced(values)
                    else torch.gt(values, thresholds, out=torch.empty_like(values))
                )
                counts.append(above.sum(-1))
        return torch.cat(counts, 1) / n_counted

    def _lost(self, mask: Tensor, exist: Tensor, times: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return a mask of the times that do not count, for each dilation, and the number that do.

        Kernels alternate: one counts everywhere, the next only where it is inside of the series.

        Returns
        -------
        lost : Tensor of shape (n_dilations, n, 1, 2, m)
            NaN where they do not count, since NaN exceeds no threshold; else 0.
        n_counted : Tensor of shape (n, n_features)
        """
        reach = torch.tensor([SIZE // 2 * dilation for dilation, _ in self._groups()])
        reach = reach.to(mask.device)[:, None, None, None]
        if times is None:
            times = torch.arange(mask.shape[-1], device=mask.device)
        lengths = mask.sum(-1, keepdim=True)
        # As in MiniRocket, every other kernel counts only where it is inside of the series. From
        # one dilation to the next, the two alternate.
        inside = exist & (times >= reach) & (times + reach < lengths)
        counted = torch.stack([exist.expand_as(inside), inside], 3)
        counted[1::2] = counted[1::2].flip(3)
        n_counted = counted.sum(-1)[:, :, 0].clamp(min=1).to(mask.dtype)
        of_features = [
            n_counted[k].repeat(1, N_KERNELS // 2 * (columns.stop - columns.start))
            for k, (_, columns) in enumerate(self._groups())
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
        groups, start = [], 0
        for dilation, group in groupby(self.dilations):
            n = len(list(group))
            groups.append((dilation, slice(start, start + n)))
            start += n
        return groups


def _inputs_of_kernels(x: Tensor, channels: Tensor) -> Tensor:
    """Return the input of each kernel, (1, 84, times), from its series: as in `mixed`.

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
    """Return series with zeros instead of NaN, and a mask: 1 before the end of a series, 0 after.

    Parameters
    ----------
    x : Tensor of shape (n, channels, times)
        Series, padded with NaN.

    Returns
    -------
    x : Tensor of shape (n, channels, times)
    mask : Tensor of shape (n, 1, times)
    """
    is_end = x[:, :1].isnan()
    return torch.where(is_end, 0.0, x), (~is_end).to(x.dtype)


def of_like_length(mask: Tensor) -> list[tuple]:
    """Return indices of groups of series (n, channels, times) of similar lengths.

    It is one group unless most of the batch is padding, or if the program is traced.

    Parameters
    ----------
    mask : Tensor of shape (n, 1, times)
        Output of `without_end`.
    """
    if is_traced(mask) or _MOST_PADDING * mask.sum() >= mask.numel():
        return [(slice(None),)]
    lengths = mask.sum((1, 2)).long().clamp(min=1)
    size = lengths.log2() // 2  # up to a factor of 4
    rows = [(size == level).nonzero()[:, 0] for level in size.unique()]
    return [(chosen, slice(None), slice(int(lengths[chosen].max()))) for chosen in rows]


def in_order(outputs: list[Tensor], groups: list[tuple]) -> Tensor:
    """Concatenate the outputs of groups of series in the order of the batch."""
    if len(groups) == 1:
        return outputs[0]
    return torch.cat(outputs)[torch.cat([rows[0] for rows in groups]).argsort()]


def _counted_times(mask: Tensor) -> tuple[Tensor | None, Tensor]:
    """Return the times that count, and a mask of those before the end of their series.

    They only depend on the length of a series.

    Parameters
    ----------
    mask : Tensor of shape (n, 1, times)
        Output of `without_end`.

    Returns
    -------
    times : Tensor of shape (n, 1, m), dtype int64, or None
        None is all times.
    exist : Tensor of shape (n, 1, m), dtype bool
    """
    n_times = mask.shape[-1]
    if not is_traced(mask) and n_times < 2 * _LEAST_TIMES:
        return None, mask > 0
    lengths = mask.sum(-1, keepdim=True).long()
    stride = (lengths // _LEAST_TIMES).clamp(min=1)
    most = n_times if is_traced(mask) else -int((-lengths // stride).min())
    index = torch.arange(most, device=mask.device)
    # Multiples of the golden ratio, modulo 1, as integers: the same on every device.
    times = index * stride + (index * _PHI_BITS % 2**16) * stride // 2**16
    return times.clamp(max=n_times - 1), times < lengths


def _dilations(longest: int, n: int) -> tuple[int, ...]:
    """Return n dilations on a log scale, up to that of a kernel as long as the longest series."""
    most = min(max((longest - 1) / (SIZE - 1), 1), LARGEST_DILATION)
    dilations = np.logspace(0, np.log2(most), min(n, _MOST_DILATIONS), base=2).astype(int)
    return tuple(sorted(int(dilations[k % len(dilations)]) for k in range(n)))


def _channels(n_channels: int, rng: np.random.RandomState) -> Tensor:
    """Return the channels of each kernel, (84, m): up to nine, small numbers more often."""
    most = min(n_channels, _MOST_CHANNELS)
    sizes = (2 ** rng.uniform(0, np.log2(most + 1), N_KERNELS)).astype(int).clip(1, most)
    channels: NDArray[np.int64] = np.full((N_KERNELS, sizes.max()), n_channels)
    for row, size in zip(channels, sizes, strict=True):
        row[:size] = np.sort(rng.choice(n_channels, size, replace=False))
    return torch.from_numpy(channels)
