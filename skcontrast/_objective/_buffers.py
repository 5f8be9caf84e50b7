"""Arrays that are used again: from tile to tile, and from one loss to the next."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

# A thread keeps its buffers for the next loss unless they are larger.
_KEPT_BYTES = 2**26

_of_thread = threading.local()


class BufferPool:
    """A pool of reusable buffers.

    Memory that is new to the process costs more than a pass over it; what is handed out here has
    mostly been in use before.

    Parameters
    ----------
    device : torch.device
        The device of the arrays.
    """

    def __init__(self, device: torch.device):
        self._device = device
        self._arrays: dict[torch.dtype, list[Tensor]] = {}
        self._taken: dict[torch.dtype, int] = {}

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """Return an uninitialised array, reserved until it is released."""
        arrays, size = self._arrays.setdefault(dtype, []), math.prod(shape)
        place = self._taken.get(dtype, 0)
        self._taken[dtype] = place + 1
        with torch.inference_mode(False):  # whose tensors cannot be used for training afterwards
            if place == len(arrays):
                arrays.append(torch.empty(0, dtype=dtype, device=self._device))
            if arrays[place].numel() < size:
                arrays[place] = torch.empty(size, dtype=dtype, device=self._device)
            return arrays[place][:size].view(*shape)

    @contextlib.contextmanager
    def released(self) -> Iterator[None]:
        """Release on leaving what was handed out since entering."""
        taken = dict(self._taken)
        try:
            yield
        finally:
            self._taken = taken

    @property
    def n_bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(a.numel() * a.itemsize for part in self._arrays.values() for a in part)


@contextlib.contextmanager
def buffers_on(device: torch.device) -> Iterator[BufferPool]:
    """Lend this thread's buffers; on a GPU, whose memory torch keeps itself, new ones."""
    if device.type != "cpu":
        yield BufferPool(device)
        return
    lent = getattr(_of_thread, "buffers", None)
    _of_thread.buffers = None  # a loss within a loss gets another
    buffers = BufferPool(device) if lent is None else lent
    try:
        with buffers.released():
            yield buffers
    finally:
        _of_thread.buffers = buffers if buffers.n_bytes <= _KEPT_BYTES else None
