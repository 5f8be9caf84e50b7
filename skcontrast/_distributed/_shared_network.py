"""A network that the ranks of a fit share: each encodes some of the rows of a batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from ._batch_norm import WholeBatchNorm, at_least_float32
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
    world : World
        The ranks.
    shares : Shares, default=None
        Which rows each encodes; None divides them evenly.
    """

    def __init__(self, network: Callable, world: World, shares: Shares | None = None):
        self.network, self.world = network, world
        self.shares = Shares(world) if shares is None else shares
        self.whole_batch_norm = WholeBatchNorm(world)

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
