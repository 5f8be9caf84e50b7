"""Dilated convolutions of series with 84 fixed kernels, three numbers of which are 2, six -1."""

from __future__ import annotations

from itertools import accumulate, combinations

import torch
import torch.nn.functional as F
from torch import Tensor

# Weights of a kernel, of which `_N_TWOS` are 2 and the others -1, and all such kernels.
SIZE, _N_TWOS = 9, 3
N_KERNELS = 84
# Kernels reach no farther; a damaged file may ask for any number.
LARGEST_DILATION = 4096


class Convolutions:
    """Convolutions of a batch of series, as differences of two sums.

    A convolution is three times the sum of the numbers at the twos, less the sum of all nine,
    which is common to the kernels. Numbers are added in one order, whatever else is in the batch:
    one of the results may be a threshold. Where a series is constant, all are exactly zero.

    Parameters
    ----------
    x : Tensor of shape (n, 84 or 1, times)
        What each kernel reads, or all.
    places : Tensor of shape (n or 1, 84 or 1, m), dtype int64, or None
        The times at which they are wanted; None is all.
    rooms : dict
        Memory of earlier batches by its shape, which is used again, and grows.
    """

    def __init__(self, x: Tensor, places: Tensor | None, rooms: dict[tuple, _Rooms]):
        self.x, self.places = x, places
        self.rooms = None
        if x.shape[1] == 1 and not is_traced(x):
            shape = len(x), x.shape[2] if places is None else places.shape[2]
            if shape not in rooms:
                rooms[shape] = _Rooms(x, *shape)
            self.rooms = rooms[shape]

    def at(self, dilation: int, roll: int = 0) -> tuple[Tensor, Tensor]:
        """Return thrice the sums at the twos, (n, 84, m), and of all nine, (n, 84 or 1, m).

        Parameters
        ----------
        dilation : int
            From one number to the next.
        roll : int, default=0
            A kernel reads what the one so many before it would.
        """
        if dilation > LARGEST_DILATION:
            raise ValueError(f"Dilations must be at most {LARGEST_DILATION}, got {dilation}.")
        if self.rooms is not None:
            return self.rooms.sums(self._windows(self.x, dilation))
        return _sums(self._windows(self.x.roll(roll, 1), dilation))

    def _windows(self, x: Tensor, dilation: int) -> Tensor:
        """Return what a kernel reads at each place, (n, 84 or 1, 9, m)."""
        padded = F.pad(x, [SIZE // 2 * dilation] * 2)
        if self.places is None:
            return padded.unfold(-1, x.shape[-1], dilation)
        steps = dilation * torch.arange(SIZE, device=x.device)
        index = (self.places[:, :, None] + steps[:, None]).flatten(2)
        return padded.gather(2, index.expand(*x.shape[:2], -1)).unflatten(2, (SIZE, -1))

    def n_above(self, found: Tensor, thresholds: Tensor) -> Tensor:
        """Return how many numbers of the last axis are above thresholds, as floats."""
        if self.rooms is None:
            return (found > thresholds).to(found.dtype).sum(-1)
        # Floats, not booleans, which no processor adds up fast.
        return torch.gt(found, thresholds, out=self.rooms.above).sum(-1)


def _sums(windows: Tensor) -> tuple[Tensor, Tensor]:
    """Return both sums of windows (n, 84 or 1, 9, m); see `Convolutions.at`."""
    thirds = windows[:, :, :3] + windows[:, :, 3:6] + windows[:, :, 6:]
    nine = thirds[:, :, 0] + thirds[:, :, 1] + thirds[:, :, 2]
    kernels = torch.tensor(list(combinations(range(SIZE), _N_TWOS)), device=windows.device)
    first = SIZE * torch.arange(windows.shape[1], device=windows.device)
    rows, windows = first[:, None] + kernels, windows.flatten(1, 2)
    a, b, c = (windows.index_select(1, row).mul_(3) for row in rows.T)
    return b.add_(c).add_(a), nine


class _Rooms:
    """Memory that the convolutions of a batch of series of one channel use again and again."""

    def __init__(self, x: Tensor, n: int, m: int):
        def room(n_maps: int) -> Tensor:
            return x.new_empty(n, n_maps, m)

        self.windows, thirds, self.nine, pairs = room(SIZE), room(3), room(1), room(36)
        self.twos, self.above = room(N_KERNELS), room(N_KERNELS)
        parts, (a, b, c) = self.windows.split(3, 1), thirds.split(1, 1)
        self.to_nine = [
            (parts[0], parts[1], thirds),
            (thirds, parts[2], thirds),
            (a, b, self.nine),
            (self.nine, c, self.nine),
        ]
        # Pairs in the order of their first number: those that begin behind i are the last ones.
        starts = [0, *accumulate(range(SIZE - 1, 0, -1))]
        firsts = self.windows.split(1, 1)
        self.to_twos = [
            (firsts[i], self.windows[:, i + 1 :], pairs[:, starts[i] : starts[i + 1]])
            for i in range(SIZE - 1)
        ]
        behind = [pairs[:, start:] for start in starts[1:-1]]
        triples = self.twos.split([part.shape[1] for part in behind], 1)
        self.to_twos += zip(firsts, behind, triples, strict=False)

    def sums(self, windows: Tensor) -> tuple[Tensor, Tensor]:
        """Return both sums of windows (n, 1, 9, m); see `Convolutions.at`."""
        self.windows.copy_(windows[:, 0])
        for one, other, total in self.to_nine:
            torch.add(one, other, out=total)
        self.windows.mul_(3)
        for one, other, total in self.to_twos:
            torch.add(one, other, out=total)
        return self.twos, self.nine


def is_traced(x: Tensor) -> bool:
    """Return whether a program for any shape is made, and nothing may be decided by numbers."""
    return x.is_meta or torch.compiler.is_compiling()
