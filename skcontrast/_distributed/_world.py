"""One fit on several processes, the ranks of a ``torch.distributed`` group.

All ranks go through the same fit: the same batches, views and weights, the same numbers in the
history. What costs is shared out: each rank encodes its share of the rows of a batch
(``_shared_network.py``) and computes the loss of its share of the anchors, among the candidates
of the whole batch. The sum of the ranks' gradients is then the gradient of one process that has
the whole batch, to rounding.

Next to rank 0's weights and seed, a sum over the ranks is all that is ever communicated: every
backend has it, on every device, and every rank gets the same bits.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import signal
import threading
import zlib
from typing import NamedTuple

import numpy as np
import torch
import torch.distributed as dist

# A share of X that is taken for the whole differs in any few rows.
_ROWS_COMPARED = 256


class World(NamedTuple):
    """The ranks that train together: how many they are, and which this process is."""

    rank: int
    size: int

    def share(self, n):
        """Return which of n rows are this rank's; shares differ by at most one row."""
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)


def current_world():
    """Return the ranks that train together, or None where this process trains alone.

    A process that was started by ``torchrun`` and has no group yet joins its default group, for
    good. Fits in the workers of joblib, be they threads or processes, are independent of each
    other and train alone.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not (dist.is_available() and in_main_thread):
        return None
    if not dist.is_initialized():
        if not dist.is_torchelastic_launched() or multiprocessing.parent_process() is not None:
            return None
        _join_torchrun_group()
    return World(dist.get_rank(), dist.get_world_size()) if dist.get_world_size() > 1 else None


def _join_torchrun_group():
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    dist.init_process_group()
    atexit.register(lambda: dist.is_initialized() and dist.destroy_process_group())


def gather(row, world):
    """Return the tensors of all ranks, each of one shape, stacked: (size, ...)."""
    rows = row.new_zeros(world.size, *row.shape)
    rows[world.rank] = row
    dist.all_reduce(rows)
    return rows


def pool(values, world):
    """Return the values of all ranks, shapes (n_r,), one after the other."""
    lengths = gather(torch.tensor(len(values), device=values.device), world).tolist()
    whole = values.new_zeros(sum(lengths))
    whole.split(lengths)[world.rank].copy_(values)
    dist.all_reduce(whole)
    return whole


def any_rank(flags, device):
    """Return for each flag whether it is raised on any rank."""
    raised = torch.tensor(flags, dtype=torch.int64, device=device)
    dist.all_reduce(raised)
    return [count > 0 for count in raised.tolist()]


def same_everywhere(number, device):
    """Return rank 0's number on every rank."""
    number = torch.tensor(number, device=device)
    dist.broadcast(number, src=0)
    return int(number)


@torch.no_grad()
def broadcast_weights(module):
    """Give every rank the parameters and buffers of rank 0."""
    for tensor in module.state_dict().values():
        if not isinstance(tensor, torch.Tensor):
            continue  # the same everywhere by itself
        whole = tensor.contiguous()
        dist.broadcast(whole, src=0)
        tensor.copy_(whole)


def check_same(arrays, settings, world, device):
    """Raise ValueError, on every rank, unless all ranks were given the same.

    Parameters
    ----------
    arrays : list of ndarray
        Data; some rows of each are compared.
    settings : object
        Compared by its ``repr``.
    world : World
        The ranks.
    device : torch.device
        What they communicate on.
    """
    found = gather(torch.tensor(fingerprint(arrays, settings), device=device), world).tolist()
    others = [rank for rank, other in enumerate(found) if other != found[0]]
    if others:
        raise ValueError(
            f"fit was given other data or parameters on rank {others[0]} than on rank 0. Under "
            "torch.distributed every rank passes the same whole X; fit shares out the batches."
        )


def fingerprint(arrays, settings=None):
    """Return a number that is another for other arrays, by some of their rows, or settings."""
    checksum = zlib.crc32(repr(settings).encode())
    for array in arrays:
        some = np.ascontiguousarray(array[:: -(-len(array) // _ROWS_COMPARED)])
        kind = f"{array.shape} {array.dtype}".encode()
        checksum = zlib.crc32(some, zlib.crc32(kind, checksum))
    return checksum


def sum_gradients(parameters, *numbers):
    """Add up over the ranks the gradients of parameters, in place, and some numbers.

    Parameters
    ----------
    parameters : list of Tensor
        One that has no gradient on any rank keeps none.
    *numbers : Tensor of shape ()
        What else to add up.

    Returns
    -------
    sums : tuple of Tensor of shape ()
    """
    missing = [p.grad is None for p in parameters]
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    absent = numbers[0].new_tensor(missing)
    flat = torch.cat([*(grad.flatten() for grad in grads), absent, torch.stack(numbers)])
    dist.all_reduce(flat)
    *sums, absent, numbers = flat.split([*(g.numel() for g in grads), len(grads), len(numbers)])
    # Whoever has all gradients need not wait for the device to know what others have.
    is_nowhere = (absent == dist.get_world_size()).tolist() if any(missing) else missing
    for parameter, grad, total, nowhere in zip(parameters, grads, sums, is_nowhere, strict=True):
        if not nowhere:
            parameter.grad = grad.copy_(total.view_as(grad))
    return numbers.unbind()


class HeldInterrupt:
    """Inside, Ctrl-C leaves a note, so that all ranks can stop at the same step.

    A second one interrupts at once, and so does leaving with an unread note.
    """

    def __init__(self):
        self.came = False

    def __enter__(self):
        self.handler = signal.getsignal(signal.SIGINT)
        if self.handler is signal.default_int_handler:
            signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, number, frame):
        if self.came:
            raise KeyboardInterrupt
        self.came = True

    def __exit__(self, kind, error, traceback):
        if self.handler is signal.default_int_handler:
            signal.signal(signal.SIGINT, self.handler)
        if self.came and kind is None:
            raise KeyboardInterrupt
