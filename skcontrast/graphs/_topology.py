"""Nodes and edges of many graphs in three arrays."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

import torch
from torch import Tensor


class Topology(NamedTuple):
    """Nodes, numbered through all graphs, and edges, in order of their targets.

    Attributes
    ----------
    node_ptr : Tensor of shape (n_graphs + 1,), dtype int64
        Graph g has the nodes ``node_ptr[g]`` to ``node_ptr[g + 1] - 1``.
    edge_ptr : Tensor of shape (n_nodes + 1,), dtype int64
        Node v has the incoming edges ``edge_ptr[v]`` to ``edge_ptr[v + 1] - 1``.
    sources : Tensor of shape (n_edges,), dtype int64
        The node in which each edge starts.
    symmetric : bool
        Whether every edge has its reverse: the graphs are undirected.
    """

    node_ptr: Tensor
    edge_ptr: Tensor
    sources: Tensor
    symmetric: bool

    @classmethod
    def from_edges(cls, edge_index: Tensor, node_ptr: Tensor, symmetric: bool) -> Topology:
        """Return the topology of edges (sources, targets), shape (2, n_edges), in any order.

        Edges with the same target keep their order, see `by_target`.
        """
        sources, targets = edge_index
        targets, order = targets.sort(stable=True)
        edge_ptr = offsets(torch.bincount(targets, minlength=int(node_ptr[-1])))
        return cls(node_ptr, edge_ptr, sources[order], symmetric)

    @property
    def n_graphs(self) -> int:
        """Number of graphs."""
        return len(self.node_ptr) - 1

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all graphs together."""
        return len(self.edge_ptr) - 1

    @property
    def sizes(self) -> Tensor:
        """Number of nodes of each graph, shape (n_graphs,)."""
        return self.node_ptr.diff()

    @property
    def in_degrees(self) -> Tensor:
        """Number of edges that end in each node, shape (n_nodes,)."""
        return self.edge_ptr.diff()

    @property
    def graph_of_node(self) -> Tensor:
        """The graph of each node, shape (n_nodes,)."""
        return owners(self.sizes, self.n_nodes)

    @property
    def targets(self) -> Tensor:
        """The node in which each edge ends, shape (n_edges,)."""
        return owners(self.in_degrees, len(self.sources))

    @property
    def edge_index(self) -> Tensor:
        """Sources and targets of the edges, shape (2, n_edges)."""
        return torch.stack([self.sources, self.targets])

    def reversed(self) -> Topology:
        """Return the graphs with all edges reversed."""
        if self.symmetric:
            return self
        return Topology.from_edges(self.edge_index.flip(0), self.node_ptr, False)

    def by_source(self) -> tuple[Tensor, Tensor]:
        """Return the edges in order of their sources, and the first of each node, (n_nodes + 1,).

        Node u has the outgoing edges ``order[ptr[u]:ptr[u + 1]]``.
        """
        n_outgoing = torch.bincount(self.sources, minlength=self.n_nodes)
        return self.sources.argsort(stable=True), offsets(n_outgoing)

    def take(self, graphs: Tensor) -> tuple[Topology, Tensor, Tensor]:
        """Return the topology of the given graphs, shape (n,), their nodes and their edges."""
        starts = self.node_ptr[graphs]
        sizes = self.node_ptr[graphs + 1] - starts
        node_ptr = offsets(sizes)
        nodes = ranges(starts, sizes, node_ptr)
        first_edge, last_edge = self.edge_ptr[starts], self.edge_ptr[starts + sizes]
        n_edges = last_edge - first_edge
        edges = ranges(first_edge, n_edges, offsets(n_edges))
        moved = torch.repeat_interleave(node_ptr[:-1] - starts, n_edges, output_size=len(edges))
        degrees = self.edge_ptr[nodes + 1] - self.edge_ptr[nodes]
        sources = self.sources[edges] + moved
        return Topology(node_ptr, offsets(degrees), sources, self.symmetric), nodes, edges

    def keep(self, nodes: Tensor) -> tuple[Topology, Tensor]:
        """Return the graphs with only the nodes in a mask (n_nodes,), and a mask of edges.

        Edges at removed nodes are removed too; a graph may be left without nodes.
        """
        kept_before = offsets(nodes)
        edges = nodes[self.sources] & nodes[self.targets]
        edge_ptr = offsets(edges)[self.edge_ptr][torch.cat([nodes, nodes.new_ones(1)])]
        node_ptr, sources = kept_before[self.node_ptr], kept_before[self.sources[edges]]
        return Topology(node_ptr, edge_ptr, sources, self.symmetric), edges

    @staticmethod
    def cat(topologies: Sequence[Topology]) -> Topology:
        """Return the graphs of several topologies as one."""
        starts = accumulate((part.n_nodes for part in topologies), initial=0)
        moved = [part.sources + start for part, start in zip(topologies, starts, strict=False)]
        node_ptr = offsets(torch.cat([part.sizes for part in topologies]))
        edge_ptr = offsets(torch.cat([part.in_degrees for part in topologies]))
        symmetric = all(part.symmetric for part in topologies)
        return Topology(node_ptr, edge_ptr, torch.cat(moved), symmetric)

    def to(self, device: torch.device | str) -> Topology:
        """Return the topology on a device."""
        node_ptr, edge_ptr, sources = (tensor.to(device) for tensor in self[:3])
        return Topology(node_ptr, edge_ptr, sources, self.symmetric)


def by_target(edge_index: Tensor) -> Tensor:
    """Return the place in `edge_index`, (2, n_edges), of each edge of its topology."""
    return edge_index[1].argsort(stable=True)


def offsets(counts: Tensor) -> Tensor:
    """Return 0 and the running sums of counts of shape (n,), shape (n + 1,), dtype int64."""
    ptr = counts.new_zeros(len(counts) + 1, dtype=torch.int64)
    torch.cumsum(counts, 0, out=ptr[1:])
    return ptr


def ranges(starts: Tensor, lengths: Tensor, ptr: Tensor) -> Tensor:
    """Return the numbers of several ranges, concatenated; `ptr` is ``offsets(lengths)``."""
    n = int(ptr[-1])
    moved = torch.repeat_interleave(starts - ptr[:-1], lengths, output_size=n)
    return moved + torch.arange(n, device=starts.device)


def owners(counts: Tensor, total: int) -> Tensor:
    """Return each k = 0, 1, … repeated ``counts[k]`` times, in all `total` numbers."""
    owners = torch.arange(len(counts), device=counts.device)
    return torch.repeat_interleave(owners, counts, output_size=total)
