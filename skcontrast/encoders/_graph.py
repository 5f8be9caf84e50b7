"""The graph isomorphism network."""

from functools import partial
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from .._checks import POSITIVE_INT, parameter
from ..graphs import GraphBatch
from ..graphs._networks import GraphNetwork, message_sum, neighbour_sum, run_sum
from ._base import Encoder, check_build


class GIN(Encoder):
    r"""Graph isomorphism network: the default encoder of graphs.

    Layer k computes for node v

    .. math:: h_v^{(k)} = \mathrm{MLP}^{(k)}\bigl(g_v^{(k-1)}
        + \textstyle\sum_{u \to v} g_u^{(k-1)}\bigr), \qquad
        g_v^{(0)} = x_v, \quad g_v^{(k)} = \mathrm{BN}(h_v^{(k)})

    with a perceptron of two layers, each followed by a ReLU [1]_. If edges have features
    :math:`e_{uv}`, the sum of GINE [3]_ is added before the first ReLU of the perceptron,

    .. math:: \textstyle\sum_{u \to v}
        \mathrm{ReLU}\bigl(U^{(k)} g_u^{(k-1)} + V^{(k)} e_{uv} + c^{(k)}\bigr).

    A node is represented by its
    features :math:`x_v` and the outputs of all layers, concatenated [2]_, a graph by the sum over
    its nodes on a logarithmic scale,

    .. math:: h_G = \operatorname{sign}(s) \log(1 + |s|), \qquad
        s = \sum_{v \in G} \bigl(x_v, h_v^{(1)}, h_v^{(2)}, \dots\bigr).

    So the first components of the representation count the nodes with each label, or with at least
    each degree. Features of edges, if there are any, follow those of the nodes, summed over the
    edges that end at a node: undirected edges count twice.

    Parameters
    ----------
    n_layers : int, default=3
        Number of layers, the distance up to which neighbours influence a node.
    width : int, default=32
        Width of each layer. The representation has
        ``n_node_features + n_edge_features + n_layers * width`` components.
    pooling : {"log-sum", "sum", "mean"}, default="log-sum"
        The pooling over the nodes of a graph. "log-sum" is the logarithm of the sum, as above:
        with the sum itself, a few large graphs dominate distances and gradients.
    batch_norm : bool, default=True
        Whether the input of each layer but the first is normalised over the nodes of the batch.
    readout_input : bool, default=True
        Whether the features of the nodes, and of the edges, are used alongside the outputs of the
        layers.

    See Also
    --------
    skcontrast.frameworks.InfoGraph : Contrasts nodes with their graphs.

    References
    ----------
    .. [1] K. Xu, W. Hu, J. Leskovec, S. Jegelka, "How Powerful are Graph Neural Networks?", ICLR
       2019.
    .. [2] F.-Y. Sun, J. Hoffmann, V. Verma, J. Tang, "InfoGraph: Unsupervised and Semi-supervised
       Graph-Level Representation Learning via Mutual Information Maximization", ICLR 2020.
    .. [3] W. Hu, B. Liu, J. Gomes, M. Zitnik, P. Liang, V. Pande, J. Leskovec, "Strategies for
       Pre-training Graph Neural Networks", ICLR 2020.

    Examples
    --------
    >>> import networkx as nx
    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.encoders import GIN
    >>> graphs = [nx.gnp_random_graph(10, 0.3, seed=k) for k in range(20)]
    >>> embedder = ContrastiveEmbedder(encoder=GIN(n_layers=2), max_epochs=2, random_state=0)
    >>> embedder.fit_transform(graphs).shape
    (20, 71)

    Degrees are at most 6: the first 7 components count the nodes of at least degree 0, 1, …, 6:

    >>> H = embedder.transform([nx.star_graph(3)])
    >>> np.expm1(H[0, :7]).round()
    array([4., 4., 1., 1., 0., 0., 0.], dtype=float32)
    """

    kind = "graphs"
    n_layers: int = parameter(POSITIVE_INT, default=3)
    width: int = parameter(POSITIVE_INT, default=32)
    pooling: Literal["log-sum", "sum", "mean"] = parameter(
        {"log-sum", "sum", "mean"}, default="log-sum"
    )
    batch_norm: bool = parameter(["boolean"], default=True)
    readout_input: bool = parameter(["boolean"], default=True)

    def build(self, sample_shape: tuple, n_components: int | None = None) -> nn.Module:
        """Return a new network for graphs.

        The weights are drawn from torch's global random state.

        Parameters
        ----------
        sample_shape : tuple
            ``(None, n_node_features)``, or ``(None, n_node_features, n_edge_features)`` if
            edges have features; None is the number of nodes.
        n_components : int or None, default=None
            Width of a last linear layer. With None there is no such layer.

        Returns
        -------
        module : torch.nn.Module
            Maps a :class:`~skcontrast.graphs.GraphBatch` of n graphs to (n, n_components).

        Raises
        ------
        ValueError
            If a hyperparameter is outside its range, or the samples are not graphs.
        """
        check_build(self, sample_shape, n_components)
        layers = MessagePassing(self, sample_shape[1], sum(sample_shape[2:]), n_components)
        return GraphNetwork(layers, self.pooling)


class GINLayer(nn.Module):
    """A layer of GIN, with the first linear map applied before the sum, which is equivalent."""

    def __init__(self, in_features: int, width: int):
        super().__init__()
        self.linear = nn.Linear(in_features, width, bias=False)
        self.bias = nn.Parameter(torch.zeros(width))
        self.second = nn.Linear(width, width)

    def forward(self, x: Tensor | None, graphs: GraphBatch) -> Tensor:
        """Map node features (n_nodes, in_features), None for those of the graphs, to a width."""
        return self.second(self._sum(x, graphs).add_(self.bias).relu_()).relu_()

    def _sum(self, x: Tensor | None, graphs: GraphBatch) -> Tensor:
        """Return the sum over each node and its neighbours, after the linear map."""
        h = _node_map(self.linear, x, graphs)
        return neighbour_sum(h, graphs.topology).add_(h)


class GINELayer(GINLayer):
    """A layer of GIN with the messages of GINE added, for edges with features."""

    def __init__(self, in_features: int, width: int, edge_features: int):
        super().__init__(in_features, width)
        self.source_linear = nn.Linear(in_features, width, bias=False)
        self.edge_linear = nn.Linear(edge_features, width)

    def _sum(self, x: Tensor | None, graphs: GraphBatch) -> Tensor:
        """Return the sum of GIN and the messages."""
        total, columns = super()._sum(x, graphs), cast(Any, graphs.edges)
        edges = columns.project(self.edge_linear.weight) + self.edge_linear.bias
        messages = message_sum(_node_map(self.source_linear, x, graphs), edges, graphs.topology)
        return total.add_(messages)


class MessagePassing(nn.Module):
    """A stack of layers; a node is represented by its input and all outputs, concatenated.

    The input of the next layer is normalised, but the read-out is not: it stays positive, and its
    sum over the nodes of a graph is a weighted count.

    Parameters
    ----------
    encoder : GIN
        Its hyperparameters.
    in_features : int
        Number of node features.
    edge_features : int
        Number of features of edges.
    n_components : int or None
        Width of a linear map at the end; None adds no such map.
    """

    def __init__(
        self, encoder: GIN, in_features: int, edge_features: int, n_components: int | None
    ):
        super().__init__()
        width, layer = encoder.width, cast(Any, GINLayer)
        if edge_features:
            layer = partial(GINELayer, edge_features=edge_features)
        widths = [in_features, *[width] * (encoder.n_layers - 1)]
        self.layers = nn.ModuleList(layer(before, width) for before in widths)
        norm = nn.BatchNorm1d if encoder.batch_norm else nn.Identity
        self.norms = nn.ModuleList(norm(width) for _ in widths[1:])
        # A graph is described by the sums over its nodes in every layer, concatenated.
        self.readout_input = encoder.readout_input
        self.readout_edges = self.readout_input and edge_features > 0
        self.width = width * encoder.n_layers
        self.width += in_features + edge_features if self.readout_input else 0
        self.last: nn.Module = nn.Identity()
        if n_components is not None:
            self.last = nn.Linear(self.width, n_components, bias=False)
            self.width = n_components

    def forward(self, graphs: GraphBatch) -> Tensor:
        """Return the representations of the nodes of a GraphBatch, shape (n_nodes, width)."""
        states = [self.layers[0](None, graphs)]
        for norm, layer in zip(self.norms, self.layers[1:], strict=True):
            states.append(layer(norm(states[-1]), graphs))
        return self.last(torch.cat([*self._input(graphs), *states], 1))

    def _input(self, graphs: GraphBatch) -> list[Tensor]:
        """Return the features of the input that are part of the representation, a row per node."""
        read = [graphs.x] if self.readout_input else []
        if self.readout_edges and graphs.edge_attr is not None:
            read.append(run_sum(graphs.edge_attr, graphs.topology.edge_ptr))
        return read


def _node_map(linear: nn.Linear, x: Tensor | None, graphs: GraphBatch) -> Tensor:
    """Return the linear map of node features, (n_nodes, d) or, for None, those of the graphs."""
    return graphs.project(linear.weight) if x is None else linear(x)
