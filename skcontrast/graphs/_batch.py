"""A batch of graphs, as passed to encoders and augmentations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from .._data._modalities import Joinable
from ._packed import Topology, by_target

_C = TypeVar("_C", bound=Any)


class Columns:
    """Features of n nodes or edges: numbers, and a category, stored as an index."""

    dense: Tensor
    codes: Tensor | None
    n_codes: int
    ordinal: bool = False

    @property
    def width(self) -> int:
        """Number of columns of `x`."""
        return self.dense.shape[1] + self.n_codes

    @property
    def x(self) -> Tensor:
        """The features, shape (n, n_dense + n_codes): numbers, then the category.

        The category is a one-hot code, or, if categories are ordinal, a cumulative one: ones up to
        the category and zeros from there on.
        """
        if self.codes is None:
            return self.dense
        categories = torch.arange(self.n_codes, device=self.dense.device)
        codes = self.codes[:, None]
        code = categories <= codes if self.ordinal else categories == codes
        return torch.cat([self.dense, code.to(self.dense.dtype)], 1)

    def project(self, weight: Tensor) -> Tensor:
        """Return ``x @ weight.T``, shape (n, n_out), without forming one-hot codes.

        Parameters
        ----------
        weight : Tensor of shape (n_out, n_dense + n_codes)
        """
        n_dense = self.dense.shape[1]
        if self.codes is None:
            return self.dense @ weight.T
        # The last row is for unknown categories.
        table = weight[:, n_dense:].T
        table = F.pad(table.cumsum(0) if self.ordinal else table, (0, 0, 0, 1))
        projected = F.embedding(self.codes % (self.n_codes + 1), table)
        return torch.addmm(projected, self.dense, weight[:, :n_dense].T) if n_dense else projected


@dataclass(frozen=True)
class EdgeColumns(Columns):
    """Features of the edges of a batch, in the order of its topology.

    Attributes
    ----------
    dense : Tensor of shape (n_edges, n_dense)
        Numerical features.
    codes : Tensor of shape (n_edges,), dtype int64, or None
        The category of each, −1 if it is unknown or masked.
    n_codes : int
        Number of categories.
    weight : Tensor of shape (n_edges,) or None
        Weights of the edges, in units of the mean weight of the training graphs. They are a
        column of `dense` too, standardised like other numbers.
    """

    dense: Tensor
    codes: Tensor | None = None
    n_codes: int = 0
    weight: Tensor | None = None


def map_columns(columns: _C, function: Callable[[Tensor], Tensor]) -> _C:
    """Return columns, or a batch of graphs, with a function applied to each tensor of features."""
    return replace(columns, **{name: function(value) for name, value in _tensors(columns)})


def concat(batches: Sequence[_C]) -> _C:
    """Concatenate columns or batches of graphs."""
    tensors = zip(*map(_tensors, batches), strict=True)
    columns = {named[0][0]: torch.cat([value for _, value in named]) for named in tensors}
    return replace(batches[0], **columns)


def _tensors(columns: Any) -> list[tuple[str, Tensor]]:
    """Return the tensors with a row for each node or edge, by name."""
    fields = [(name, getattr(columns, name, None)) for name in ("dense", "codes", "weight")]
    return [(name, value) for name, value in fields if value is not None]


@dataclass(frozen=True)
class GraphBatch(Columns, Joinable):
    """Graphs on the training device, concatenated in a few tensors.

    ``len(graphs)`` is their number, ``graphs[rows]`` selects graphs by indices, a slice or a
    mask, and ``torch.cat`` concatenates batches.

    Attributes
    ----------
    topology : Topology
        Nodes and edges.
    dense : Tensor of shape (n_nodes, n_dense)
        Numerical features of the nodes.
    codes : Tensor of shape (n_nodes,), dtype int64, or None
        The category of each node, −1 if it is unknown or masked.
    n_codes : int
        Number of categories.
    ordinal : bool
        Whether categories are cumulative: a node also has all earlier ones.
    edges : EdgeColumns or None
        Features of the edges, None if they have none.

    See Also
    --------
    PackedGraphs : The graphs of a data set, as users pass them.
    """

    topology: Topology
    dense: Tensor
    codes: Tensor | None = None
    n_codes: int = 0
    ordinal: bool = False
    edges: EdgeColumns | None = None

    @property
    def edge_attr(self) -> Tensor | None:
        """Edge features, shape (n_edges, n_edge_features), in the order of `edge_index`, or None.

        Attributes and weights, standardised, and the label as a one-hot code.
        """
        return None if self.edges is None else self.edges.x

    @property
    def edge_weight(self) -> Tensor | None:
        """Weights of the edges, shape (n_edges,), or None if edges have none."""
        return None if self.edges is None else self.edges.weight

    @property
    def edge_index(self) -> Tensor:
        """Sources and targets of the edges, shape (2, n_edges), dtype int64."""
        return self.topology.edge_index

    @property
    def batch(self) -> Tensor:
        """The index of each node's graph, shape (n_nodes,), dtype int64, ascending."""
        return self.topology.graph_of_node

    @property
    def node_ptr(self) -> Tensor:
        """The first node of each graph and, last, the number of nodes, shape (n_graphs + 1,)."""
        return self.topology.node_ptr

    @property
    def n_nodes(self) -> int:
        """Number of nodes of all graphs together."""
        return self.topology.n_nodes

    @property
    def shape(self) -> tuple[int | None, ...]:
        """``(n_graphs, None, n_features)``: graphs have any number of nodes.

        If edges have features, their number comes last.
        """
        shape = (len(self), None, self.width)
        return shape if self.edges is None else (*shape, self.edges.width)

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self.dense.device

    def __len__(self) -> int:
        return self.topology.n_graphs

    def __getitem__(self, rows: Any) -> GraphBatch:
        rows = torch.arange(len(self), device=self.device)[rows].reshape(-1)
        return self._rows(*self.topology.take(rows))

    def to(self, device: torch.device | str) -> GraphBatch:
        """Return the batch on a device."""
        edges = None if self.edges is None else map_columns(self.edges, lambda t: t.to(device))
        moved = map_columns(self, lambda t: t.to(device))
        return replace(moved, topology=self.topology.to(device), edges=edges)

    def with_edges(self, edge_index: Tensor, like: Tensor | None = None) -> GraphBatch:
        """Return the same nodes with different edges.

        Parameters
        ----------
        edge_index : Tensor of shape (2, n_edges), dtype int64
            Sources and targets, in any order, each edge within one graph. If the graphs are
            undirected, both directions of each edge.
        like : Tensor of shape (n_edges,), dtype int64, default=None
            The edge of this batch whose features each new edge takes, as a column of
            `edge_index`. Required if edges have features.
        """
        node_ptr, symmetric = self.topology.node_ptr, self.topology.symmetric
        topology, edges = Topology.from_edges(edge_index, node_ptr, symmetric), self.edges
        if edges is not None and like is None:
            raise ValueError(
                "Edges have features: pass `like`, the edge whose features each new edge takes."
            )
        if edges is not None and like is not None:
            like_sorted = like[by_target(edge_index)]
            edges = map_columns(edges, lambda column: column[like_sorted])
        return replace(self, topology=topology, edges=edges)

    def keep(self, nodes: Tensor) -> GraphBatch:
        """Return the graphs with only the nodes in a mask of shape (n_nodes,)."""
        topology, edges = self.topology.keep(nodes)
        return self._rows(topology, nodes, edges)

    def _rows(self, topology: Topology, nodes: Tensor, edges: Tensor) -> GraphBatch:
        """Return the batch of some nodes and edges, by indices or masks."""
        columns = None if self.edges is None else map_columns(self.edges, lambda t: t[edges])
        return replace(map_columns(self, lambda t: t[nodes]), topology=topology, edges=columns)

    def mask(self, nodes: Tensor) -> GraphBatch:
        """Return the graphs without the features of the nodes in a mask of shape (n_nodes,).

        Numbers become zero, which is their mean if they are standardised; categories, unknown.
        Edges keep their features.
        """
        codes = None if self.codes is None else self.codes.masked_fill(nodes, -1)
        return replace(self, dense=self.dense.masked_fill(nodes[:, None], 0.0), codes=codes)

    @classmethod
    def cat(cls, batches: Sequence[GraphBatch]) -> GraphBatch:
        """Return the graphs of several batches as one."""
        topology = Topology.cat([batch.topology for batch in batches])
        edges = [batch.edges for batch in batches if batch.edges is not None]
        return replace(concat(batches), topology=topology, edges=concat(edges) if edges else None)
