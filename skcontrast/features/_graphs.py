"""Graphs as counts: sizes, degrees, triangles and neighbourhoods."""

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
from ..graphs._packed import Topology, owners
from ._base import Features

# More rounds tell no more graphs apart; a damaged file may ask for any number.
_MOST_ROUNDS = 100
# Degrees from here on share a column.
_LARGEST_DEGREE = 9


class GraphProfile(Features):
    """Describe each graph by its size, degrees, triangles, and what its nodes are.

    The columns: logarithms of the numbers of nodes, edges and triangles, where an edge is a linked
    pair of nodes or a loop, in any direction and counted once; edges per node and the
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
        """Return the counts of the colours of training graphs as a module; see `Features`."""
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
        whole = [sizes.log(), n_edges.log1p(), n_triangles.log1p()]
        whole += [n_edges / sizes, n_edges / pairs]
        # Of what nodes have, a graph gets statistics; a node has its neighbours' degrees, too.
        log_degrees = degrees.float().log1p()[:, None]
        of_neighbours = _statistics(log_degrees[topology.sources], topology.edge_ptr)
        of_nodes = [log_degrees, of_neighbours, clustering[:, None].to(log_degrees), graphs.dense]
        # Of degrees and labels it gets shares, as well as how often a label occurs.
        shares = [_counts(degrees.clamp_max(_LARGEST_DEGREE), _LARGEST_DEGREE + 1, topology)]
        if graphs.codes is not None and not graphs.ordinal:
            found = _counts(graphs.codes, graphs.n_codes, topology)
            shares.append(found)
            whole.extend(found.log1p().T)
        shares = [found / sizes[:, None] for found in shares]
        over_nodes = _statistics(torch.cat(of_nodes, 1), topology.node_ptr)
        return torch.cat([torch.stack(whole, 1), *shares, over_nodes], 1)


def _statistics(x: Tensor, ptr: Tensor) -> Tensor:
    """Return mean, deviation, least and greatest of runs of the rows of x, (m, d), concatenated.

    A run starts at each place but the last in `ptr`; the numbers of an empty one are 0.
    """
    sizes = ptr.diff()
    owner = owners(sizes, len(x))
    mean = run_sum(x, ptr) / sizes.clamp_min(1)[:, None]
    variance = run_sum((x - mean[owner]).square(), ptr) / sizes.clamp_min(1)[:, None]
    # No more than the rounding of the mean is 0.
    deviation = variance.sqrt()
    deviation = torch.where(deviation > 1e-5 * (1 + mean.abs()), deviation, 0.0)
    rows, empty = owner[:, None].expand_as(x), x.new_zeros(len(sizes), x.shape[1])
    ends = [empty.scatter_reduce(0, rows, x, how, include_self=False) for how in ("amin", "amax")]
    return torch.cat([mean, deviation, *ends], 1)


def _counts(codes: Tensor, n_codes: int, topology: Topology) -> Tensor:
    """Return how often each code, −1 for none, is that of a node, shape (n_graphs, n_codes)."""
    known = codes >= 0
    cells = topology.graph_of_node[known] * n_codes + codes[known]
    found = torch.bincount(cells, minlength=topology.n_graphs * n_codes)
    return found.view(topology.n_graphs, n_codes).float()


def _simple(topology: Topology) -> tuple[csr_array, NDArray[np.bool_]]:
    """Return the links of simple graphs, 0 and 1 of shape (n_nodes, n_nodes), and who has a loop.

    Directions, and how often two nodes are linked, do not count.
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
    # From lower to higher degrees, a hub has few links: the work is not the square of a degree.
    rank = links.sum(axis=1).argsort(kind="stable").argsort()
    up = rank[rows] < rank[columns]
    upward = coo_array((links.data[up], (rows[up], columns[up])), shape=links.shape).tocsr()
    # Of a triangle with the ranks u < v < w, (u, w) and (v, w) count one path over the third node.
    closed = (links @ upward).multiply(upward)
    return closed.sum(axis=1) + closed.sum(axis=0) / 2


def _over_nodes(values: NDArray, topology: Topology) -> Tensor:
    """Return the sum of the values of the nodes of each graph, shape (n_graphs,)."""
    column = torch.from_numpy(values).float().to(topology.sources.device)[:, None]
    return graph_sum(column, topology)[:, 0]


class ColourCounts(nn.Module):
    """The columns of :class:`WeisfeilerLehman`: log(1 + n) for each colour.

    Parameters
    ----------
    colours : Tensor of shape (n_colours,), dtype int64
        The colours that are counted.
    n_rounds : int
        Rounds in which nodes take colours from their neighbours.
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
        """Return the counts of the colours that occur in enough training graphs."""
        pairs = [torch.stack([one, graphs.batch]) for one in _colours(graphs, n_rounds)]
        # Once for each graph, however often it occurs there.
        occurs = torch.cat([torch.unique(pair, dim=1)[0] for pair in pairs])
        colours, n_graphs = torch.unique(occurs, return_counts=True)
        least = min(max(2.0, min_share * len(graphs)), len(graphs))
        most_first = n_graphs.argsort(descending=True, stable=True)
        kept = most_first[n_graphs[most_first] >= least][:max_features]
        if not len(kept):  # no two graphs are alike in anything
            kept = most_first[:1]
        return cls(colours[kept], n_rounds)

    def forward(self, graphs: GraphBatch) -> Tensor:
        ordered, place = self.colours.sort()
        last = len(ordered) - 1
        found = graphs.dense.new_zeros(len(graphs), len(ordered))
        for colours in _colours(graphs, self.n_rounds):
            near = torch.searchsorted(ordered, colours).clamp_max(last)
            codes = torch.where(ordered[near] == colours, place[near], -1)
            found += _counts(codes, len(ordered), graphs.topology)
        return found.log1p()


def _colours(graphs: GraphBatch, n_rounds: int) -> list[Tensor]:
    """Return the colour of each node, shape (n_nodes,), before and after each round."""
    if n_rounds > _MOST_ROUNDS:
        raise ValueError(f"n_rounds must be at most {_MOST_ROUNDS}, got {n_rounds}.")
    topology = graphs.topology
    first = torch.zeros_like(topology.in_degrees)
    if graphs.codes is not None and not graphs.ordinal:
        first = graphs.codes
    colours = [_hashed(first)]
    links: Tensor | int = 0
    if graphs.edges is not None and graphs.edges.codes is not None:
        links = _hashed(graphs.edges.codes)
    # A round of Weisfeiler and Leman: a node with its neighbours, in no order, has a new colour.
    # The sum of hashes is the hash of a multiset.
    for _ in range(n_rounds):
        last = colours[-1]
        messages = _hashed(last[topology.sources] + links)
        around = torch.zeros_like(last).index_add_(0, topology.targets, messages)
        colours.append(_hashed(3 * last + _hashed(around)))
    return colours


def _hashed(x: Tensor) -> Tensor:
    """Return 64 bits for each 64 bits, one to one, by SplitMix64; products wrap around."""
    x = x + -0x61C8864680B583EB
    x = (x ^ _shifted(x, 30)) * -0x40A7B892E31B1A47
    x = (x ^ _shifted(x, 27)) * -0x6B2FB644ECCEEE15
    return x ^ _shifted(x, 31)


def _shifted(x: Tensor, n: int) -> Tensor:
    """Return x shifted to the right, with zeros from the left."""
    return (x >> n) & ((1 << (64 - n)) - 1)
