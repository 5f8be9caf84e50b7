"""Layers that pass messages along the edges of packed graphs, and sums over neighbours."""

from __future__ import annotations

import inspect

import torch
import torch.nn.functional as F
from torch import nn

from ..graphs import GraphBatch


class GINLayer(nn.Module):
    """One layer of GIN; the first linear map comes before the sum, with which it commutes."""

    def __init__(self, in_features, width):
        super().__init__()
        self.linear = nn.Linear(in_features, width, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))
        self.second = nn.Linear(width, width)

    def forward(self, x, topology):
        """Map node features (n_nodes, in_features), or a GraphBatch, to (n_nodes, width)."""
        h = _linear(self.linear, x)
        h = neighbour_sum(h, topology).add_(h).add_(self.bias)
        return self.second(h.relu_()).relu_()


class GCNLayer(nn.Module):
    """One layer of GCN, with self-loops and symmetric normalisation by the in-degrees."""

    def __init__(self, in_features, width):
        super().__init__()
        self.linear = nn.Linear(in_features, width, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x, topology):
        """Map node features (n_nodes, in_features), or a GraphBatch, to (n_nodes, width)."""
        h = _linear(self.linear, x)
        scale = (topology.in_degrees + 1).to(h.dtype).rsqrt()[:, None]
        h = h * scale
        return ((h + neighbour_sum(h, topology)) * scale + self.bias).relu()


class MessagePassing(nn.Module):
    """Layers one after another: what a node is after each of them, side by side.

    Parameters
    ----------
    layer : type
        Class of the layers, ``layer(in_features, width)``.
    in_features, width, n_layers : int
        Node features; width of each layer; how many.
    batch_norm : bool
        Whether the output of each layer is normalised over the nodes of the batch.
    jumping_knowledge : bool
        Whether the outputs of all layers are put side by side, or only the last is returned.
    n_components : int or None
        Width of a linear map at the end, None for none.
    """

    def __init__(
        self, layer, in_features, width, n_layers, batch_norm, jumping_knowledge, n_components
    ):
        super().__init__()
        widths = [in_features, *[width] * n_layers]
        self.layers = nn.ModuleList(layer(widths[k], width) for k in range(n_layers))
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(width) if batch_norm else nn.Identity() for _ in self.layers
        )
        self.jumping_knowledge = jumping_knowledge
        self.last = nn.Identity()
        if n_components is not None:
            n_inputs = width * (n_layers if jumping_knowledge else 1)
            self.last = nn.Linear(n_inputs, n_components, bias=False)

    def forward(self, graphs):
        """Return the representations of the nodes of a GraphBatch, shape (n_nodes, width)."""
        h, states = graphs, []
        for layer, norm in zip(self.layers, self.norms, strict=True):
            h = norm(layer(h, graphs.topology))
            states.append(h)
        return self.last(torch.cat(states, 1) if self.jumping_knowledge else h)


class GraphNetwork(nn.Module):
    """From graphs to representations of their nodes, and to their own, which pools these.

    Parameters
    ----------
    message_passing : nn.Module
        Maps a GraphBatch to (n_nodes, width).
    pooling : {"sum", "mean"}
        How the nodes of a graph become one vector.
    """

    def __init__(self, message_passing, pooling="sum"):
        super().__init__()
        self.message_passing, self.pooling = message_passing, pooling

    def nodes(self, graphs):
        """Return the representations of the nodes, shape (n_nodes, width)."""
        return self.message_passing(graphs)

    def pool(self, nodes, graphs):
        """Return the representations of the graphs, shape (n_graphs, width)."""
        pooled = graph_sum(nodes, graphs.topology)
        if self.pooling == "mean":
            pooled = pooled / graphs.topology.sizes.clamp_min(1)[:, None]
        return pooled

    def forward(self, graphs):
        """Return the representations of the graphs, shape (n_graphs, width)."""
        return self.pool(self.nodes(graphs), graphs)


class ForeignNetwork(GraphNetwork):
    """A module with the interface of PyTorch Geometric, ``module(x, edge_index, batch=batch)``.

    Where no argument has that name, a third one without a default is taken for it; a module that
    has none is called without. It may return a row per graph, or a row per node; these are then
    summed.
    """

    def __init__(self, module):
        super().__init__(module, "sum")
        arguments = list(inspect.signature(module.forward).parameters.values())
        self.names_batch = any(a.name == "batch" or a.kind == a.VAR_KEYWORD for a in arguments)
        self.third_is_batch = len(arguments) > 2 and arguments[2].default is arguments[2].empty

    def _output(self, graphs):
        args, batch = [graphs.x, graphs.edge_index], graphs.batch
        if self.third_is_batch and not self.names_batch:
            args.append(batch)
        output = self.message_passing(*args, **({"batch": batch} if self.names_batch else {}))
        if not isinstance(output, torch.Tensor) or output.ndim != 2:
            found = "a " + type(output).__name__
            if isinstance(output, torch.Tensor):
                found = f"one of shape {tuple(output.shape)}"
            raise ValueError(f"the module must return a tensor of two dimensions, got {found}.")
        if not output.is_floating_point():
            raise ValueError(f"the module must return a floating tensor, got {output.dtype}.")
        if len(output) not in (len(graphs), graphs.n_nodes):
            raise ValueError(
                f"the module must return a row per graph or per node, {len(graphs)} or "
                f"{graphs.n_nodes}, got {len(output)}."
            )
        return output

    def nodes(self, graphs):
        output = self._output(graphs)
        if len(output) != graphs.n_nodes:
            raise ValueError(
                "InfoGraph needs an encoder that returns a row per node; this one returns a row "
                "per graph."
            )
        return output

    def forward(self, graphs):
        output = self._output(graphs)
        return output if len(output) == len(graphs) else self.pool(output, graphs)


def _linear(linear, x):
    """Return the linear map of node features, shape (n_nodes, d), or of a GraphBatch's."""
    return x.project(linear.weight) if isinstance(x, GraphBatch) else linear(x)


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
