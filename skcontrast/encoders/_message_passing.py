"""Layers that pass messages along the edges of packed graphs, and sums over neighbours."""

from __future__ import annotations

import torch
from torch import nn

from ..graphs import GraphBatch
from ..graphs._sums import neighbour_sum


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


def _linear(linear, x):
    """Return the linear map of node features, shape (n_nodes, d), or of a GraphBatch's."""
    return x.project(linear.weight) if isinstance(x, GraphBatch) else linear(x)
