"""Training of one network in several processes, by torch.distributed."""

import atexit
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
from torch.autograd.function import FunctionCtx
from torch.nn.functional import pad

from .._objective._contrast import Contrast
from ..frameworks import Framework
from ..frameworks._moco import BATCH_NORM

T = TypeVar("T")
_BATCH_NORM = {nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d}


class _Sum(torch.autograd.Function):
    """The sum of a tensor over all processes, differentiable."""

    @staticmethod
    def forward(ctx: FunctionCtx | None, tensor: Tensor) -> Tensor:
        total = tensor.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: FunctionCtx, gradient: Tensor) -> Tensor:
        return _Sum.apply(gradient)


class Processes:
    """The processes that train one network; by default, only this one.

    All processes draw the same batches. Each encodes its share of the samples, gathers the
    projections of all, and computes the loss of its share of the anchors. The sum of their
    gradients is that of a single process with all samples.

    Parameters
    ----------
    rank, size : int
        The number of this process, counted from 0, and the number of processes.

    Attributes
    ----------
    n_rows : int
        The number of samples in the batch of this step, which is what `gather_rows` returns.
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

    def _rows_of_process(self, n: int) -> slice:
        """Return the slice of this process among n rows."""
        return slice(n * self.rank // self.size, n * (self.rank + 1) // self.size)

    def share(self, rows: Tensor) -> Tensor:
        """Return the rows of this process."""
        return rows[self._rows_of_process(len(rows))]

    def anchors_of_process(self, contrast: Contrast, framework: Framework) -> Contrast:
        """Return the contrast of this process's share of the anchors."""
        if self.size == 1:
            return contrast
        if not self.is_gathered:
            raise _framework_error(framework)
        return contrast.take(self._rows_of_process(len(contrast.anchors)))

    def prepare(self, module: Callable, framework: Framework) -> Callable:
        """Return a function that encodes this process's share and returns the rows of all."""
        if self.size == 1:
            return module

        def encode_share(x: Any) -> Tensor:
            z, n_own = module(x), len(self.share(torch.arange(self.n_rows)))
            if not isinstance(z, Tensor) or len(z) != len(x) or len(x) % n_own:
                raise _framework_error(framework)
            self.is_gathered = True
            return self.gather_rows(z.unflatten(0, (-1, n_own))).flatten(0, 1)

        return encode_share

    def gather_rows(self, z: Tensor) -> Tensor:
        """Return the rows (k, n_rows, ...) of all processes, given those of this one."""
        if self.size == 1:
            return z
        own_rows = self._rows_of_process(self.n_rows)
        sides = (*[0, 0] * (z.ndim - 2), own_rows.start, self.n_rows - own_rows.stop)
        return _Sum.apply(pad(z, sides))

    def sum_gradients(self, loss: Tensor, parameters: Iterable[nn.Parameter]) -> Tensor:
        """Replace gradients by their sum over processes, and return the sum of the losses."""
        if self.size == 1:
            return loss
        gradients = [p.grad for p in parameters if p.grad is not None]
        total = _Sum.forward(None, torch.cat([loss.detach()[None], *map(torch.ravel, gradients)]))
        value, *sums = total.split([1, *(gradient.numel() for gradient in gradients)])
        for gradient, gradient_sum in zip(gradients, sums, strict=True):
            gradient.copy_(gradient_sum.view_as(gradient))
        return value[0]

    @torch.no_grad()
    def average_statistics(self, *modules: nn.Module) -> None:
        """Average the running statistics of batch normalisation over processes."""
        layers = [m for module in modules for m in module.modules() if isinstance(m, BATCH_NORM)]
        statistics = [t for m in layers for t in (m.running_mean, m.running_var) if t is not None]
        if self.size == 1 or not statistics:
            return
        # In float64, the mean of equal numbers is that number.
        total = _Sum.forward(None, torch.cat(statistics).double()) / self.size
        means = total.split([len(t) for t in statistics])
        for statistic, mean in zip(statistics, means, strict=True):
            statistic.copy_(mean)

    @torch.no_grad()
    def copy_from_first(self, *modules: nn.Module) -> None:
        """Copy the weights of the first process to all."""
        for value in (v for m in modules for v in (*m.parameters(), *m.buffers())):
            if self.size > 1:
                buffer = value.detach().contiguous()
                dist.broadcast(buffer, 0)
                value.detach().copy_(buffer)

    def value_of_first(self, make: Callable[[], T]) -> T:
        """Call a function in the first process, and return its value in all."""
        values: list[Any] = [make() if self.rank == 0 else None]
        if self.size > 1:
            dist.broadcast_object_list(values, 0)
        return values[0]

    def in_any(self, value: bool) -> bool:
        """Return whether a value is true in any process."""
        return value if self.size == 1 else any(self._gather_values(value))

    def check_same(self, texts: dict[str, str]) -> None:
        """Raise ValueError if texts that describe data and parameters differ between processes."""
        first, *others = self._gather_values(texts)
        for rank, other in enumerate(others, 1):
            for name in sorted(first.keys() | other.keys()):
                if first.get(name) != other.get(name):
                    raise ValueError(
                        f"Processes must have the same data and parameters: {name!r} is "
                        f"{first.get(name)} in process 0 and {other.get(name)} in process {rank}."
                    )

    def _gather_values(self, value: Any) -> list[Any]:
        """Return the values that all processes pass."""
        values = [None] * self.size
        dist.all_gather_object(values, value)
        return values

    @contextmanager
    def synced(self, network: nn.Module, device: torch.device) -> Iterator[None]:
        """On GPUs, use batch statistics of all processes within the context."""
        modules = network.modules() if self.size > 1 and device.type == "cuda" else ()
        # Subclasses of torch's layers are left out, because they may have another forward.
        layers: list[Any] = [layer for layer in modules if type(layer) in _BATCH_NORM]
        classes = [type(layer) for layer in layers]
        # convert_sync_batchnorm is not used: its layers would stay in the fitted embedder.
        for layer in layers:
            layer.__class__, layer.process_group = nn.SyncBatchNorm, None
        try:
            yield
        finally:
            for layer, original in zip(layers, classes, strict=True):
                del layer.process_group
                layer.__class__ = original


def process_group(device: torch.device) -> Processes:
    """Return torch's process group; start it if torchrun has started this process."""
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
    """Return a checksum of arrays in memory; files and Datasets are not read."""
    checksum = 0
    for array in arrays:
        if isinstance(array, np.ndarray) and not isinstance(array, np.memmap):
            checksum = zlib.crc32(np.ascontiguousarray(array).data, checksum)
    return f"an array with checksum {checksum:08x}"


def _framework_error(framework: Framework) -> ValueError:
    return ValueError(
        f"{type(framework).__name__} cannot be fitted in several processes: use SimCLR(), "
        "MoCo() or CMC(), or one process."
    )
