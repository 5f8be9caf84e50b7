"""Layers that pass messages along the edges of graphs."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..graphs import GraphBatch
from ..graphs._sums import neighbour_sum
from ..graphs._topology import Topology


class GINLayer(nn.Module):
    """One layer of GIN; the first linear map is applied before the sum, which is the same."""

    def __init__(self, in_features: int, width: int):
        super().__init__()
        self.linear = nn.Linear(in_features, width, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))
        self.second = nn.Linear(width, width)

    def forward(self, x: Tensor | GraphBatch, topology: Topology) -> Tensor:
        """Map node features (n_nodes, in_features), or a GraphBatch, to (n_nodes, width)."""
        h = _linear(self.linear, x)
        h = neighbour_sum(h, topology).add_(h).add_(self.bias)
        return self.second(h.relu_()).relu_()


class GCNLayer(nn.Module):
    """One layer of GCN, with self-loops and symmetric normalisation by the in-degrees."""

    def __init__(self, in_features: int, width: int):
        super().__init__()
        self.linear = nn.Linear(in_features, width, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor | GraphBatch, topology: Topology) -> Tensor:
        """Map node features (n_nodes, in_features), or a GraphBatch, to (n_nodes, width)."""
        h = _linear(self.linear, x)
        scale = (topology.in_degrees + 1).to(h.dtype).rsqrt()[:, None]
        h = h * scale
        return ((h + neighbour_sum(h, topology)) * scale + self.bias).relu()


class MessagePassing(nn.Module):
    """A stack of layers; a node is represented by its input and the outputs side by side.

    The output of a layer is normalised where it enters the next one, not where it is read out:
    so the read-out stays positive, and its sum over the nodes of a graph is a weighted count.

    Parameters
    ----------
    layer : type
        Class of the layers, ``layer(in_features, width)``.
    in_features, width, n_layers : int
        Number of node features, width of each layer, number of layers.
    batch_norm : bool
        Whether the input of each layer but the first is normalised over the nodes of the batch.
    jumping_knowledge : bool
        Whether the outputs of all layers are put side by side; otherwise only the last one is
        returned.
    readout_input : bool
        Whether the features of the node stand before them.
    n_components : int or None
        Width of a linear map at the end; None adds no such map.
    """

    def __init__(
        self,
        layer: type,
        in_features: int,
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
        self.last = nn.Identity()
        if n_components is not None:
            n_inputs = width * (n_layers if jumping_knowledge else 1)
            n_inputs += in_features if readout_input else 0
            self.last = nn.Linear(n_inputs, n_components, bias=False)

    def forward(self, graphs: GraphBatch) -> Tensor:
        """Return the representations of the nodes of a GraphBatch, shape (n_nodes, width)."""
        states = [self.layers[0](graphs, graphs.topology)]
        for norm, layer in zip(self.norms, self.layers[1:], strict=True):
            states.append(layer(norm(states[-1]), graphs.topology))
        read = states if self.jumping_knowledge else states[-1:]
        return self.last(torch.cat([graphs.x, *read] if self.readout_input else read, 1))


def _linear(linear: nn.Linear, x: Tensor | GraphBatch) -> Tensor:
    """Return the linear map of node features, (n_nodes, d) or those of a GraphBatch."""
    return x.project(linear.weight) if isinstance(x, GraphBatch) else linear(x)
