"""Sums over the neighbours of nodes, and over the nodes of graphs."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ._topology import Topology


def neighbour_sum(x: Tensor, topology: Topology) -> Tensor:
    """Return for each node the sum of x, shape (n_nodes, d), over its incoming neighbours."""
    return _NeighbourSum.apply(_at_least_float32(x), topology)


def graph_sum(x: Tensor, topology: Topology) -> Tensor:
    """Return for each graph the sum of x, shape (n_nodes, d), over its nodes."""
    return _GraphSum.apply(_at_least_float32(x), topology)


class _NeighbourSum(torch.autograd.Function):
    """Sum over the incoming neighbours of each node, without an array that has a row per edge.

    The gradient is the same sum along the reversed edges.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, topology: Topology) -> Tensor:
        ctx.topology = topology
        return _bags(x, topology.sources, topology.edge_ptr)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _NeighbourSum.apply(grad, ctx.topology.reversed()), None


class _GraphSum(torch.autograd.Function):
    """Sum over the nodes of each graph."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, topology: Topology) -> Tensor:
        ctx.topology = topology
        nodes = torch.arange(topology.n_nodes, device=x.device)
        return _bags(x, nodes, topology.node_ptr)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad[ctx.topology.graph_of_node], None


def _bags(x: Tensor, rows: Tensor, ptr: Tensor) -> Tensor:
    """Return the sums of ``x[rows]`` over the runs that start at ``ptr``."""
    if not len(rows) or not x.shape[1]:
        return x.new_zeros(len(ptr) - 1, x.shape[1])
    return F.embedding_bag(rows, x.contiguous(), ptr[:-1], mode="sum")


def _at_least_float32(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()
