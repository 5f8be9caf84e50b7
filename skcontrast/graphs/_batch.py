"""A batch of graphs, as passed to encoders and augmentations."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from ._topology import Topology


@dataclass(frozen=True)
class GraphBatch:
    """Graphs on the training device, concatenated in a few tensors.

    ``len(graphs)`` is their number, ``graphs[rows]`` gathers some of them, by indices, a slice or
    a mask, and ``torch.cat`` concatenates batches.

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

    See Also
    --------
    PackedGraphs : The graphs of a data set, as users pass them.
    NodeFeatures : The map from packed graphs to node features.
    """

    topology: Topology
    dense: Tensor
    codes: Tensor | None = None
    n_codes: int = 0

    @property
    def x(self) -> Tensor:
        """Node features, shape (n_nodes, n_dense + n_codes): numbers, then a one-hot code."""
        if self.codes is None:
            return self.dense
        n_dense = self.dense.shape[1]
        x = self.dense.new_zeros(len(self.dense), n_dense + self.n_codes)
        x[:, :n_dense] = self.dense
        known = (self.codes >= 0).to(x.dtype)[:, None]
        return x.scatter_(1, self.codes.clamp_min(0)[:, None] + n_dense, known)

    def project(self, weight: Tensor) -> Tensor:
        """Return ``x @ weight.T``, shape (n_nodes, n_out), without forming the one-hot code.

        Parameters
        ----------
        weight : Tensor of shape (n_out, n_dense + n_codes)
        """
        n_dense = self.dense.shape[1]
        if self.codes is None:
            return self.dense @ weight.T
        # The last row stands for an unknown category.
        table = F.pad(weight[:, n_dense:].T, (0, 0, 0, 1))
        projected = F.embedding(self.codes % (self.n_codes + 1), table)
        return torch.addmm(projected, self.dense, weight[:, :n_dense].T) if n_dense else projected

    @property
    def edge_index(self) -> Tensor:
        """Sources and targets of the edges, shape (2, n_edges), dtype int64."""
        return self.topology.edge_index

    @property
    def batch(self) -> Tensor:
        """The graph of each node, shape (n_nodes,), dtype int64, in ascending order."""
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
    def shape(self) -> tuple[int, None, int]:
        """``(n_graphs, None, n_features)``: graphs have any number of nodes."""
        return len(self), None, self.dense.shape[1] + self.n_codes

    @property
    def device(self) -> torch.device:
        """The device of the tensors."""
        return self.dense.device

    def __len__(self) -> int:
        return self.topology.n_graphs

    def __getitem__(self, rows: Any) -> GraphBatch:
        rows = torch.arange(len(self), device=self.device)[rows].reshape(-1)
        topology, nodes = self.topology.take(rows)
        codes = None if self.codes is None else self.codes[nodes]
        return GraphBatch(topology, self.dense[nodes], codes, self.n_codes)

    def to(self, device: torch.device | str) -> GraphBatch:
        """Return the batch on a device."""
        codes = None if self.codes is None else self.codes.to(device)
        return GraphBatch(self.topology.to(device), self.dense.to(device), codes, self.n_codes)

    def with_edges(self, edge_index: Tensor) -> GraphBatch:
        """Return the same nodes with different edges.

        Parameters
        ----------
        edge_index : Tensor of shape (2, n_edges), dtype int64
            Sources and targets, in any order, each edge within one graph. If the graphs are
            undirected, both directions of each edge.
        """
        node_ptr, symmetric = self.topology.node_ptr, self.topology.symmetric
        topology = Topology.from_edges(edge_index, node_ptr, symmetric)
        return dataclasses.replace(self, topology=topology)

    def keep(self, nodes: Tensor) -> GraphBatch:
        """Return the graphs with only some of their nodes, a mask of shape (n_nodes,)."""
        codes = None if self.codes is None else self.codes[nodes]
        return GraphBatch(self.topology.keep(nodes), self.dense[nodes], codes, self.n_codes)

    def mask(self, nodes: Tensor) -> GraphBatch:
        """Return the graphs without the features of some nodes, a mask of shape (n_nodes,).

        Numbers become zero, which is their mean if they are standardised; categories, unknown.
        """
        codes = None if self.codes is None else self.codes.masked_fill(nodes, -1)
        dense = self.dense.masked_fill(nodes[:, None], 0.0)
        return GraphBatch(self.topology, dense, codes, self.n_codes)

    @classmethod
    def cat(cls, batches: Sequence[GraphBatch]) -> GraphBatch:
        """Return the graphs of several batches as one."""
        first = batches[0]
        codes = None if first.codes is None else torch.cat([batch.codes for batch in batches])
        return cls(
            Topology.cat([batch.topology for batch in batches]),
            torch.cat([batch.dense for batch in batches]),
            codes,
            first.n_codes,
        )

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Let frameworks concatenate views of any kind by ``torch.cat``."""
        if function is torch.cat and not kwargs and len(args) == 1:
            return cls.cat(list(args[0]))
        return NotImplemented
