"""Augmentations of graphs: the four of GraphCL, drawn for all graphs of a batch at once."""

from __future__ import annotations

from numbers import Real

import torch

from .._parameters import Interval
from ..graphs import GraphBatch
from ._base import Augmentation
from ._compose import generator_for
from ._graph_draws import (
    NEVER,
    TIME_BITS,
    arrival_times,
    edges_once,
    first_of_each,
    random_below,
    random_nodes,
    random_pairs,
    random_subset,
    rounded,
)

__all__ = ["AttributeMask", "EdgePerturb", "NodeDrop", "RandomWalkSubgraph"]

_FRACTION = [Interval(Real, 0, 1, closed="both")]


class _GraphAugmentation(Augmentation):
    """Base of the augmentations of graphs: subclasses implement ``_draw``."""

    kind = "graphs"

    def augment(self, batch, generator=None):
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
        if not isinstance(batch, GraphBatch):
            raise TypeError(
                f"{type(self).__name__} expects graphs as a GraphBatch, got batch of type "
                f"{type(batch).__name__}."
            )
        return self._draw(batch, generator_for(batch, generator))


class NodeDrop(_GraphAugmentation):
    """Drop nodes, and the edges at them.

    The node dropping of GraphCL [1]_: of each graph, ``round(rate * n_nodes)`` nodes, chosen
    uniformly without replacement, go with all their edges; features of the others stay. At least
    one node is left.

    Parameters
    ----------
    rate : float, default=0.2
        Fraction of the nodes, in [0, 1], that is dropped from each graph.

    Notes
    -----
    The authors' code rounds the number of nodes down, which leaves small graphs as they are; here
    it is rounded to the nearest integer, in all augmentations of graphs.

    References
    ----------
    .. [1] Y. You, T. Chen, Y. Sui, T. Chen, Z. Wang, Y. Shen, "Graph Contrastive Learning with
       Augmentations", NeurIPS 2020.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import NodeDrop
    >>> from skcontrast.graphs import GraphBatch, PackedGraphs
    >>> triangle = PackedGraphs.from_arrays([[0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2]], [0, 3])
    >>> batch = GraphBatch(triangle.topology, torch.ones(3, 1))
    >>> view = NodeDrop(rate=0.4).augment(batch)
    >>> view.n_nodes, view.edge_index
    (2, tensor([[1, 0],
            [0, 1]]))
    """

    _parameter_constraints: dict = {"rate": _FRACTION}

    def __init__(self, rate=0.2):
        self.rate = rate

    def _draw(self, batch, generator):
        return batch.keep(~random_nodes(batch, self.rate, generator, spared=1))


class AttributeMask(_GraphAugmentation):
    """Hide the features of some nodes.

    The attribute masking of GraphCL [1]_: of each graph, ``round(rate * n_nodes)`` nodes, chosen
    uniformly without replacement, lose all their features. Numbers become 0, which is their mean
    where they are standardised, and the category becomes unknown. Nodes and edges stay.

    Parameters
    ----------
    rate : float, default=0.2
        Fraction of the nodes, in [0, 1], whose features are hidden in each graph.

    References
    ----------
    .. [1] Y. You, T. Chen, Y. Sui, T. Chen, Z. Wang, Y. Shen, "Graph Contrastive Learning with
       Augmentations", NeurIPS 2020.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import AttributeMask
    >>> from skcontrast.graphs import GraphBatch, PackedGraphs
    >>> path = PackedGraphs.from_arrays([[0, 1, 1, 2], [1, 0, 2, 1]], [0, 3])
    >>> batch = GraphBatch(path.topology, torch.ones(3, 1))
    >>> AttributeMask(rate=0.4).augment(batch).x.sum()
    tensor(2.)
    """

    _parameter_constraints: dict = {"rate": _FRACTION}

    def __init__(self, rate=0.2):
        self.rate = rate

    def _draw(self, batch, generator):
        return batch.mask(random_nodes(batch, self.rate, generator))


class EdgePerturb(_GraphAugmentation):
    """Remove edges, and add as many between random nodes.

    The edge perturbation of GraphCL [1]_: of each graph, ``round(rate * n_edges)`` edges, chosen
    uniformly without replacement, go; then as many are added, each between two different nodes of
    the graph that are chosen uniformly. Nodes and their features stay. In undirected graphs an
    edge goes and comes in both directions.

    Parameters
    ----------
    rate : float, default=0.2
        Fraction of the edges, in [0, 1], that is removed from each graph.
    add : bool, default=True
        Whether edges are added in place of the removed ones.

    Notes
    -----
    As in the authors' code a new edge may be parallel to another one; in sparse graphs that is
    rare. A graph of one node, which can only have loops, loses edges but gets none.

    References
    ----------
    .. [1] Y. You, T. Chen, Y. Sui, T. Chen, Z. Wang, Y. Shen, "Graph Contrastive Learning with
       Augmentations", NeurIPS 2020.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import EdgePerturb
    >>> from skcontrast.graphs import GraphBatch, PackedGraphs
    >>> path = PackedGraphs.from_arrays([[0, 1, 1, 2], [1, 0, 2, 1]], [0, 3])
    >>> batch = GraphBatch(path.topology, torch.ones(3, 1))
    >>> EdgePerturb(rate=0.5).augment(batch).edge_index.shape
    torch.Size([2, 4])
    >>> EdgePerturb(rate=0.5, add=False).augment(batch).edge_index.shape
    torch.Size([2, 2])
    """

    _parameter_constraints: dict = {"rate": _FRACTION, "add": ["boolean"]}

    def __init__(self, rate=0.2, add=True):
        self.rate = rate
        self.add = add

    def _draw(self, batch, generator):
        if self.rate == 0:
            return batch
        topology = batch.topology
        edges, ptr = edges_once(topology)
        counts = rounded(self.rate, ptr.diff())
        owners = batch.batch[edges[1]]
        edges = edges[:, ~random_subset(owners, ptr, counts, generator)]
        if self.add:
            added = random_pairs(topology.node_ptr, counts, generator)
            edges = torch.cat([edges, added], dim=1)
        if topology.symmetric:
            edges = torch.cat([edges, edges.flip(0)[:, edges[0] != edges[1]]], dim=1)
        return batch.with_edges(edges)


class RandomWalkSubgraph(_GraphAugmentation):
    """Keep what a random walk visits first, and the edges in between.

    The subgraph of GraphCL [1]_: the walk starts at a node chosen uniformly and goes on, each
    time, to a node chosen uniformly among those that an edge leads to from any node visited
    before. It ends after ``round(ratio * n_nodes)`` nodes, at least one, or earlier where no edge
    leads on. A view of a connected graph is connected. In directed graphs the walk follows the
    direction of the edges.

    Parameters
    ----------
    ratio : float, default=0.8
        Fraction of the nodes, in (0, 1], that is kept of each graph.

    Notes
    -----
    The order in which such a walk visits the nodes is that of shortest paths if entering a node
    takes an independent exponential time: these have no memory, so whichever neighbour is still
    to be visited, each is next with the same probability. Shortest paths are found for all graphs
    at once.

    References
    ----------
    .. [1] Y. You, T. Chen, Y. Sui, T. Chen, Z. Wang, Y. Shen, "Graph Contrastive Learning with
       Augmentations", NeurIPS 2020.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.augmentation import RandomWalkSubgraph
    >>> from skcontrast.graphs import GraphBatch, PackedGraphs
    >>> path = PackedGraphs.from_arrays([[0, 1, 1, 2], [1, 0, 2, 1]], [0, 3])
    >>> batch = GraphBatch(path.topology, torch.ones(3, 1))
    >>> view = RandomWalkSubgraph(ratio=0.7).augment(batch)
    >>> view.n_nodes, view.edge_index
    (2, tensor([[1, 0],
            [0, 1]]))
    """

    _parameter_constraints: dict = {"ratio": [Interval(Real, 0, 1, closed="right")]}

    def __init__(self, ratio=0.8):
        self.ratio = ratio

    def _draw(self, batch, generator):
        topology = batch.topology
        starts = topology.node_ptr[:-1] + random_below(topology.sizes, generator)
        times = arrival_times(topology, starts, generator)
        counts = rounded(self.ratio, topology.sizes).clamp_min(1)
        keys = (batch.batch << TIME_BITS) | times
        visited = first_of_each(keys, batch.batch, topology.node_ptr, counts)
        return batch.keep(visited & (times < NEVER))
