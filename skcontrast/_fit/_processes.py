"""The processes of a group of torch.distributed that train one network together."""

from __future__ import annotations

import atexit
import mmap
import multiprocessing
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.functional import pad

from .._objective._contrast import Contrast
from ..frameworks._moco import BATCH_NORM

T = TypeVar("T")
_PLAIN = {nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d}


class _Sum(torch.autograd.Function):
    """The sum over all processes. Its gradient is that of the sum of their losses."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        total = tensor.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return _Sum.apply(gradient)


class Processes:
    """The processes that train one network; by default, this one alone.

    All draw the same batches. Each encodes its share of the samples, gathers the projections of
    all, and computes the loss of its share of the anchors. The sum of the gradients is then that
    of one process with the whole batch.

    Parameters
    ----------
    rank, size : int
        The number of this process, from 0 on, and that of all.

    Attributes
    ----------
    n_rows : int
        The number of samples in the batch of this step, or those that `whole` returns.
    """

    def __init__(self, rank: int = 0, size: int = 1):
        self.rank, self.size, self.n_rows, self.is_gathered = rank, size, 0, False

    def begin_step(self, n_rows: int) -> None:
        """Start a step with `n_rows` samples."""
        if self.size > 1 and n_rows < 2 * self.size:
            raise ValueError(
                f"A batch has {n_rows} samples, and each of {self.size} processes needs two: "
                "raise 'batch_size', or start fewer processes."
            )
        self.n_rows, self.is_gathered = n_rows, False

    def _part(self, n: int) -> slice:
        """Return which of n rows are those of this process."""
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def share(self, rows: Tensor) -> Tensor:
        """Return the rows of this process."""
        return rows[self._part(len(rows))]

    def own_anchors(self, contrast: Contrast, framework: Any) -> Contrast:
        """Return the contrast of this process's share of the anchors."""
        if self.size == 1:
            return contrast
        if not self.is_gathered:
            raise _refusal(framework)
        return contrast.take(self._part(len(contrast.anchors)))

    def prepared(self, module: Callable, framework: Any) -> Callable:
        """Return a module that is called with a share of the batch, and returns all rows of it."""
        if self.size == 1:
            return module

        def on_whole_batch(x: Any) -> Tensor:
            z, n_own = module(x), len(self.share(torch.arange(self.n_rows)))
            if not isinstance(z, Tensor) or len(z) != len(x) or len(x) % n_own:
                raise _refusal(framework)
            self.is_gathered = True
            return self.whole(z.unflatten(0, (-1, n_own))).flatten(0, 1)

        return on_whole_batch

    def whole(self, z: Tensor) -> Tensor:
        """Return the rows of all processes, (k, n_rows, ...), from those of this one."""
        if self.size == 1:
            return z
        part = self._part(self.n_rows)
        sides = (*[0, 0] * (z.ndim - 2), part.start, self.n_rows - part.stop)
        return _Sum.apply(pad(z, sides))

    def sum_gradients(self, loss: Tensor, parameters: Iterable[nn.Parameter]) -> Tensor:
        """Give all processes the sum of their gradients, and return the sum of their losses."""
        if self.size == 1:
            return loss
        gradients = [p.grad for p in parameters if p.grad is not None]
        total = _Sum.forward(None, torch.cat([loss.detach()[None], *map(torch.ravel, gradients)]))
        value, *sums = total.split([1, *(gradient.numel() for gradient in gradients)])
        for gradient, found in zip(gradients, sums, strict=True):
            gradient.copy_(found.view_as(gradient))
        return value[0]

    @torch.no_grad()
    def average_statistics(self, *modules: nn.Module) -> None:
        """Give all processes the mean of the running statistics of batch normalisation."""
        layers = [m for one in modules for m in one.modules() if isinstance(m, BATCH_NORM)]
        found = [t for m in layers for t in (m.running_mean, m.running_var) if t is not None]
        if self.size == 1 or not found:
            return
        # In float64, the mean of equal numbers is that number.
        total = _Sum.forward(None, torch.cat(found).double()) / self.size
        for mine, mean in zip(found, total.split([len(t) for t in found]), strict=True):
            mine.copy_(mean)

    @torch.no_grad()
    def copy_from_first(self, *modules: nn.Module) -> None:
        """Give all processes the weights of the first."""
        for value in (v for module in modules for v in module.state_dict().values()):
            if self.size > 1 and isinstance(value, Tensor):
                same = value.contiguous()
                dist.broadcast(same, 0)
                value.copy_(same)

    def of_first(self, make: Callable[[], T]) -> T:
        """Return what the first process makes."""
        made: list[Any] = [make() if self.rank == 0 else None]
        if self.size > 1:
            dist.broadcast_object_list(made, 0)
        return made[0]

    def in_any(self, value: bool) -> bool:
        """Return whether it is true in any process."""
        return value if self.size == 1 else any(self._all(value))

    def check_same(self, texts: dict[str, str]) -> None:
        """Raise ValueError if data or parameters, as texts by name, are not those of the first."""
        first, *others = self._all(texts)
        for rank, other in enumerate(others, 1):
            for name in sorted(first.keys() | other.keys()):
                if first.get(name) != other.get(name):
                    raise ValueError(
                        f"Processes must have the same data and parameters: {name!r} is "
                        f"{first.get(name)} in process 0 and {other.get(name)} in process {rank}."
                    )

    def _all(self, value: Any) -> list[Any]:
        """Return the values of all processes."""
        found = [None] * self.size
        dist.all_gather_object(found, value)
        return found

    @contextmanager
    def synced(self, network: nn.Module, device: torch.device) -> Iterator[None]:
        """Normalise on GPUs by the statistics of the whole batch."""
        modules = network.modules() if self.size > 1 and device.type == "cuda" else ()
        # Not those that derive from torch's: the class would take their own forward from them.
        layers: list[Any] = [layer for layer in modules if type(layer) in _PLAIN]
        before = [type(layer) for layer in layers]
        # Not by convert_sync_batchnorm, whose layers would stay in the fitted embedder.
        for layer in layers:
            layer.__class__, layer.process_group = nn.SyncBatchNorm, None
        try:
            yield
        finally:
            for layer, own in zip(layers, before, strict=True):
                del layer.process_group
                layer.__class__ = own


def joined(device: torch.device) -> Processes:
    """Return the processes of torch's group, which is made where torchrun has started this one."""
    if not dist.is_available():
        return Processes()
    if not dist.is_initialized():
        # Workers of joblib inherit torchrun's variables.
        is_started = dist.is_torchelastic_launched() and multiprocessing.parent_process() is None
        if not is_started or os.environ["WORLD_SIZE"] == "1":
            return Processes()
        if device.type == "cuda":
            torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        dist.init_process_group("cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo")
        atexit.register(dist.destroy_process_group)
    return Processes(dist.get_rank(), dist.get_world_size())


def checksum_in_memory(arrays: Iterable[Any]) -> str:
    """Return a checksum of all numbers of arrays in memory; files and Datasets are not read."""
    found = 0
    for array in arrays:
        owner = array
        while isinstance(owner, np.ndarray):
            owner = owner.base
        if isinstance(array, np.ndarray) and not isinstance(owner, mmap.mmap):
            found = zlib.crc32(np.ascontiguousarray(array).data, found)
    return f"an array with checksum {found:08x}"


def _refusal(framework: Any) -> ValueError:
    return ValueError(
        f"{type(framework).__name__} cannot be fitted in several processes, which gather what "
        "`context.network` returns for whole samples: use SimCLR(), MoCo() or CMC(), or one "
        "process."
    )
