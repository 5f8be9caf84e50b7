"""Sums over the neighbours of nodes, and over the nodes of graphs."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from ._topology import Topology


def neighbour_sum(x: Tensor, topology: Topology) -> Tensor:
    """Return for each node the sum of x, shape (n_nodes, d), over its incoming neighbours."""
    return _NeighbourSum.apply(_at_least_float32(x), topology)


def message_sum(x: Tensor, edges: Tensor, topology: Topology) -> Tensor:
    """Return for each node v the sum of ReLU(x_u + e_uv) over its incoming edges.

    Parameters
    ----------
    x : Tensor of shape (n_nodes, d)
        Features of the nodes.
    edges : Tensor of shape (n_edges, d)
        Features of the edges.
    topology : Topology
        Where they are.
    """
    dtype = torch.promote_types(_at_least_float32(x).dtype, _at_least_float32(edges).dtype)
    return _MessageSum.apply(x.to(dtype), edges.to(dtype), topology)


def edge_sum(edges: Tensor, topology: Topology) -> Tensor:
    """Return for each node the sum of features, shape (n_edges, d), of its incoming edges."""
    every = torch.arange(len(edges), device=edges.device)
    return _bags(_at_least_float32(edges), every, topology.edge_ptr)


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


class _MessageSum(torch.autograd.Function):
    """Sum of ReLU(x_u + e_uv) over incoming edges; of the messages only their signs are kept."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, edges: Tensor, topology: Topology) -> Tensor:
        messages = x.index_select(0, topology.sources).add_(edges).relu_()
        ctx.topology = topology
        ctx.save_for_backward(messages > 0)
        every = torch.arange(len(messages), device=x.device)
        return _bags(messages, every, topology.edge_ptr)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        topology, (passed,) = ctx.topology, ctx.saved_tensors
        grad = grad.index_select(0, topology.targets).mul_(passed)
        return _bags(grad, *topology.by_source()), grad, None


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
