"""Sums over the neighbours of nodes, and over the nodes of graphs."""

from __future__ import annotations

import torch
import torch.nn.functional as F


def neighbour_sum(x, topology):
    """Return for each node the sum of x, shape (n_nodes, d), over the sources of its edges."""
    return _NeighbourSum.apply(_at_least_float32(x), topology)


def graph_sum(x, topology):
    """Return for each graph the sum of x, shape (n_nodes, d), over its nodes."""
    return _GraphSum.apply(_at_least_float32(x), topology)


class _NeighbourSum(torch.autograd.Function):
    """Sum over runs of rows, without an array of a row per edge; backward along reversed edges."""

    @staticmethod
    def forward(ctx, x, topology):
        ctx.topology = topology
        return _bags(x, topology.sources, topology.edge_ptr)

    @staticmethod
    def backward(ctx, grad):
        return _NeighbourSum.apply(grad, ctx.topology.reversed()), None


class _GraphSum(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, topology):
        ctx.topology = topology
        nodes = torch.arange(topology.n_nodes, device=x.device)
        return _bags(x, nodes, topology.node_ptr)

    @staticmethod
    def backward(ctx, grad):
        return grad[ctx.topology.graph_of_node], None


def _bags(x, rows, ptr):
    """Return the sums of ``x[rows]`` over the runs that start at ``ptr``."""
    if not len(rows) or not x.shape[1]:
        return x.new_zeros(len(ptr) - 1, x.shape[1])
    return F.embedding_bag(rows, x.contiguous(), ptr[:-1], mode="sum")


def _at_least_float32(x):
    return x if x.dtype == torch.float64 else x.float()
