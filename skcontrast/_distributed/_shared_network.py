"""A network whose rows are shared out among ranks, with batch statistics over all of them."""

from __future__ import annotations

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.autograd.function import once_differentiable
from torch.overrides import TorchFunctionMode

from ._world import gather


class SharedNetwork:
    """A network whose rows are shared out: each rank encodes some, and all get the whole result.

    Parameters
    ----------
    network : callable
        Maps (n, ...) to (n, d). Batch normalisation takes the statistics of all rows.
    world : World
        The ranks.
    """

    def __init__(self, network, world):
        self.network, self.world = network, world
        self.whole_batch_norm = _WholeBatchNorm(world)

    def __call__(self, x):
        """Return the outputs of all rows, shape (n, d); gradients go to the rank of each row.

        Parameters
        ----------
        x : Tensor of shape (n, ...)
            Of the same n on all ranks. A rank looks at its own share only.
        """
        if len(x) < self.world.size:
            raise ValueError(
                f"A step encodes {len(x)} views, fewer than the {self.world.size} processes that "
                "share them: raise 'batch_size', pass more samples or start fewer processes."
            )
        rows = self.world.share(len(x))
        with self.whole_batch_norm:
            z = self.network(x[rows])
        return _Gather.apply(z.to(_at_least_float32(z)), rows, len(x))


class _Gather(torch.autograd.Function):
    """The rows of all ranks; the gradient is the sum of what all ranks make of this one's rows."""

    @staticmethod
    def forward(ctx, share, rows, n):
        ctx.rows = rows
        whole = share.new_zeros(n, *share.shape[1:])
        whole[rows] = share
        dist.all_reduce(whole)
        return whole

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        grad = grad.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(grad)
        return grad[ctx.rows], None, None


class _WholeBatchNorm(TorchFunctionMode):
    """Inside, batch normalisation takes mean and variance over the rows of all ranks."""

    def __init__(self, world):
        self.world = world

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is F.batch_norm:
            func = self._batch_norm
        return func(*args, **(kwargs or {}))

    def _batch_norm(
        self, x, running_mean, running_var, weight=None, bias=None, training=False, momentum=0.1,
        eps=1e-5,
    ):  # fmt: skip
        if not training:
            return F.batch_norm(x, running_mean, running_var, weight, bias, eps=eps)
        dtype, width = _at_least_float32(x), x.shape[1]
        weight = x.new_ones(width, dtype=dtype) if weight is None else weight
        bias = x.new_zeros(width, dtype=dtype) if bias is None else bias
        mean, var, n = _moments(x.detach(), dtype, self.world)
        if running_mean is not None:
            running_mean.lerp_(mean.to(running_mean.dtype), momentum)
            running_var.lerp_((var * (n / (n - 1))).to(running_var.dtype), momentum)
        return _Normalise.apply(x, weight, bias, mean, var, n, eps)


def _moments(x, dtype, world):
    """Return mean and variance of each channel over all ranks, and the numbers per channel."""
    # Of given statistics to update, the kernel only takes the type to compute in.
    ignored = x.new_zeros(2, x.shape[1], dtype=dtype)
    mean, var = torch.batch_norm_update_stats(x, *ignored, 0.0)
    count = mean.new_tensor([x.numel() // x.shape[1]])
    means, variances, counts = gather(torch.cat([mean, var, count]), world).split(
        [len(mean), len(mean), 1], 1
    )
    parts = counts / counts.sum()
    mean = (parts * means).sum(0)
    return mean, (parts * (variances + (means - mean) ** 2)).sum(0), counts.sum()


class _Normalise(torch.autograd.Function):
    """Normalisation by statistics of x itself and of what other ranks have."""

    @staticmethod
    def forward(ctx, x, weight, bias, mean, var, n, eps):
        ctx.save_for_backward(x, weight, mean, var, n)
        ctx.eps = eps
        return F.batch_norm(x, mean, var, weight, bias, False, 0.0, eps)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        x, weight, mean, var, n = ctx.saved_tensors
        # As if the statistics were constants, then what flows through them.
        d_x, d_weight, d_bias = torch.ops.aten.native_batch_norm_backward(
            grad, x, weight, mean, var, None, None, False, ctx.eps, [True] * 3
        )
        through = torch.stack([d_weight, d_bias])
        dist.all_reduce(through)
        through *= weight * (var + ctx.eps).rsqrt() / n
        d_x -= F.batch_norm(x, mean, var, *through, False, 0.0, ctx.eps)
        return d_x, d_weight, d_bias, *[None] * 4


def _at_least_float32(tensor):
    return torch.promote_types(tensor.dtype, torch.float32)
