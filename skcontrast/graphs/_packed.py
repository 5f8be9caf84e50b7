"""Graphs packed into arrays: nodes, edges and their attributes."""

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

# Columns with a row per edge.
_EDGE_COLUMNS = ("edge_attributes", "edge_weights", "edge_labels")


class Topology(NamedTuple):
    """Nodes and edges of several graphs: nodes numbered consecutively, edges sorted by target.

    Attributes
    ----------
    node_ptr : Tensor of shape (n_graphs + 1,), dtype int64
        Graph g has the nodes ``node_ptr[g]`` to ``node_ptr[g + 1] - 1``.
    edge_ptr : Tensor of shape (n_nodes + 1,), dtype int64
        Node v has the incoming edges ``edge_ptr[v]`` to ``edge_ptr[v + 1] - 1``.
    sources : Tensor of shape (n_edges,), dtype int64
        The source node of each edge.
    symmetric : bool
        Whether every edge has its reverse, so that the graphs are undirected.
    """

    node_ptr: Tensor
    edge_ptr: Tensor
    sources: Tensor
    symmetric: bool

    @classmethod
    def from_edges(cls, edge_index: Tensor, node_ptr: Tensor, symmetric: bool) -> Topology:
        """Return the topology of edges in any order, (sources, targets) of shape (2, n_edges).

        Edges with the same target keep their order: see `by_target`.
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
        """Number of incoming edges of each node, shape (n_nodes,)."""
        return self.edge_ptr.diff()

    @property
    def graph_of_node(self) -> Tensor:
        """The graph of each node, shape (n_nodes,)."""
        return group_of_each(self.sizes, self.n_nodes)

    @property
    def targets(self) -> Tensor:
        """The target node of each edge, shape (n_edges,)."""
        return group_of_each(self.in_degrees, len(self.sources))

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
        """Return the topology of selected graphs, shape (n,), with their nodes and edges."""
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
        """Return the graphs with the nodes of a mask (n_nodes,), and the mask of kept edges.

        Edges of removed nodes are removed. A graph may have no nodes left.
        """
        kept_before = offsets(nodes)
        edges = nodes[self.sources] & nodes[self.targets]
        edge_ptr = offsets(edges)[self.edge_ptr][torch.cat([nodes, nodes.new_ones(1)])]
        node_ptr, sources = kept_before[self.node_ptr], kept_before[self.sources[edges]]
        return Topology(node_ptr, edge_ptr, sources, self.symmetric), edges

    @staticmethod
    def cat(topologies: Sequence[Topology]) -> Topology:
        """Return the graphs of several topologies as one."""
        starts = accumulate((topology.n_nodes for topology in topologies), initial=0)
        pairs = zip(topologies, starts, strict=False)
        moved = [topology.sources + start for topology, start in pairs]
        node_ptr = offsets(torch.cat([topology.sizes for topology in topologies]))
        edge_ptr = offsets(torch.cat([topology.in_degrees for topology in topologies]))
        symmetric = all(topology.symmetric for topology in topologies)
        return Topology(node_ptr, edge_ptr, torch.cat(moved), symmetric)

    def to(self, device: torch.device | str) -> Topology:
        """Return the topology on a device."""
        node_ptr, edge_ptr, sources = (tensor.to(device) for tensor in self[:3])
        return Topology(node_ptr, edge_ptr, sources, self.symmetric)


def by_target(edge_index: Tensor) -> Tensor:
    """Return the column in `edge_index`, (2, n_edges), of each edge in order of targets."""
    return edge_index[1].argsort(stable=True)


def offsets(counts: Tensor) -> Tensor:
    """Return 0 and the cumulative sums of counts (n,), shape (n + 1,), dtype int64."""
    ptr = counts.new_zeros(len(counts) + 1, dtype=torch.int64)
    torch.cumsum(counts, 0, out=ptr[1:])
    return ptr


def ranges(starts: Tensor, lengths: Tensor, ptr: Tensor) -> Tensor:
    """Return several ranges of integers, concatenated; `ptr` is ``offsets(lengths)``."""
    n = int(ptr[-1])
    moved = torch.repeat_interleave(starts - ptr[:-1], lengths, output_size=n)
    return moved + torch.arange(n, device=starts.device)


def group_of_each(counts: Tensor, total: int) -> Tensor:
    """Return k = 0, 1, …, each repeated ``counts[k]`` times; `total` is the sum of counts."""
    numbers = torch.arange(len(counts), device=counts.device)
    return torch.repeat_interleave(numbers, counts, output_size=total)


@dataclass(eq=False, repr=False)
class PackedGraphs:
    """Graphs packed into arrays, as X of an embedder.

    It has a length, and is indexed by rows, a slice or a mask, so that scikit-learn can split it.
    An embedder packs a list of graphs in each call. To pack it once, use :func:`pack_graphs`.

    Parameters
    ----------
    topology : Topology
        Nodes and edges.
    attributes : Tensor of shape (n_nodes, n_attributes), default=None
        Numerical attributes of the nodes, float32 or float64.
    labels : Tensor of shape (n_nodes,), dtype int64, default=None
        Categories of the nodes: indices into `categories`.
    categories : tuple, default=()
        The categories, hashable and unique.
    edge_attributes : Tensor of shape (n_edges, n_edge_attributes), default=None
        Numerical attributes of the edges, in the order of `topology`.
    edge_weights : Tensor of shape (n_edges,), default=None
        Edge weights.
    edge_labels : Tensor of shape (n_edges,), dtype int64, default=None
        Categories of the edges: indices into `edge_categories`.
    edge_categories : tuple, default=()
        The categories of edges, hashable and unique.

    See Also
    --------
    pack_graphs : Conversion of graphs of networkx or PyTorch Geometric.
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
    # The index of the Series that holds the graphs.
    index: Any = field(default=None, init=False)
    # Names of attributes that were ignored.
    ignored: tuple[str, ...] = field(default=(), init=False)
    # Attributes that scikit-learn reads besides `shape`. The dtype is that of embeddings.
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
        graphs = copy.copy(self)
        graphs.topology, nodes, edges = self.topology.take(torch.from_numpy(rows))
        graphs.attributes = take_rows(self.attributes, nodes)
        graphs.labels = take_rows(self.labels, nodes)
        columns = (take_rows(column, edges) for column in self.of_edges())
        graphs.edge_attributes, graphs.edge_weights, graphs.edge_labels = columns
        graphs.index = None if self.index is None else self.index[rows]
        return graphs

    def arrays(self) -> list[NDArray]:
        """Return all arrays, which identify the graphs."""
        tensors = [*self.topology[:3], self.attributes, self.labels, *self.of_edges()]
        return [tensor.numpy() for tensor in tensors if tensor is not None]

    def of_nodes(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return attributes, None (nodes have no weights) and labels of the nodes."""
        return self.attributes, None, self.labels

    def of_edges(self) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        """Return attributes, weights and labels of the edges."""
        return self.edge_attributes, self.edge_weights, self.edge_labels

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        raise TypeError("Graphs cannot be converted to an array: embed them first.")

    def __repr__(self) -> str:
        sizes = (len(self), self.topology.n_nodes, len(self.topology.sources))
        counts = zip(sizes, ("graph", "node", "edge"), strict=True)
        text = ", ".join(f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in counts)
        return f"PackedGraphs({text})"


def assemble(edges: Tensor, node_ptr: Tensor, symmetric: bool, **columns: Any) -> PackedGraphs:
    """Return packed graphs from edges in any order and the columns of nodes and edges.

    Parameters
    ----------
    edges : Tensor of shape (2, n_edges), dtype int64
        Sources and targets.
    node_ptr : Tensor of shape (n_graphs + 1,), dtype int64
        The first node of each graph.
    symmetric : bool
        Whether all graphs are undirected.
    **columns : dict of str to Tensor, tuple or None
        The other parameters of `PackedGraphs`; columns of edges are in the order of `edges`.
    """
    edge_columns = {name: columns[name] for name in _EDGE_COLUMNS if columns.get(name) is not None}
    if edge_columns:
        order = by_target(edges)
        columns |= {name: column[order] for name, column in edge_columns.items()}
    return PackedGraphs(Topology.from_edges(edges, node_ptr, symmetric), **columns)


def take_rows(column: Tensor | None, rows: Tensor) -> Tensor | None:
    """Return rows of a column, None without a column."""
    return None if column is None else column[rows]


def is_symmetric(edges: Tensor, n_nodes: int, *columns: Tensor) -> bool:
    """Return whether every edge occurs as often as its reverse, with the same columns.

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
    forth_rows, back_rows = (rows[np.lexsort((*rows.T, key.numpy()))] for key in (forth, back))
    return bool(np.array_equal(forth_rows, back_rows))
