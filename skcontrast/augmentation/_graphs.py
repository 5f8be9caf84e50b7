"""The four augmentations of graphs of GraphCL, vectorised over a batch."""

from numbers import Real

import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from torch import Generator, Tensor

from .._checks import FRACTION, Interval, parameter
from .._runtime import guarded
from ..graphs import GraphBatch
from ..graphs._packed import Topology, offsets
from ._base import Augmentation, generator_for


class _GraphAugmentation(Augmentation):
    """Base class of the augmentations of graphs; subclasses implement ``_draw``."""

    kind = "graphs"

    @guarded(gradients=False)
    def augment(self, batch: GraphBatch, generator: torch.Generator | None = None) -> GraphBatch:
        """Draw one fresh view of each graph.

        Parameters
        ----------
        batch : GraphBatch
            The graphs. Not modified.
        generator : torch.Generator, default=None
            Source of randomness, on the device of `batch`; None draws an unpredictable view.
            PyTorch's global random state is never used.

        Returns
        -------
        views : GraphBatch
            As many graphs, in the same order, each with at least one node.
        """
        return self._draw(batch, generator_for(batch, generator))

    def _draw(self, batch: GraphBatch, generator: torch.Generator) -> GraphBatch:
        raise NotImplementedError


class NodeDrop(_GraphAugmentation):
    """Drop nodes and their edges.

    The node dropping of GraphCL [1]_: from each graph, ``round(rate * n_nodes)`` nodes, chosen
    uniformly without replacement, are removed with all their edges; the other nodes and edges keep
    their features. At least one node is left.

    Parameters
    ----------
    rate : float, default=0.2
        Fraction of the nodes, in [0, 1], that is dropped from each graph.

    See Also
    --------
    EdgePerturb : Replaces edges and keeps the nodes.
    RandomWalkSubgraph : Drops nodes so that the others stay connected.
    AttributeMask : Hides features and keeps the nodes.

    Notes
    -----
    The authors' code rounds the number of nodes down, which leaves small graphs unchanged. Here,
    all augmentations of graphs round to the nearest integer.

    References
    ----------
    .. [1] Y. You, T. Chen, Y. Sui, T. Chen, Z. Wang, Y. Shen, "Graph Contrastive Learning with
       Augmentations", NeurIPS 2020.

    Examples
    --------
    >>> import networkx as nx
    >>> import torch
    >>> from skcontrast.augmentation import NodeDrop
    >>> from skcontrast.graphs import GraphBatch, pack_graphs
    >>> triangle = pack_graphs([nx.complete_graph(3)])
    >>> batch = GraphBatch(triangle.topology, torch.ones(3, 1))
    >>> view = NodeDrop(rate=0.4).augment(batch)
    >>> view.n_nodes, view.edge_index
    (2, tensor([[1, 0],
            [0, 1]]))
    """

    rate: float = parameter(FRACTION, default=0.2)

    def _draw(self, batch: GraphBatch, generator: torch.Generator) -> GraphBatch:
        return batch.keep(~random_nodes(batch, self.rate, generator, spared=1))


class AttributeMask(_GraphAugmentation):
    """Hide the features of random nodes.

    The attribute masking of GraphCL [1]_: in each graph, ``round(rate * n_nodes)`` nodes, chosen
    uniformly without replacement, lose all their features. Numbers become 0, which is their mean
    if they are standardised, and the category becomes unknown. Nodes and edges stay, and so do the
    features of edges.

    Parameters
    ----------
    rate : float, default=0.2
        Fraction of the nodes, in [0, 1], whose features are hidden in each graph.

    See Also
    --------
    NodeDrop : Removes the nodes.

    References
    ----------
    .. [1] Y. You, T. Chen, Y. Sui, T. Chen, Z. Wang, Y. Shen, "Graph Contrastive Learning with
       Augmentations", NeurIPS 2020.

    Examples
    --------
    >>> import networkx as nx
    >>> import torch
    >>> from skcontrast.augmentation import AttributeMask
    >>> from skcontrast.graphs import GraphBatch, pack_graphs
    >>> path = pack_graphs([nx.path_graph(3)])
    >>> batch = GraphBatch(path.topology, torch.ones(3, 1))
    >>> AttributeMask(rate=0.4).augment(batch).x.sum()
    tensor(2.)
    """

    rate: float = parameter(FRACTION, default=0.2)

    def _draw(self, batch: GraphBatch, generator: torch.Generator) -> GraphBatch:
        return batch.mask(random_nodes(batch, self.rate, generator))


class EdgePerturb(_GraphAugmentation):
    """Remove edges, and add the same number between random nodes.

    The edge perturbation of GraphCL [1]_: from each graph, ``round(rate * n_edges)`` edges, chosen
    uniformly without replacement, are removed; then the same number is added, each between two
    different nodes of the graph, chosen uniformly. Nodes and their features stay. Each added edge
    takes the features of a removed one. In undirected graphs an edge is removed or added in both
    directions.

    Parameters
    ----------
    rate : float, default=0.2
        Fraction of the edges, in [0, 1], that is removed from each graph.
    add : bool, default=True
        Whether edges are added for the removed ones.

    See Also
    --------
    NodeDrop : Removes nodes with their edges.

    Notes
    -----
    As in the authors' code a new edge may be parallel to an existing one; in sparse graphs that is
    rare. A graph of one node, which can only have loops, loses edges but gets none.

    References
    ----------
    .. [1] Y. You, T. Chen, Y. Sui, T. Chen, Z. Wang, Y. Shen, "Graph Contrastive Learning with
       Augmentations", NeurIPS 2020.

    Examples
    --------
    >>> import networkx as nx
    >>> import torch
    >>> from skcontrast.augmentation import EdgePerturb
    >>> from skcontrast.graphs import GraphBatch, pack_graphs
    >>> path = pack_graphs([nx.path_graph(3)])
    >>> batch = GraphBatch(path.topology, torch.ones(3, 1))
    >>> EdgePerturb(rate=0.5).augment(batch).edge_index.shape
    torch.Size([2, 4])
    >>> EdgePerturb(rate=0.5, add=False).augment(batch).edge_index.shape
    torch.Size([2, 2])
    """

    rate: float = parameter(FRACTION, default=0.2)
    add: bool = parameter(["boolean"], default=True)

    def _draw(self, batch: GraphBatch, generator: torch.Generator) -> GraphBatch:
        if self.rate == 0:
            return batch
        topology, all_edges = batch.topology, batch.edge_index
        once, ptr = edges_once(topology)
        counts = rounded(self.rate, ptr.diff())
        rows = once.nonzero()[:, 0]
        groups = batch.batch[all_edges[1, rows]]
        removed = random_subset(groups, ptr, counts, generator)
        edges, like = all_edges[:, rows[~removed]], rows[~removed]
        if self.add:
            edges = torch.cat([edges, random_pairs(topology.node_ptr, counts, generator)], dim=1)
            # The same number per graph, in the same order, except for graphs of one node.
            like = torch.cat([like, rows[removed][(topology.sizes > 1)[groups[removed]]]])
        if topology.symmetric:
            back = edges[0] != edges[1]
            edges = torch.cat([edges, edges.flip(0)[:, back]], dim=1)
            like = torch.cat([like, like[back]])
        return batch.with_edges(edges, like)


class RandomWalkSubgraph(_GraphAugmentation):
    """Keep the nodes that a random walk visits first, and the edges between them.

    The subgraph of GraphCL [1]_: the walk starts at a node chosen uniformly and then moves, at
    each step, to a node chosen uniformly among the unvisited neighbours of all visited nodes. It
    ends after ``round(ratio * n_nodes)`` nodes, at least one, or earlier if there are no such
    neighbours. A view of a connected graph is connected. In directed graphs the walk follows the
    direction of the edges.

    Parameters
    ----------
    ratio : float, default=0.8
        Fraction of the nodes, in (0, 1], that is kept of each graph.

    See Also
    --------
    NodeDrop : Drops nodes independently of the edges.

    Notes
    -----
    Such a walk visits the nodes in the order of their shortest paths from the start, if entering a
    node takes an independent exponential time: exponential times have no memory, so each
    unvisited neighbour is next with the same probability. Shortest paths are found for all graphs
    at once, on the CPU by Dijkstra's algorithm.

    References
    ----------
    .. [1] Y. You, T. Chen, Y. Sui, T. Chen, Z. Wang, Y. Shen, "Graph Contrastive Learning with
       Augmentations", NeurIPS 2020.

    Examples
    --------
    >>> import networkx as nx
    >>> import torch
    >>> from skcontrast.augmentation import RandomWalkSubgraph
    >>> from skcontrast.graphs import GraphBatch, pack_graphs
    >>> path = pack_graphs([nx.path_graph(3)])
    >>> batch = GraphBatch(path.topology, torch.ones(3, 1))
    >>> view = RandomWalkSubgraph(ratio=0.7).augment(batch)
    >>> view.n_nodes, view.edge_index
    (2, tensor([[1, 0],
            [0, 1]]))
    """

    ratio: float = parameter([Interval(Real, 0, 1, closed="right")], default=0.8)

    def _draw(self, batch: GraphBatch, generator: torch.Generator) -> GraphBatch:
        topology = batch.topology
        starts = topology.node_ptr[:-1] + random_below(topology.sizes, generator)
        delays = torch.empty(topology.n_nodes, device=starts.device)
        times = arrival_times(topology, starts, delays.exponential_(generator=generator))
        counts = rounded(self.ratio, topology.sizes).clamp_min(1)
        visited = first_of_each(times, batch.batch, topology.node_ptr, counts)
        return batch.keep(visited & times.isfinite())


# Bits of the random keys, which are integers.
_RANDOM_BITS = 31


def rounded(rate: float, sizes: Tensor) -> Tensor:
    """Return ``round(rate * size)`` for each size."""
    return (sizes.float() * rate).round().long()


def random_nodes(batch: GraphBatch, rate: float, generator: Generator, spared: int = 0) -> Tensor:
    """Return a mask of round(rate · n) nodes of each graph, except for `spared` nodes."""
    sizes = batch.topology.sizes
    counts = torch.minimum(rounded(rate, sizes), sizes - spared)
    return random_subset(batch.batch, batch.topology.node_ptr, counts, generator)


def random_subset(groups: Tensor, ptr: Tensor, counts: Tensor, generator: Generator) -> Tensor:
    """Return a mask (n,) that is true for `counts` items of each group, chosen uniformly."""
    return first_of_each(_random_bits(groups, generator), groups, ptr, counts)


def first_of_each(keys: Tensor, groups: Tensor, ptr: Tensor, counts: Tensor) -> Tensor:
    """Return a mask (n,) that is true for the `counts` items with the smallest keys of each group.

    Groups follow one another, in `groups` (n,) and `ptr` (n_groups + 1,), and so do their keys,
    which are integers below 2³² or float32, and at least 0.
    """
    # Nonnegative floats have the order of their bits.
    bits = keys if keys.dtype == torch.int64 else keys.view(torch.int32)
    order = ((groups << 32) | bits).argsort()
    ranks = torch.arange(len(keys), device=keys.device)
    is_first = ranks < (ptr[:-1] + counts)[groups]
    return torch.empty_like(is_first).index_put_((order,), is_first)


def _random_bits(like: Tensor, generator: Generator) -> Tensor:
    return torch.randint(2**_RANDOM_BITS, like.shape, generator=generator, device=like.device)


def random_below(limits: Tensor, generator: Generator) -> Tensor:
    """Return a random integer from 0 to limit − 1 for each of the limits, shape (n,)."""
    return (_random_bits(limits, generator) * limits) >> _RANDOM_BITS


def edges_once(topology: Topology) -> tuple[Tensor, Tensor]:
    """Return a mask that has each edge once, and the offset of each graph in it.

    Edges are in the order of graphs: graph g has ``ptr[g]`` to ``ptr[g + 1] - 1``.
    """
    ptr = topology.edge_ptr[topology.node_ptr]
    if not topology.symmetric:
        return torch.ones_like(topology.sources, dtype=torch.bool), ptr
    once = topology.sources <= topology.targets
    return once, offsets(once)[ptr]


def random_pairs(node_ptr: Tensor, counts: Tensor, generator: Generator) -> Tensor:
    """Return pairs (2, m) of different nodes, `counts` in each graph of at least two nodes."""
    counts = counts * (node_ptr.diff() > 1)
    starts = node_ptr[:-1].repeat_interleave(counts)
    sizes = node_ptr.diff().repeat_interleave(counts)
    first = random_below(sizes, generator)
    further = random_below(sizes - 1, generator) + 1
    return starts + torch.stack([first, (first + further) % sizes])


def arrival_times(topology: Topology, starts: Tensor, delays: Tensor) -> Tensor:
    """Return the time at which each node is reached from the start of its graph, or infinity.

    Parameters
    ----------
    topology : Topology
        The graphs.
    starts : Tensor of shape (n_graphs,), dtype int64
        Where paths start, a node of each graph.
    delays : Tensor of shape (n_nodes,)
        The time that it takes to enter a node.
    """
    # Paths leave a node by the reversed edges that end in it.
    outwards, n = topology.reversed().to("cpu"), topology.n_nodes
    ends, delays = outwards.sources, delays.double().cpu()
    # SciPy before 1.15 requires indices of 32 bits.
    content = delays[ends].numpy(), ends.int().numpy(), outwards.edge_ptr.int().numpy()
    graph = csr_array(content, shape=(n, n))
    times = dijkstra(graph, indices=starts.cpu().numpy(), min_only=True)
    return torch.from_numpy(times).to(starts.device, torch.float32)
