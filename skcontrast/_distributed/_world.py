"""One fit on several processes, the ranks of a ``torch.distributed`` group.

All ranks run the same fit, with the same batches, views and weights, and get the same history.
They share the expensive work: each rank encodes its share of the rows of a batch
(``_shared_network.py``) and computes the loss of its share of the anchors, with the candidates of
the whole batch. The sum of the ranks' gradients is then the gradient that one process would
compute for the whole batch, up to rounding.

In a step, ranks communicate only by sums over all ranks, which every backend has on every device
and which give every rank the same bits.
"""

from __future__ import annotations

import atexit
import multiprocessing
import os
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import Tensor, nn

from ._connection import all_reduce, broadcast, exchange, leave, time_limit


class World(NamedTuple):
    """The ranks that train together.

    Attributes
    ----------
    rank : int
        The rank of this process, from 0 on.
    size : int
        The number of ranks.
    """

    rank: int
    size: int

    def share(self, n: int) -> slice:
        """Return which of n rows belong to this rank; shares differ by at most one row."""
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)


def leads(world: World | None) -> bool:
    """Return whether this process speaks and writes for all that train together."""
    return world is None or world.rank == 0


class Shares:
    """Which rows of the views of a batch each rank encodes.

    Parameters
    ----------
    world : World
        The ranks.

    Attributes
    ----------
    n_samples : int
        Number of samples in the batch, of each of which a rank encodes all views or none; 0 if a
        rank has all samples of the batch and may encode any rows.
    """

    def __init__(self, world: World):
        self.world, self.n_samples = world, 0

    def rows(self, n: int) -> slice | Tensor:
        """Return which of n rows, those of one view after the other, this rank encodes."""
        if not self.n_samples or n % self.n_samples:
            return self.world.share(n)
        own = torch.arange(self.n_samples)[self.world.share(self.n_samples)]
        return (torch.arange(0, n, self.n_samples)[:, None] + own).flatten()


def current_world() -> World | None:
    """Return the ranks that train together, or None if this process trains alone.

    A process that was started by ``torchrun`` and has no group yet joins the default group, and
    stays in it until it ends. Fits in joblib's workers, threads or processes, are independent of
    each other and train alone.
    """
    in_main_thread = threading.current_thread() is threading.main_thread()
    if not (dist.is_available() and in_main_thread):
        return None
    if not dist.is_initialized():
        if not dist.is_torchelastic_launched() or multiprocessing.parent_process() is not None:
            return None
        _join_torchrun_group()
    return World(dist.get_rank(), dist.get_world_size()) if dist.get_world_size() > 1 else None


def _join_torchrun_group() -> None:
    """Join the default group, with one GPU per process if there are GPUs."""
    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    limit = time_limit()
    try:
        dist.init_process_group(timeout=limit)
    except RuntimeError as error:
        raise RuntimeError(
            "fit failed: the processes that torchrun started did not all join their group within "
            f"{limit.total_seconds():g} s: {error}"
        ) from error
    atexit.register(leave)


def gather(row: Tensor, world: World) -> Tensor:
    """Return the tensors of all ranks, which have the same shape, stacked: (size, ...)."""
    rows = row.new_zeros(world.size, *row.shape)
    rows[world.rank] = row
    all_reduce(rows)
    return rows


def pool(values: Tensor) -> Tensor:
    """Return the values of all ranks, which have shapes (n_r, ...), concatenated."""
    return torch.cat(exchange(values.cpu())).to(values.device)


@torch.no_grad()
def broadcast_weights(module: nn.Module) -> None:
    """Give every rank the parameters and buffers of rank 0."""
    for tensor in module.state_dict().values():
        if not isinstance(tensor, torch.Tensor):
            continue  # non-tensor state is the same on all ranks anyway
        whole = tensor.contiguous()
        broadcast(whole)
        tensor.copy_(whole)


def sum_gradients(parameters: Sequence[Any], *numbers: Tensor) -> tuple[Tensor, ...]:
    """Add up the gradients of parameters over the ranks, in place, and some numbers.

    Parameters
    ----------
    parameters : list of Tensor
        Their gradients are replaced by the sums. A parameter without a gradient on any rank keeps
        none.
    *numbers : Tensor of shape ()
        Other numbers to add up over the ranks.

    Returns
    -------
    sums : tuple of Tensor of shape ()
        The sums of `numbers`.
    """
    missing = [p.grad is None for p in parameters]
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
    absent = numbers[0].new_tensor(missing)
    flat = torch.cat([*(grad.flatten() for grad in grads), absent, torch.stack(numbers)])
    all_reduce(flat)
    sizes = [*(grad.numel() for grad in grads), len(grads), len(numbers)]
    *sums, absent, totals = flat.split(sizes)
    # Reading `absent` waits for the device, which a rank that has all gradients need not do.
    is_nowhere = (absent == dist.get_world_size()).tolist() if any(missing) else missing
    for parameter, grad, total, nowhere in zip(parameters, grads, sums, is_nowhere, strict=True):
        if not nowhere:
            parameter.grad = grad.copy_(total.view_as(grad))
    return totals.unbind()
