"""Networks on graphs: sums over neighbours and nodes, and representations of nodes and graphs."""

import inspect
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .._checks._arguments import are_rows, got
from ._batch import GraphBatch
from ._packed import Topology, group_of_each

# Names of arguments for the features of edges.
_OF_EDGES = ("edge_attr", "edge_weight")


def neighbour_sum(x: Tensor, topology: Topology) -> Tensor:
    """Return the sum of x for each node, shape (n_nodes, d), over its incoming neighbours."""
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
        The graphs.
    """
    return run_sum((x[topology.sources] + edges).relu(), topology.edge_ptr)


def run_sum(x: Tensor, ptr: Tensor) -> Tensor:
    """Return the sums over runs of rows of x, (m, d), which start at ``ptr[:-1]``."""
    return _RunSum.apply(_at_least_float32(x), ptr)


def graph_sum(x: Tensor, topology: Topology) -> Tensor:
    """Return for each graph the sum of x, shape (n_nodes, d), over its nodes."""
    return run_sum(x, topology.node_ptr)


class _NeighbourSum(torch.autograd.Function):
    """Sum over the incoming neighbours of each node, without an array of one row per edge.

    The gradient is the same sum along the reversed edges.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, topology: Topology) -> Tensor:
        ctx.topology = topology
        return _bags(x, topology.sources, topology.edge_ptr)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return _NeighbourSum.apply(grad, ctx.topology.reversed()), None


class _RunSum(torch.autograd.Function):
    """Sum over runs of rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, ptr: Tensor) -> Tensor:
        ctx.group = group_of_each(ptr.diff(), len(x))
        return _bags(x, torch.arange(len(x), device=x.device), ptr)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad[ctx.group], None


def _bags(x: Tensor, rows: Tensor, ptr: Tensor) -> Tensor:
    """Return the sums of ``x[rows]`` over the runs that start at ``ptr[:-1]``."""
    if not len(rows) or not x.shape[1]:
        return x.new_zeros(len(ptr) - 1, x.shape[1])
    return F.embedding_bag(rows, x.contiguous(), ptr[:-1], mode="sum")


def _at_least_float32(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()


class GraphNetwork(nn.Module):
    """A network with message passing between nodes, and pooling over the nodes of a graph.

    Parameters
    ----------
    message_passing : nn.Module
        Maps a GraphBatch to (n_nodes, width).
    pooling : {"log-sum", "sum", "mean"}
        The pooling over the nodes of a graph.
    """

    def __init__(self, message_passing: nn.Module, pooling: str = "sum"):
        super().__init__()
        self.message_passing, self.pooling = message_passing, pooling

    def nodes(self, graphs: GraphBatch) -> Tensor:
        """Return the representations of the nodes, shape (n_nodes, width)."""
        return self.message_passing(graphs)

    def pool(self, nodes: Tensor, graphs: GraphBatch) -> Tensor:
        """Return the representations of the graphs, shape (n_graphs, width)."""
        pooled = graph_sum(nodes, graphs.topology)
        if self.pooling == "mean":
            return pooled / graphs.topology.sizes.clamp_min(1)[:, None]
        return pooled.sign() * pooled.abs().log1p() if self.pooling == "log-sum" else pooled

    def forward(self, graphs: GraphBatch) -> Tensor:
        """Return the representations of the graphs, shape (n_graphs, width)."""
        return self.pool(self.nodes(graphs), graphs)


class ForeignNetwork(GraphNetwork):
    """A module that is called as in PyTorch Geometric, ``module(x, edge_index, batch=batch)``.

    Without an argument ``batch``, the module gets the batch as third argument if that is required,
    and no batch otherwise. It returns a row per graph, or a row per node; rows of nodes are summed
    for each graph. If edges have features, it gets ``edge_attr=`` and ``edge_weight=`` if it has
    such arguments.

    Parameters
    ----------
    module : torch.nn.Module
        The user's module.
    """

    def __init__(self, module: nn.Module):
        super().__init__(module)
        arguments = list(inspect.signature(module.forward).parameters.values())
        # The models of PyTorch Geometric have both arguments, and declare those that they use.
        known = [a.name for a in arguments if a.name in _OF_EDGES]
        self.reads = [name for name in known if getattr(module, f"supports_{name}", True)]
        self.names_batch = any(a.name == "batch" or a.kind == a.VAR_KEYWORD for a in arguments)
        third = [a for a in arguments[2:3] if a.name not in _OF_EDGES]
        self.third_is_batch = any(a.default is a.empty for a in third)

    def _output(self, graphs: GraphBatch) -> Tensor:
        """Return the validated output of the module, a row per graph or per node."""
        args, batch = [graphs.x, graphs.edge_index], graphs.batch
        if self.third_is_batch and not self.names_batch:
            args.append(batch)
        named: dict[str, Any] = {}
        if graphs.edges is not None:
            named = {name: getattr(graphs, name) for name in self.reads}
        if self.names_batch:
            named["batch"] = batch
        output = self.message_passing(*args, **named)
        if are_rows(output, len(graphs), graphs.n_nodes):
            return output
        raise ValueError(
            "the module must return a floating tensor of two dimensions, with a row per graph or "
            f"per node, {len(graphs)} or {graphs.n_nodes}, got {got(output)}."
        )

    def nodes(self, graphs: GraphBatch) -> Tensor:
        """Return the representations of the nodes, shape (n_nodes, width)."""
        output = self._output(graphs)
        if len(output) != graphs.n_nodes:
            raise ValueError("InfoGraph needs an encoder with a row per node, not per graph.")
        return output

    def forward(self, graphs: GraphBatch) -> Tensor:
        """Return the representations of the graphs, shape (n_graphs, width)."""
        output = self._output(graphs)
        return output if len(output) == len(graphs) else self.pool(output, graphs)
