"""Layers that pass messages along the edges of graphs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from ..graphs import GraphBatch
from ..graphs._sums import edge_sum, message_sum, neighbour_sum, weighted_neighbour_sum


class GINLayer(nn.Module):
    """One layer of GIN; the first linear map is applied before the sum, which is the same."""

    def __init__(self, in_features: int, width: int):
        super().__init__()
        self.linear = nn.Linear(in_features, width, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))
        self.second = nn.Linear(width, width)

    def forward(self, x: Tensor | None, graphs: GraphBatch) -> Tensor:
        """Map node features (n_nodes, in_features), None for those of the graphs, to a width."""
        h = _linear(self.linear, x, graphs)
        h = neighbour_sum(h, graphs.topology).add_(h).add_(self.bias)
        return self.second(h.relu_()).relu_()


class GINELayer(GINLayer):
    """A layer of GIN to whose sum that of GINE is added, for edges that have features."""

    def __init__(self, in_features: int, width: int, edge_features: int):
        super().__init__(in_features, width)
        self.source_linear = nn.Linear(in_features, width, bias=False)
        self.edge_linear = nn.Linear(edge_features, width)

    def forward(self, x: Tensor | None, graphs: GraphBatch) -> Tensor:
        """Map node features (n_nodes, in_features), None for those of the graphs, to a width."""
        h = _linear(self.linear, x, graphs)
        described: Any = graphs.edges
        edges = described.project(self.edge_linear.weight) + self.edge_linear.bias
        messages = message_sum(_linear(self.source_linear, x, graphs), edges, graphs.topology)
        h = neighbour_sum(h, graphs.topology).add_(h).add_(messages).add_(self.bias)
        return self.second(h.relu_()).relu_()


class GCNLayer(nn.Module):
    """One layer of GCN, with self-loops and symmetric normalisation by the in-degrees.

    Edges with weights count as much as their weights say.
    """

    def __init__(self, in_features: int, width: int):
        super().__init__()
        self.linear = nn.Linear(in_features, width, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor | None, graphs: GraphBatch) -> Tensor:
        """Map node features (n_nodes, in_features), None for those of the graphs, to a width."""
        h = _linear(self.linear, x, graphs)
        topology, weight = graphs.topology, graphs.edge_weight
        if weight is None:
            degrees = topology.in_degrees
        else:
            degrees = edge_sum(weight.abs()[:, None], topology)[:, 0]
        scale = (degrees + 1).to(h.dtype).rsqrt()[:, None]
        h = h * scale
        if weight is None:
            summed = neighbour_sum(h, topology)
        else:
            summed = weighted_neighbour_sum(h, weight, topology)
        return ((h + summed) * scale + self.bias).relu()


class MessagePassing(nn.Module):
    """A stack of layers; a node is represented by its input and the outputs, concatenated.

    The output of a layer is normalised where it enters the next one, not where it is read out:
    so the read-out stays positive, and its sum over the nodes of a graph is a weighted count.

    Parameters
    ----------
    layer : callable
        Returns a layer, ``layer(in_features, width)``.
    in_features : int
        Number of node features.
    edge_features : int
        Number of features of edges that are read out with those of the nodes.
    width, n_layers : int
        Width of each layer, number of layers.
    batch_norm : bool
        Whether the input of each layer but the first is normalised over the nodes of the batch.
    jumping_knowledge : bool
        Whether the outputs of all layers are concatenated; otherwise only the last one is
        returned.
    readout_input : bool
        Whether the features of the node, and the sum of those of its incoming edges, stand before
        them.
    n_components : int or None
        Width of a linear map at the end; None adds no such map.
    """

    # Files of version 0.1 have no such attribute.
    readout_edges: bool = False

    def __init__(
        self,
        layer: Callable[[int, int], nn.Module],
        in_features: int,
        edge_features: int,
        width: int,
        n_layers: int,
        batch_norm: bool,
        jumping_knowledge: bool,
        readout_input: bool,
        n_components: int | None,
    ):
        super().__init__()
        widths = [in_features, *[width] * n_layers]
        self.layers = nn.ModuleList(layer(widths[k], width) for k in range(n_layers))
        self.norms = nn.ModuleList(
            nn.BatchNorm1d(width) if batch_norm else nn.Identity() for _ in self.layers[1:]
        )
        self.jumping_knowledge, self.readout_input = jumping_knowledge, readout_input
        self.readout_edges = readout_input and edge_features > 0
        self.last = nn.Identity()
        if n_components is not None:
            n_inputs = width * (n_layers if jumping_knowledge else 1)
            n_inputs += in_features + edge_features if readout_input else 0
            self.last = nn.Linear(n_inputs, n_components, bias=False)

    def forward(self, graphs: GraphBatch) -> Tensor:
        """Return the representations of the nodes of a GraphBatch, shape (n_nodes, width)."""
        states = [self.layers[0](None, graphs)]
        for norm, layer in zip(self.norms, self.layers[1:], strict=True):
            states.append(layer(norm(states[-1]), graphs))
        read = states if self.jumping_knowledge else states[-1:]
        return self.last(torch.cat([*self._input(graphs), *read], 1))

    def _input(self, graphs: GraphBatch) -> list[Tensor]:
        """Return the part of the input that is read out, tensors with a row per node."""
        read = [graphs.x] if self.readout_input else []
        if self.readout_edges:
            read.append(edge_sum(graphs.edge_attr, graphs.topology))
        return read


def _linear(linear: nn.Linear, x: Tensor | None, graphs: GraphBatch) -> Tensor:
    """Return the linear map of node features, (n_nodes, d) or, for None, those of the graphs."""
    return graphs.project(linear.weight) if x is None else linear(x)
