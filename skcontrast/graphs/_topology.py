"""Which nodes and edges graphs have, for many graphs in three arrays."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor


class Topology(NamedTuple):
    """Nodes and edges of graphs that are numbered through, edges in order of their targets.

    Attributes
    ----------
    node_ptr : Tensor of shape (n_graphs + 1,), dtype int64
        Graph g has the nodes ``node_ptr[g]`` to ``node_ptr[g + 1] - 1``.
    edge_ptr : Tensor of shape (n_nodes + 1,), dtype int64
        Node v has the incoming edges ``edge_ptr[v]`` to ``edge_ptr[v + 1] - 1``.
    sources : Tensor of shape (n_edges,), dtype int64
        Where each edge comes from.
    symmetric : bool
        Whether every edge has its reverse: the graphs are undirected.
    """

    node_ptr: Tensor
    edge_ptr: Tensor
    sources: Tensor
    symmetric: bool

    @classmethod
    def from_edges(cls, edge_index, node_ptr, symmetric):
        """Return the topology of edges (sources, targets), shape (2, n_edges), in any order."""
        sources, targets = edge_index
        targets, order = targets.sort(stable=True)
        n_nodes = int(node_ptr[-1])
        return cls(
            node_ptr,
            offsets(torch.bincount(targets, minlength=n_nodes)),
            sources[order],
            symmetric,
        )

    @property
    def n_graphs(self):
        """How many graphs there are."""
        return len(self.node_ptr) - 1

    @property
    def n_nodes(self):
        """How many nodes all graphs have together."""
        return len(self.edge_ptr) - 1

    @property
    def sizes(self):
        """How many nodes each graph has, shape (n_graphs,)."""
        return self.node_ptr.diff()

    @property
    def in_degrees(self):
        """How many edges end at each node, shape (n_nodes,)."""
        return self.edge_ptr.diff()

    @property
    def graph_of_node(self):
        """The graph of each node, shape (n_nodes,)."""
        return _owners(self.sizes, self.n_nodes)

    @property
    def targets(self):
        """Where each edge ends, shape (n_edges,)."""
        return _owners(self.in_degrees, len(self.sources))

    @property
    def edge_index(self):
        """Sources and targets of the edges, shape (2, n_edges)."""
        return torch.stack([self.sources, self.targets])

    def reversed(self):
        """Return the same with all edges turned round."""
        if self.symmetric:
            return self
        return Topology.from_edges(self.edge_index.flip(0), self.node_ptr, False)

    def take(self, graphs):
        """Return the topology of some graphs, shape (n,), and their nodes."""
        starts = self.node_ptr[graphs]
        sizes = self.node_ptr[graphs + 1] - starts
        node_ptr = offsets(sizes)
        nodes = ranges(starts, sizes, node_ptr)
        first_edge, last_edge = self.edge_ptr[starts], self.edge_ptr[starts + sizes]
        n_edges = last_edge - first_edge
        edges = ranges(first_edge, n_edges, offsets(n_edges))
        moved = torch.repeat_interleave(node_ptr[:-1] - starts, n_edges, output_size=len(edges))
        degrees = self.edge_ptr[nodes + 1] - self.edge_ptr[nodes]
        return (
            Topology(node_ptr, offsets(degrees), self.sources[edges] + moved, self.symmetric),
            nodes,
        )

    def keep(self, nodes):
        """Return what is left of the graphs with some of the nodes, a mask of shape (n_nodes,).

        Edges at a node that goes, go too; a graph may be left without nodes.
        """
        kept_before = offsets(nodes)
        edges = nodes[self.sources] & nodes[self.targets]
        return Topology(
            kept_before[self.node_ptr],
            offsets(edges)[self.edge_ptr][torch.cat([nodes, nodes.new_ones(1)])],
            kept_before[self.sources[edges]],
            self.symmetric,
        )

    def keep_edges(self, edges):
        """Return the graphs with some of the edges, a mask of shape (n_edges,).

        Of an undirected graph, both directions of an edge must be kept or go.
        """
        kept_before = offsets(edges)
        return self._replace(edge_ptr=kept_before[self.edge_ptr], sources=self.sources[edges])

    @staticmethod
    def cat(topologies):
        """Return the graphs of several topologies as one."""
        node_ptr, edge_ptr, sources = [], [], []
        n_nodes = n_edges = 0
        for topology in topologies:
            node_ptr.append(topology.node_ptr[:-1] + n_nodes)
            edge_ptr.append(topology.edge_ptr[:-1] + n_edges)
            sources.append(topology.sources + n_nodes)
            n_nodes += topology.n_nodes
            n_edges += len(topology.sources)
        node_ptr.append(sources[0].new_tensor([n_nodes]))
        edge_ptr.append(sources[0].new_tensor([n_edges]))
        symmetric = all(topology.symmetric for topology in topologies)
        return Topology(*map(torch.cat, (node_ptr, edge_ptr, sources)), symmetric)

    def to(self, device):
        """Return the same on a device."""
        return Topology(*(t.to(device) for t in self[:3]), self.symmetric)


def offsets(counts):
    """Return 0 and the running sums of counts of shape (n,), shape (n + 1,), dtype int64."""
    ptr = counts.new_zeros(len(counts) + 1, dtype=torch.int64)
    torch.cumsum(counts, 0, out=ptr[1:])
    return ptr


def ranges(starts, lengths, ptr):
    """Return the numbers of several ranges behind one another; `ptr` is ``offsets(lengths)``."""
    n = int(ptr[-1])
    moved = torch.repeat_interleave(starts - ptr[:-1], lengths, output_size=n)
    return moved + torch.arange(n, device=starts.device)


def _owners(counts, total):
    """Return 0 as often as the first count says, 1 as often as the second, and so on."""
    owners = torch.arange(len(counts), device=counts.device)
    return torch.repeat_interleave(owners, counts, output_size=total)
