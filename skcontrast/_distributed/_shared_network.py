"""A network that the ranks of a fit share: each encodes some of the rows of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

from ._connection import all_reduce
from ._world import Shares, World, gather


class SharedNetwork:
    """A network that divides the rows of a batch among the ranks and returns all outputs on each.

    Batch normalisation in it uses mean and variance over the rows of all ranks, so the outputs
    and gradients are those of the network on a single process.

    Parameters
    ----------
    network : callable
        Maps (n, ...) to (n, d), or to a tuple of tensors with any number of rows, such as one per
        node of n graphs.
    shares : Shares
        Which rows each of the ranks encodes.
    """

    def __init__(self, network: Callable, shares: Shares):
        self.network, self.shares, self.world = network, shares, shares.world
        self.whole_batch_norm = WholeBatchNorm(shares.world)

    def __call__(self, x: Any) -> Any:
        """Return the outputs for all rows, shape (n, d), or a tuple of outputs.

        In the backward pass, the gradient of a row goes to the rank that encoded the row.

        Parameters
        ----------
        x : Tensor of shape (n, ...)
            The whole batch, with the same n on all ranks. Each rank reads only its own share.

        Raises
        ------
        ValueError
            If there are fewer rows than ranks.
        """
        if len(x) < self.world.size:
            raise ValueError(
                f"A step encodes {len(x)} views, fewer than the {self.world.size} processes that "
                "share them: raise 'batch_size', pass more samples or start fewer processes."
            )
        rows = self.shares.rows(len(x))
        with self.whole_batch_norm:
            z = self.network(x[rows])
        if isinstance(z, tuple):
            return tuple(self._gathered(part, *self._place(part)) for part in z)
        return self._gathered(z, rows, len(x))

    def _gathered(self, z: Tensor, rows: slice | Tensor, n: int) -> Tensor:
        return _Gather.apply(z.to(at_least_float32(z)), rows, n)

    def _place(self, z: Tensor) -> tuple[slice, int]:
        """Return which rows of all ranks' outputs those of this rank are, and their number."""
        lengths = gather(torch.tensor(len(z), device=z.device), self.world).tolist()
        start = sum(lengths[: self.world.rank])
        return slice(start, start + len(z)), sum(lengths)


class _Gather(torch.autograd.Function):
    """Gather the rows of all ranks.

    Every rank computes its part of the loss from all rows, so the gradient of this rank's rows is
    the sum of the gradients that all ranks have for them.
    """

    @staticmethod
    def forward(ctx: Any, share: Tensor, rows: slice | Tensor, n: int) -> Tensor:
        ctx.rows = rows
        whole = share.new_zeros(n, *share.shape[1:])
        whole[rows] = share
        all_reduce(whole)
        return whole

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        grad = grad.clone(memory_format=torch.contiguous_format)
        all_reduce(grad)
        return grad[ctx.rows], None, None


class WholeBatchNorm(TorchFunctionMode):
    """A context in which batch normalisation uses mean and variance over the rows of all ranks."""

    def __init__(self, world: World):
        self.world = world

    def __torch_function__(
        self, func: Callable, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is F.batch_norm:
            func = self._batch_norm
        return func(*args, **(kwargs or {}))

    def _batch_norm(
        self,
        x: Tensor,
        running_mean: Tensor | None,
        running_var: Tensor | None,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        training: bool = False,
        momentum: float = 0.1,
        eps: float = 1e-5,
    ) -> Tensor:
        """Return ``F.batch_norm`` of the same arguments, with the statistics of all ranks."""
        if not training:
            return F.batch_norm(x, running_mean, running_var, weight, bias, eps=eps)
        dtype, width = at_least_float32(x), x.shape[1]
        weight = x.new_ones(width, dtype=dtype) if weight is None else weight
        bias = x.new_zeros(width, dtype=dtype) if bias is None else bias
        mean, var, n = moments = _moments(x.detach(), dtype, self.world)
        if running_mean is not None and running_var is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
            running_var.lerp_((var * (n / (n - 1))).to(running_var.dtype), momentum)
        return _Normalise.apply(x, weight, bias, moments, eps)


def _moments(x: Tensor, dtype: torch.dtype, world: World) -> tuple[Tensor, Tensor, Tensor]:
    """Return each channel's mean and variance over all ranks, and how many numbers it has."""
    # The kernel returns the statistics of x and, with momentum 0, leaves the running ones as they
    # are; it computes in their type.
    ignored_mean, ignored_var = x.new_zeros(2, x.shape[1], dtype=dtype)
    mean, var = torch.batch_norm_update_stats(x, ignored_mean, ignored_var, 0.0)
    count = mean.new_tensor([x.numel() // x.shape[1]])
    means, variances, counts = gather(torch.cat([mean, var, count]), world).split(
        [len(mean), len(mean), 1], 1
    )
    parts = counts / counts.sum()
    mean = (parts * means).sum(0)
    return mean, (parts * (variances + (means - mean) ** 2)).sum(0), counts.sum()


class _Normalise(torch.autograd.Function):
    """Batch normalisation with given moments, through which gradients flow on all ranks.

    The moments are those of the rows of all ranks, so they depend on x.
    """

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, weight: Tensor, bias: Tensor, moments: Any, eps: float
    ) -> Tensor:
        mean, var, _ = moments
        ctx.save_for_backward(x, weight, *moments)
        ctx.eps = eps
        return F.batch_norm(x, mean, var, weight, bias, False, 0.0, eps)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, mean, var, n = ctx.saved_tensors
        # First the gradient as if mean and variance were constants ...
        d_x, d_weight, d_bias = torch.ops.aten.native_batch_norm_backward(
            grad, x, weight, mean, var, None, None, False, ctx.eps, [True] * 3
        )
        # ... then the part that flows through them, from the rows of all ranks.
        through = torch.stack([d_weight, d_bias])
        all_reduce(through)
        scale, shift = through * (weight * (var + ctx.eps).rsqrt() / n)
        d_x -= F.batch_norm(x, mean, var, scale, shift, False, 0.0, ctx.eps)
        return d_x, d_weight, d_bias, None, None


def at_least_float32(tensor: Tensor) -> torch.dtype:
    """Return the type of a tensor, or float32 if that has more digits."""
    return torch.promote_types(tensor.dtype, torch.float32)
