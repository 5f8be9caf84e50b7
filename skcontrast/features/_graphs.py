"""Features of graphs: sizes, degrees, triangles and neighbourhoods."""

from __future__ import annotations

from numbers import Integral

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import coo_array, csr_array
from torch import Tensor, nn

from .._checks import FRACTION, POSITIVE_INT, Interval, parameter
from ..graphs import GraphBatch
from ..graphs._networks import graph_sum, run_sum
from ..graphs._packed import Topology, group_of_each
from ._base import Features

# More rounds do not distinguish more graphs; a damaged file may have any number.
_MOST_ROUNDS = 100
# Larger degrees share a column.
_LARGEST_DEGREE = 9


class GraphProfile(Features):
    """Describe each graph by its size, degrees, triangles, and the attributes of its nodes.

    The columns are

    - the logarithms of the numbers of nodes, edges and triangles, where directions and repeated
      edges do not count; edges per node; and the density;
    - the shares of nodes of degree 0, 1, …, 8, and above;
    - the logarithm of the number of nodes with each label, and their share;
    - mean, standard deviation, minimum and maximum over the nodes of: the logarithm of the degree;
      the same four statistics of the neighbours' degrees (the local degree profile of [1]_); the
      clustering coefficient; and each attribute.

    Parameters
    ----------
    kind : "graphs" or Graphs, default=None
        How X is read, such as ``Graphs(standardize=False)``. None is "graphs".

    Attributes
    ----------
    module_ : torch.nn.Module
        The map from graphs to features.

    See Also
    --------
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
        """Return the profile as a module without parameters; see `Features.learn`."""
        return Profile()


class WeisfeilerLehman(Features):
    r"""Count the neighbourhoods of nodes: the subtree features of Weisfeiler and Lehman.

    A node's first colour is its label, if it has one. In each round, a node's colour and those of
    its neighbours, with the labels of the edges to them, become its next colour [1]_:

    .. math:: c_v \leftarrow h\Big(c_v, \sum_{u \to v} h(c_u, l_{uv})\Big)

    with a hash h of 64 bits. The sum makes the order of neighbours irrelevant. Each colour is a
    feature log(1 + n), where n counts the nodes of a graph with this colour. Node attributes, edge
    attributes and edge weights are ignored.

    Parameters
    ----------
    n_rounds : int, default=4
        Rounds, in [0, 100]; 0 counts labels.
    min_share : float, default=0.01
        Colours in fewer than this share of the training graphs, in [0, 1], or in one are dropped.
    max_features : int, default=4000
        Maximum number of colours; those in the most training graphs are kept.
    kind : "graphs" or Graphs, default=None
        How X is read, such as ``Graphs(standardize=False)``. None is "graphs".

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
    n_rounds: int = parameter([Interval(Integral, 0, _MOST_ROUNDS, closed="both")], default=4)
    min_share: float = parameter(FRACTION, default=0.01)
    max_features: int = parameter(POSITIVE_INT, default=4000)

    def learn(self, batch: GraphBatch, rng: np.random.RandomState) -> nn.Module:
        """Return a module that counts the colours of training graphs; see `Features`."""
        return ColourCounts.of(batch, self.n_rounds, self.min_share, self.max_features)


class Profile(nn.Module):
    """The columns of :class:`GraphProfile`."""

    def forward(self, graphs: GraphBatch) -> Tensor:
        topology = graphs.topology
        sizes, degrees = topology.sizes.float(), topology.in_degrees
        links, loops = _simple(topology)
        linked, triangles = links.sum(axis=1), _triangles(links)
        n_edges = _over_nodes(linked / 2 + loops, topology)
        n_triangles = _over_nodes(triangles / 3, topology)  # each is counted at three nodes
        clustering = torch.from_numpy(triangles / np.maximum(linked * (linked - 1) / 2, 1))
        pairs = (sizes * (sizes - 1) / 2).clamp_min(1)
        columns = [sizes.log(), n_edges.log1p(), n_triangles.log1p()]
        columns += [n_edges / sizes, n_edges / pairs]
        # Statistics over nodes, which include statistics of their neighbours' degrees.
        log_degrees = degrees.float().log1p()[:, None]
        of_neighbours = _statistics(log_degrees[topology.sources], topology.edge_ptr)
        of_nodes = [log_degrees, of_neighbours, clustering[:, None].to(log_degrees), graphs.dense]
        # Shares of degrees and labels, and counts of labels.
        shares = [_counts(degrees.clamp_max(_LARGEST_DEGREE), _LARGEST_DEGREE + 1, topology)]
        if graphs.codes is not None and not graphs.ordinal:
            counts = _counts(graphs.codes, graphs.n_codes, topology)
            shares.append(counts)
            columns.extend(counts.log1p().T)
        shares = [counts / sizes[:, None] for counts in shares]
        over_nodes = _statistics(torch.cat(of_nodes, 1), topology.node_ptr)
        return torch.cat([torch.stack(columns, 1), *shares, over_nodes], 1)


def _statistics(x: Tensor, ptr: Tensor) -> Tensor:
    """Return mean, deviation, minimum and maximum over runs of rows of x, (m, d), concatenated.

    Runs start at ``ptr[:-1]``; the statistics of an empty one are 0.
    """
    sizes = ptr.diff()
    group = group_of_each(sizes, len(x))
    mean = run_sum(x, ptr) / sizes.clamp_min(1)[:, None]
    variance = run_sum((x - mean[group]).square(), ptr) / sizes.clamp_min(1)[:, None]
    # Deviations within the rounding error of the mean are set to 0.
    deviation = variance.sqrt()
    deviation = torch.where(deviation > 1e-5 * (1 + mean.abs()), deviation, 0.0)
    rows, empty = group[:, None].expand_as(x), x.new_zeros(len(sizes), x.shape[1])
    ends = [empty.scatter_reduce(0, rows, x, how, include_self=False) for how in ("amin", "amax")]
    return torch.cat([mean, deviation, *ends], 1)


def _counts(codes: Tensor, n_codes: int, topology: Topology) -> Tensor:
    """Count the nodes of each graph with each code, (n_graphs, n_codes); −1 is no code."""
    known = codes >= 0
    cells = topology.graph_of_node[known] * n_codes + codes[known]
    counts = torch.bincount(cells, minlength=topology.n_graphs * n_codes)
    return counts.view(topology.n_graphs, n_codes).float()


def _simple(topology: Topology) -> tuple[csr_array, NDArray[np.bool_]]:
    """Return the adjacency matrix (n_nodes, n_nodes) of the simple graphs, and a mask of loops.

    Directions and repeated edges are ignored.
    """
    sources, targets = topology.edge_index.cpu().numpy()
    n_nodes = topology.n_nodes
    ones = np.ones(2 * len(sources), dtype=np.float32)
    ends = np.concatenate([sources, targets]), np.concatenate([targets, sources])
    links = coo_array((ones, ends), shape=(n_nodes, n_nodes)).tocsr()
    loops = links.diagonal() > 0
    links.setdiag(0)
    links.eliminate_zeros()
    links.data[:] = 1
    return links, loops


def _triangles(links: csr_array) -> NDArray:
    """Return the number of triangles at each node of simple graphs."""
    rows, columns = links.nonzero()
    # With edges from lower to higher degrees, hubs have few edges.
    rank = links.sum(axis=1).argsort(kind="stable").argsort()
    up = rank[rows] < rank[columns]
    upward = coo_array((links.data[up], (rows[up], columns[up])), shape=links.shape).tocsr()
    # In a triangle with ranks u < v < w, (u, w) and (v, w) each have one path over the third node.
    closed = (links @ upward).multiply(upward)
    return closed.sum(axis=1) + closed.sum(axis=0) / 2


def _over_nodes(values: NDArray, topology: Topology) -> Tensor:
    """Return the sum of values over the nodes of each graph, shape (n_graphs,)."""
    column = torch.from_numpy(values).float().to(topology.sources.device)[:, None]
    return graph_sum(column, topology)[:, 0]


class ColourCounts(nn.Module):
    """The columns of :class:`WeisfeilerLehman`: log(1 + n) for each colour.

    Parameters
    ----------
    colours : Tensor of shape (n_colours,), dtype int64
        The colours that are counted.
    n_rounds : int
        Number of rounds.
    """

    colours: Tensor

    def __init__(self, colours: Tensor, n_rounds: int):
        super().__init__()
        self.n_rounds = n_rounds
        self.register_buffer("colours", colours)

    @classmethod
    def of(
        cls, graphs: GraphBatch, n_rounds: int, min_share: float, max_features: int
    ) -> ColourCounts:
        """Return a module that counts the colours of enough training graphs."""
        pairs = [torch.stack([colours, graphs.batch]) for colours in _colours(graphs, n_rounds)]
        # Each colour counts once per graph.
        occurs = torch.cat([torch.unique(pair, dim=1)[0] for pair in pairs])
        colours, n_graphs = torch.unique(occurs, return_counts=True)
        least = min(max(2.0, min_share * len(graphs)), len(graphs))
        most_first = n_graphs.argsort(descending=True, stable=True)
        kept = most_first[n_graphs[most_first] >= least][:max_features]
        if not len(kept):  # no two graphs have a colour in common
            kept = most_first[:1]
        return cls(colours[kept], n_rounds)

    def forward(self, graphs: GraphBatch) -> Tensor:
        ordered, column = self.colours.sort()
        last = len(ordered) - 1
        counts = graphs.dense.new_zeros(len(graphs), len(ordered))
        for colours in _colours(graphs, self.n_rounds):
            near = torch.searchsorted(ordered, colours).clamp_max(last)
            codes = torch.where(ordered[near] == colours, column[near], -1)
            counts += _counts(codes, len(ordered), graphs.topology)
        return counts.log1p()


def _colours(graphs: GraphBatch, n_rounds: int) -> list[Tensor]:
    """Return the colour of each node, shape (n_nodes,), before and after each round."""
    topology = graphs.topology
    first = torch.zeros_like(topology.in_degrees)
    if graphs.codes is not None and not graphs.ordinal:
        first = graphs.codes
    colours = [_hashed(first)]
    links: Tensor | int = 0
    if graphs.edges is not None and graphs.edges.codes is not None:
        links = _hashed(graphs.edges.codes)
    # The sum of hashes is the hash of a multiset of neighbours.
    for _ in range(n_rounds):
        last = colours[-1]
        messages = _hashed(last[topology.sources] + links)
        around = torch.zeros_like(last).index_add_(0, topology.targets, messages)
        colours.append(_hashed(3 * last + _hashed(around)))
    return colours


def _hashed(x: Tensor) -> Tensor:
    """Return the 64-bit hash SplitMix64, which is one to one; products wrap around."""
    x = x + -0x61C8864680B583EB
    x = (x ^ _shifted(x, 30)) * -0x40A7B892E31B1A47
    x = (x ^ _shifted(x, 27)) * -0x6B2FB644ECCEEE15
    return x ^ _shifted(x, 31)


def _shifted(x: Tensor, n: int) -> Tensor:
    """Return x shifted to the right, with zeros from the left."""
    return (x >> n) & ((1 << (64 - n)) - 1)
