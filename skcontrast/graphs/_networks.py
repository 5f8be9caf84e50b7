"""Networks that map graphs to representations of their nodes and of the graphs themselves."""

from __future__ import annotations

import inspect
from typing import Any

import torch
from torch import Tensor, nn

from ._batch import GraphBatch
from ._sums import graph_sum


class GraphNetwork(nn.Module):
    """A network that represents nodes by message passing, and graphs by pooling their nodes.

    Parameters
    ----------
    message_passing : nn.Module
        Maps a GraphBatch to (n_nodes, width).
    pooling : {"log-sum", "sum", "mean"}
        How the nodes of a graph become one vector.
    reads : tuple of {"edge_attr", "edge_weight"}, default=()
        The features of edges that the network reads.
    """

    reads: tuple[str, ...] = ()

    def __init__(
        self,
        message_passing: nn.Module,
        pooling: str = "sum",
        reads: tuple[str, ...] = (),
    ):
        super().__init__()
        self.message_passing, self.pooling, self.reads = message_passing, pooling, reads

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

    If the module has no argument named ``batch``, its third argument is taken to be the batch,
    provided that it has no default; otherwise the module is called without a batch. The module
    returns a row per graph, or a row per node, which are then summed for each graph. If edges have
    features, it gets ``edge_attr=`` and ``edge_weight=`` where it has such arguments.

    Parameters
    ----------
    module : torch.nn.Module
        The user's module.
    """

    def __init__(self, module: nn.Module):
        super().__init__(module, "sum", _edge_arguments(module))
        arguments = list(inspect.signature(module.forward).parameters.values())
        self.names_batch = any(a.name == "batch" or a.kind == a.VAR_KEYWORD for a in arguments)
        self.third_is_batch = len(arguments) > 2 and arguments[2].default is arguments[2].empty

    def _output(self, graphs: GraphBatch) -> Tensor:
        """Return the checked output of the module, a row per graph or per node."""
        args, batch = [graphs.x, graphs.edge_index], graphs.batch
        if self.third_is_batch and not self.names_batch:
            args.append(batch)
        named: dict[str, Any] = {}
        if graphs.edges is not None:
            named = {name: getattr(graphs, name) for name in self.reads}
        if self.names_batch:
            named["batch"] = batch
        output = self.message_passing(*args, **named)
        if not isinstance(output, torch.Tensor):
            found = f"a {type(output).__name__}"
        elif output.ndim != 2 or len(output) not in (len(graphs), graphs.n_nodes):
            found = f"one of shape {tuple(output.shape)}"
        elif not output.is_floating_point():
            found = f"one of dtype {output.dtype}"
        else:
            return output
        raise ValueError(
            "the module must return a floating tensor of two dimensions, with a row per graph or "
            f"per node, {len(graphs)} or {graphs.n_nodes}, got {found}."
        )

    def nodes(self, graphs: GraphBatch) -> Tensor:
        """Return the representations of the nodes, shape (n_nodes, width)."""
        output = self._output(graphs)
        if len(output) != graphs.n_nodes:
            raise ValueError(
                "InfoGraph needs an encoder that returns a row per node, not one per graph."
            )
        return output

    def forward(self, graphs: GraphBatch) -> Tensor:
        """Return the representations of the graphs, shape (n_graphs, width)."""
        output = self._output(graphs)
        return output if len(output) == len(graphs) else self.pool(output, graphs)


def _edge_arguments(module: nn.Module) -> tuple[str, ...]:
    """Return which features of edges a module takes as arguments, and uses.

    The models of PyTorch Geometric have both arguments, and say which of them they use.
    """
    arguments = inspect.signature(module.forward).parameters
    names = [name for name in ("edge_attr", "edge_weight") if name in arguments]
    return tuple(name for name in names if getattr(module, f"supports_{name}", True))
