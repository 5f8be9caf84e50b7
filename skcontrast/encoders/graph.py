"""Graph neural networks: GIN and GCN."""

from __future__ import annotations

from numbers import Integral
from typing import Literal

from torch import nn

from .._parameters import Interval, StrOptions, validate_parameters
from ..graphs._networks import GraphNetwork
from ._base import Encoder, check_shape
from ._message_passing import GCNLayer, GINLayer, MessagePassing

__all__ = ["GCN", "GIN"]


class _GraphEncoder(Encoder):
    """Base class of GIN and GCN, which differ in their layers."""

    _layer: type
    n_layers: int
    width: int
    pooling: str
    batch_norm: bool
    jumping_knowledge: bool

    kind = "graphs"
    _parameter_constraints: dict = {
        "n_layers": [Interval(Integral, 1, None, closed="left")],
        "width": [Interval(Integral, 1, None, closed="left")],
        "pooling": [StrOptions({"sum", "mean"})],
        "batch_norm": ["boolean"],
        "jumping_knowledge": ["boolean"],
    }

    def build(self, sample_shape: tuple, n_components: int | None = None) -> nn.Module:
        """Return a new network for graphs.

        The weights are drawn from torch's global random state.

        Parameters
        ----------
        sample_shape : tuple
            ``(None, n_node_features)``: graphs have any number of nodes.
        n_components : int or None, default=None
            Width of the representation; None means the width of all layers together, or of the
            last one without jumping knowledge.

        Returns
        -------
        module : torch.nn.Module
            Maps a :class:`~skcontrast.graphs.GraphBatch` of n graphs to (n, n_components).

        Raises
        ------
        ValueError
            If a hyperparameter lies outside its range, or the samples are not graphs.
        """
        validate_parameters(self)
        check_shape(self, sample_shape)
        return GraphNetwork(
            MessagePassing(
                self._layer,
                sample_shape[1],
                self.width,
                self.n_layers,
                self.batch_norm,
                self.jumping_knowledge,
                n_components,
            ),
            self.pooling,
        )


class GIN(_GraphEncoder):
    r"""Graph isomorphism network: the default encoder of graphs.

    Layer k computes for node v

    .. math:: h_v^{(k)} = \mathrm{BN}\Bigl(\mathrm{MLP}^{(k)}\bigl(h_v^{(k-1)}
        + \textstyle\sum_{u \to v} h_u^{(k-1)}\bigr)\Bigr)

    with a perceptron of two layers, each followed by a ReLU [1]_. A node is represented by the
    outputs of all layers side by side, a graph by the sum over its nodes [2]_.

    Parameters
    ----------
    n_layers : int, default=3
        Number of layers, the distance up to which neighbours influence a node.
    width : int, default=32
        Width of each layer. The representation has ``n_layers * width`` components.
    pooling : {"sum", "mean"}, default="sum"
        How the nodes of a graph become one vector. The sum grows with the graph.
    batch_norm : bool, default=True
        Whether layers are normalised over the nodes of the batch.
    jumping_knowledge : bool, default=True
        Whether the outputs of all layers are used; otherwise only the last one is.

    See Also
    --------
    GCN : Averages over neighbours, weighted by degrees, instead of summing.
    skcontrast.frameworks.InfoGraph : Contrasts nodes with their graphs.

    References
    ----------
    .. [1] K. Xu, W. Hu, J. Leskovec, S. Jegelka, "How Powerful are Graph Neural Networks?", ICLR
       2019.
    .. [2] F.-Y. Sun, J. Hoffmann, V. Verma, J. Tang, "InfoGraph: Unsupervised and Semi-supervised
       Graph-Level Representation Learning via Mutual Information Maximization", ICLR 2020.

    Examples
    --------
    >>> import networkx as nx
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.encoders import GIN
    >>> graphs = [nx.gnp_random_graph(10, 0.3, seed=k) for k in range(20)]
    >>> embedder = ContrastiveEmbedder(encoder=GIN(n_layers=2), max_epochs=2, random_state=0)
    >>> embedder.fit_transform(graphs).shape
    (20, 64)
    """

    _layer = GINLayer

    def __init__(
        self,
        n_layers: int = 3,
        width: int = 32,
        pooling: Literal["sum", "mean"] = "sum",
        batch_norm: bool = True,
        jumping_knowledge: bool = True,
    ):
        self.n_layers = n_layers
        self.width = width
        self.pooling = pooling
        self.batch_norm = batch_norm
        self.jumping_knowledge = jumping_knowledge


class GCN(_GraphEncoder):
    r"""Graph convolutional network.

    Layer k computes for node v

    .. math:: h_v^{(k)} = \mathrm{BN}\Bigl(\mathrm{ReLU}\Bigl(b + W^{(k)}
        \textstyle\sum_{u \to v \text{ or } u = v} \frac{h_u^{(k-1)}}{\sqrt{d_u d_v}}\Bigr)\Bigr)

    where :math:`d_v` is one more than the number of edges that end at v [1]_. If a node already
    has a loop, it counts in addition to the one that is added. Graphs are pooled as in
    :class:`GIN`, and the parameters are the same.

    Parameters
    ----------
    n_layers : int, default=3
        Number of layers.
    width : int, default=32
        Width of each layer.
    pooling : {"sum", "mean"}, default="sum"
        How the nodes of a graph become one vector.
    batch_norm : bool, default=True
        Whether layers are normalised over the nodes of the batch.
    jumping_knowledge : bool, default=True
        Whether the outputs of all layers are used; otherwise only the last one is.

    See Also
    --------
    GIN : Sums over neighbours, and tells more graphs apart.
    skcontrast.frameworks.InfoGraph : Contrasts nodes with their graphs.

    References
    ----------
    .. [1] T. N. Kipf, M. Welling, "Semi-Supervised Classification with Graph Convolutional
       Networks", ICLR 2017.

    Examples
    --------
    >>> import networkx as nx
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.encoders import GCN
    >>> graphs = [nx.gnp_random_graph(10, 0.3, seed=k) for k in range(20)]
    >>> embedder = ContrastiveEmbedder(encoder=GCN(width=16), max_epochs=2, random_state=0)
    >>> embedder.fit_transform(graphs).shape
    (20, 48)
    """

    _layer = GCNLayer

    def __init__(
        self,
        n_layers: int = 3,
        width: int = 32,
        pooling: Literal["sum", "mean"] = "sum",
        batch_norm: bool = True,
        jumping_knowledge: bool = True,
    ):
        self.n_layers = n_layers
        self.width = width
        self.pooling = pooling
        self.batch_norm = batch_norm
        self.jumping_knowledge = jumping_knowledge
