"""Graphs as a few arrays: nodes and edges, and what describes them."""

from __future__ import annotations

import copy
from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import accumulate
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._data._modalities import along_rows

# What has a row for each edge.
_OF_EDGES = ("edge_attributes", "edge_weights", "edge_labels")


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


@dataclass(eq=False, repr=False)
class PackedGraphs:
    """Graphs packed into a few arrays, as X of an embedder.

    It has a length, and indexing by rows, a slice or a mask gives the graphs of these rows, so
    that scikit-learn can split it. An embedder packs a list of graphs at each call; pack it by
    :func:`pack_graphs` to do so only once.

    Parameters
    ----------
    topology : Topology
        Nodes and edges.
    attributes : Tensor of shape (n_nodes, n_attributes), default=None
        Numbers that describe the nodes, float32 or float64.
    labels : Tensor of shape (n_nodes,), dtype int64, default=None
        Categories of the nodes: indices into `categories`.
    categories : tuple, default=()
        The categories, hashable, all different.
    edge_attributes : Tensor of shape (n_edges, n_edge_attributes), default=None
        Numbers that describe the edges, in the order of the edges of `topology`.
    edge_weights : Tensor of shape (n_edges,), default=None
        Weights of the edges.
    edge_labels : Tensor of shape (n_edges,), dtype int64, default=None
        Categories of the edges: indices into `edge_categories`.
    edge_categories : tuple, default=()
        The categories of edges, hashable, all different.

    See Also
    --------
    pack_graphs : Packs graphs of networkx or PyTorch Geometric.
    GraphBatch : Graphs with node features, as passed to encoders and augmentations.

    Examples
    --------
    >>> import networkx as nx
    >>> from skcontrast.graphs import pack_graphs
    >>> graphs = pack_graphs([nx.path_graph(3), nx.path_graph(2)])
    >>> graphs
    PackedGraphs(2 graphs, 5 nodes, 6 edges)
    >>> graphs[[1]]
    PackedGraphs(1 graph, 2 nodes, 2 edges)
    """

    topology: Topology
    attributes: Tensor | None = None
    labels: Tensor | None = None
    categories: Sequence[Hashable] = ()
    _: KW_ONLY
    edge_attributes: Tensor | None = None
    edge_weights: Tensor | None = None
    edge_labels: Tensor | None = None
    edge_categories: Sequence[Hashable] = ()
    # The row labels of the Series that the graphs come from.
    index: Any = field(default=None, init=False)
    # Names of attributes of the graphs that were not read.
    ignored: tuple[str, ...] = field(default=(), init=False)
    # What scikit-learn asks of arrays besides `shape`; the dtype is that of embeddings.
    ndim: ClassVar[int] = 3
    dtype: ClassVar[np.dtype] = np.dtype(np.float32)

    @property
    def shape(self) -> tuple[int, None, int]:
        """``(n_graphs, None, n_attributes)``: graphs have any number of nodes."""
        return len(self), None, 0 if self.attributes is None else self.attributes.shape[1]

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of nodes of each graph, ndarray of shape (n_graphs,)."""
        return self.topology.sizes.numpy()

    def __len__(self) -> int:
        return self.topology.n_graphs

    def __getitem__(self, rows: Any) -> PackedGraphs:
        rows = along_rows(rows, "PackedGraphs")
        rows = np.array(np.arange(len(self))[rows], ndmin=1)
        part = copy.copy(self)
        part.topology, nodes, edges = self.topology.take(torch.from_numpy(rows))
        part.attributes, part.labels = subset(self.attributes, nodes), subset(self.labels, nodes)
        described = (subset(column, edges) for column in self.of_edges())
        part.edge_attributes, part.edge_weights, part.edge_labels = described
        part.index = None if self.index is None else self.index[rows]
        return part

    def arrays(self) -> list[NDArray]:
        """Return the arrays that distinguish these graphs from others."""
        tensors = [*self.topology[:3], self.attributes, self.labels, *self.of_edges()]
        return [tensor.numpy() for tensor in tensors if tensor is not None]

    def of_nodes(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return attributes, weights, which nodes do not have, and labels of the nodes."""
        return self.attributes, None, self.labels

    def of_edges(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return attributes, weights and labels of the edges."""
        return self.edge_attributes, self.edge_weights, self.edge_labels

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        raise TypeError("Graphs cannot be turned into an array: embed them first.")

    def __repr__(self) -> str:
        numbers = (len(self), self.topology.n_nodes, len(self.topology.sources))
        counts = zip(numbers, ("graph", "node", "edge"), strict=True)
        text = ", ".join(f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in counts)
        return f"PackedGraphs({text})"


def assemble(edges: Tensor, node_ptr: Tensor, symmetric: bool, **columns: Any) -> PackedGraphs:
    """Return packed graphs of edges in any order, and of what describes them.

    Parameters
    ----------
    edges : Tensor of shape (2, n_edges), dtype int64
        Sources and targets.
    node_ptr : Tensor of shape (n_graphs + 1,), dtype int64
        The first node of each graph.
    symmetric : bool
        Whether all graphs are undirected.
    **columns : dict of str to Tensor, tuple or None
        The other parameters of `PackedGraphs`, those of edges in the order of `edges`.
    """
    described = {name: columns[name] for name in _OF_EDGES if columns.get(name) is not None}
    if described:
        order = by_target(edges)
        columns |= {name: column[order] for name, column in described.items()}
    return PackedGraphs(Topology.from_edges(edges, node_ptr, symmetric), **columns)


def subset(column: Tensor | None, rows: Tensor) -> Tensor | None:
    return None if column is None else column[rows]


def is_symmetric(edges: Tensor, n_nodes: int, *columns: Tensor) -> bool:
    """Return whether every edge occurs as often as its reverse, with the same numbers in columns.

    Parameters
    ----------
    edges : Tensor of shape (2, n_edges), dtype int64
        Sources and targets.
    n_nodes : int
        Number of nodes.
    *columns : Tensor of shape (n_edges,) or (n_edges, d)
        Features of the edges.
    """
    forth, back = (u * n_nodes + v for u, v in (edges, edges.flip(0)))
    if not torch.equal(forth.sort().values, back.sort().values):
        return False
    if not columns or not len(forth):
        return True
    rows = np.column_stack([column.numpy() for column in columns])
    one, other = (rows[np.lexsort((*rows.T, key.numpy()))] for key in (forth, back))
    return bool(np.array_equal(one, other))
