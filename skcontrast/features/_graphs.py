"""Profiles of graphs, and counts of the neighbourhoods of their nodes."""

from __future__ import annotations

from numbers import Integral

import numpy as np
from torch import nn

from .._checks import FRACTION, POSITIVE_INT, Interval, parameter
from .._layers._wide import FirstColumns
from ..graphs import GraphBatch
from ..graphs._counts import MOST_ROUNDS, ColourCounts, Components, Profile
from ._base import Features


class GraphProfile(Features):
    """Describe each graph by its size, degrees, triangles, and what its nodes are.

    The columns: logarithms of the numbers of nodes, edges and triangles, where an edge is a linked
    pair of nodes or a loop, in whatever direction and however often; edges per node and the
    density; the share of nodes of degree 0, 1, …, 8, and of more; mean, standard deviation, least
    and greatest of each of these over the nodes: the logarithm of the degree, mean, deviation,
    least and greatest of that of the neighbours (the local degree profile of [1]_), the
    clustering coefficient, and each attribute; the logarithm of how often each label occurs, and
    its share.

    Attributes
    ----------
    module_ : torch.nn.Module
        The map from graphs to features.

    See Also
    --------
    GraphSize : The first two columns.
    WeisfeilerLehman : Counts the neighbourhoods of nodes.

    References
    ----------
    .. [1] C. Cai, Y. Wang, "A Simple yet Effective Baseline for Non-attributed Graph
       Classification", 2018.

    Examples
    --------
    >>> import networkx as nx
    >>> from skcontrast.features import GraphProfile
    >>> GraphProfile().fit_transform([nx.cycle_graph(5), nx.star_graph(3)]).shape
    (2, 39)
    """

    kind = "graphs"

    def learn(self, batch: GraphBatch, rng: np.random.RandomState) -> nn.Module:
        """Return the profile as a module, which learns nothing; see `Features.learn`."""
        return Profile()


class GraphSize(Features):
    """The logarithms of the numbers of nodes and of edges of each graph.

    Attributes
    ----------
    module_ : torch.nn.Module
        The map from graphs to features.

    See Also
    --------
    GraphProfile : Has these and more.

    Examples
    --------
    >>> import networkx as nx
    >>> from skcontrast.features import GraphSize
    >>> GraphSize().fit_transform([nx.cycle_graph(5), nx.star_graph(3)]).shape
    (2, 2)
    """

    kind = "graphs"

    def learn(self, batch: GraphBatch, rng: np.random.RandomState) -> nn.Module:
        """Return the logarithms as a module, which learns nothing; see `Features.learn`."""
        return nn.Sequential(Profile(), FirstColumns(2))


class WeisfeilerLehman(Features):
    r"""Count the neighbourhoods of nodes: the subtree features of Weisfeiler and Lehman.

    A node's first colour is its label, if it has one. In each round, a node's colour and those of
    its neighbours, with the labels of the edges to them, become its next colour [1]_:

    .. math:: c_v \leftarrow h\Big(c_v, \sum_{u \to v} h(c_u, l_{uv})\Big)

    with a hash h of 64 bits, so that the order of neighbours does not count. A feature is
    log(1 + n) of how many nodes of a graph have a colour in any round. Attributes, and weights of
    edges, do not count. With an SVM after it, it is ahead of many graph networks on small sets of
    molecules.

    Parameters
    ----------
    n_rounds : int, default=4
        Rounds, in [0, 100]; 0 counts labels.
    min_share : float, default=0.01
        Share of the training graphs in which a colour must occur, in [0, 1]; it must occur in two
        graphs at least.
    max_features : int, default=4000
        The most colours, those that occur in the most training graphs.
    n_components : int, default=None
        The most principal components of the counts that are returned in their place, rotated so
        that all vary alike; their number is rounded up to a power of 2. None returns the counts.

    Attributes
    ----------
    module_ : torch.nn.Module
        The map from graphs to features.

    See Also
    --------
    GraphProfile : Sizes, degrees and triangles.

    References
    ----------
    .. [1] N. Shervashidze, P. Schweitzer, E. J. van Leeuwen, K. Mehlhorn, K. M. Borgwardt,
       "Weisfeiler-Lehman Graph Kernels", JMLR 2011.

    Examples
    --------
    >>> import networkx as nx
    >>> from skcontrast.features import WeisfeilerLehman
    >>> graphs = [nx.path_graph(4), nx.path_graph(5), nx.cycle_graph(4)]
    >>> WeisfeilerLehman(n_rounds=1).fit_transform(graphs).round(1)
    array([[1.6, 1.1, 1.1],
           [1.8, 1.4, 1.1],
           [1.6, 1.6, 0. ]], dtype=float32)
    """

    kind = "graphs"
    n_rounds: int = parameter([Interval(Integral, 0, MOST_ROUNDS, closed="both")], default=4)
    min_share: float = parameter(FRACTION, default=0.01)
    max_features: int = parameter(POSITIVE_INT, default=4000)
    n_components: int | None = parameter([*POSITIVE_INT, None], default=None)

    @property
    def one_scale(self) -> bool:  # type: ignore[override]
        """Whether the columns have one unit, as components have."""
        return self.n_components is not None

    def learn(self, batch: GraphBatch, rng: np.random.RandomState) -> nn.Module:
        """Return the counts of the colours of training graphs as a module; see `Features`."""
        counts = ColourCounts.of(batch, self.n_rounds, self.min_share, self.max_features)
        most = self.n_components
        return counts if most is None else Components.of(counts, batch, most)
