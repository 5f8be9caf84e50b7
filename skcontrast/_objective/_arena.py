"""Arrays that are handed out again for each tile."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor


class Arena:
    """Room for the numbers of a tile, which the next tile overwrites.

    Memory that is new to the process costs more than a pass over it.

    Parameters
    ----------
    like : Tensor
        Gives device and dtype.
    """

    def __init__(self, like: Tensor):
        self._like = like
        self._arrays: dict[torch.dtype, list[Tensor]] = {}
        self._taken: dict[torch.dtype, int] = {}

    def clear(self) -> None:
        """Declare free all that was handed out."""
        self._taken.clear()

    def empty(self, shape: Sequence[int], dtype: torch.dtype | None = None) -> Tensor:
        """Return an array with anything in it."""
        dtype = self._like.dtype if dtype is None else dtype
        arrays, size = self._arrays.setdefault(dtype, []), math.prod(shape)
        place = self._taken[dtype] = self._taken.get(dtype, -1) + 1
        if place == len(arrays):
            arrays.append(self._like.new_empty(0, dtype=dtype))
        if arrays[place].numel() < size:
            arrays[place] = self._like.new_empty(size, dtype=dtype)
        return arrays[place][:size].view(*shape)
