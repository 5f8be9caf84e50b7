"""Arrays that are used again: from tile to tile, and from one loss to the next."""

from __future__ import annotations

import contextlib
import math
import threading
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

# What a thread keeps for the next loss.
_KEPT_BYTES = 2**26
# The least that is asked of the system at a time, and what the places of arrays are multiples of.
_CHUNK_BYTES = 2**20
_ALIGNMENT = 64

_of_thread = threading.local()


class Arena:
    """Memory for arrays that are released in the reverse order of their making.

    Memory that is new to the process costs more than a pass over it; what is handed out here has
    mostly been in use before, by an array of any dtype.

    Parameters
    ----------
    device : torch.device
        The device of the arrays.
    """

    def __init__(self, device: torch.device):
        self._device = device
        self._chunks: list[torch.UntypedStorage] = []
        self._taken = 0, 0  # chunks before the current one, and bytes of that

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        """Return an uninitialised array, reserved until it is released."""
        size, (place, start) = math.prod(shape), self._taken
        n_bytes = size * dtype.itemsize
        while place < len(self._chunks) and start + n_bytes > self._chunks[place].nbytes():
            place, start = place + 1, 0
        if place == len(self._chunks):
            # Chunks double what there is, so that there are few.
            size_of_chunk = max(n_bytes, self.n_bytes, _CHUNK_BYTES)
            self._chunks.append(torch.UntypedStorage(size_of_chunk, device=self._device))
        self._taken = place, start + -(-n_bytes // _ALIGNMENT) * _ALIGNMENT
        with torch.inference_mode(False):  # whose tensors cannot be used for training afterwards
            array = torch.empty(0, dtype=dtype, device=self._device)
            # Unlike a view, it does not count changes of other arrays as its own.
            array.set_(self._chunks[place], start // dtype.itemsize, (size,), (1,))
            return array.view(*shape)

    @contextlib.contextmanager
    def released(self) -> Iterator[None]:
        """Release on leaving what was handed out since entering."""
        taken = self._taken
        try:
            yield
        finally:
            self._taken = taken

    def keep(self, n_bytes: int) -> None:
        """Release all arrays, and give the system back what is held beyond a number of bytes."""
        self._taken = 0, 0
        while self.n_bytes > n_bytes:
            self._chunks.pop()
        if len(self._chunks) > 1:  # as one chunk they hold larger arrays
            n_held = self.n_bytes
            self._chunks.clear()
            self._chunks.append(torch.UntypedStorage(n_held, device=self._device))

    @property
    def n_bytes(self) -> int:
        """Bytes that are held, handed out or not."""
        return sum(chunk.nbytes() for chunk in self._chunks)


@contextlib.contextmanager
def buffers_on(device: torch.device) -> Iterator[Arena]:
    """Lend this thread's arena; on a GPU, whose memory torch keeps itself, a new one."""
    if device.type != "cpu":
        yield Arena(device)
        return
    lent = getattr(_of_thread, "buffers", None)
    _of_thread.buffers = None  # a loss within a loss gets another
    buffers = Arena(device) if lent is None else lent
    yield buffers
    # After an error, its traceback keeps the arrays alive: then this arena is not lent again.
    buffers.keep(_KEPT_BYTES)
    _of_thread.buffers = buffers
