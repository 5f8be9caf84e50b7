"""A batch of graphs as encoders and augmentations get it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from ._topology import Topology


@dataclass(frozen=True)
class GraphBatch:
    """Graphs on the device of the training, behind one another in a few tensors.

    ``len(graphs)`` is their number, ``graphs[rows]`` gathers some of them, by indices, a slice or
    a mask, and ``torch.cat`` puts batches together.

    Attributes
    ----------
    topology : Topology
        Nodes and edges.
    dense : Tensor of shape (n_nodes, n_dense)
        Numerical features of the nodes.
    codes : Tensor of shape (n_nodes,), dtype int64, or None
        One category of each node, −1 where it is unknown or masked.
    n_codes : int
        How many categories there are.
    """

    topology: Topology
    dense: Tensor
    codes: Tensor | None = None
    n_codes: int = 0

    @property
    def x(self):
        """Node features, shape (n_nodes, n_dense + n_codes): numbers, then a one-hot code."""
        if self.codes is None:
            return self.dense
        n_dense = self.dense.shape[1]
        x = self.dense.new_zeros(len(self.dense), n_dense + self.n_codes)
        x[:, :n_dense] = self.dense
        known = (self.codes >= 0).to(x.dtype)[:, None]
        return x.scatter_(1, self.codes.clamp_min(0)[:, None] + n_dense, known)

    def project(self, weight):
        """Return ``x @ weight.T``, shape (n_nodes, n_out), without writing the one-hot code out.

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
    def edge_index(self):
        """Sources and targets of the edges, shape (2, n_edges), dtype int64."""
        return self.topology.edge_index

    @property
    def batch(self):
        """The graph of each node, shape (n_nodes,), dtype int64, in ascending order."""
        return self.topology.graph_of_node

    @property
    def node_ptr(self):
        """Where the nodes of each graph begin, and the number of all, shape (n_graphs + 1,)."""
        return self.topology.node_ptr

    @property
    def n_nodes(self):
        """How many nodes all graphs have together."""
        return self.topology.n_nodes

    @property
    def shape(self):
        """``(n_graphs, None, n_features)``: graphs have any number of nodes."""
        return len(self), None, self.dense.shape[1] + self.n_codes

    @property
    def device(self):
        """Where the tensors lie."""
        return self.dense.device

    def __len__(self):
        return self.topology.n_graphs

    def __getitem__(self, rows):
        rows = torch.arange(len(self), device=self.device)[rows].reshape(-1)
        topology, nodes = self.topology.take(rows)
        codes = None if self.codes is None else self.codes[nodes]
        return GraphBatch(topology, self.dense[nodes], codes, self.n_codes)

    def to(self, device):
        """Return the same on a device."""
        codes = None if self.codes is None else self.codes.to(device)
        return GraphBatch(self.topology.to(device), self.dense.to(device), codes, self.n_codes)

    def with_edges(self, edge_index):
        """Return the same nodes with other edges.

        Parameters
        ----------
        edge_index : Tensor of shape (2, n_edges), dtype int64
            Sources and targets, in any order, each within one graph. Where the graphs are
            undirected, an edge stands in it in both directions.
        """
        node_ptr, symmetric = self.topology.node_ptr, self.topology.symmetric
        topology = Topology.from_edges(edge_index, node_ptr, symmetric)
        return dataclasses.replace(self, topology=topology)

    def keep(self, nodes):
        """Return the graphs with some of their nodes, a mask of shape (n_nodes,)."""
        codes = None if self.codes is None else self.codes[nodes]
        return GraphBatch(self.topology.keep(nodes), self.dense[nodes], codes, self.n_codes)

    def mask(self, nodes):
        """Return the graphs without the features of some nodes, a mask of shape (n_nodes,).

        Numbers become zero, their mean where they are standardised; the category unknown.
        """
        codes = None if self.codes is None else self.codes.masked_fill(nodes, -1)
        dense = self.dense.masked_fill(nodes[:, None], 0.0)
        return GraphBatch(self.topology, dense, codes, self.n_codes)

    @classmethod
    def cat(cls, batches):
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
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        """Let frameworks put views together by ``torch.cat``, of whatever kind they are."""
        if function is torch.cat and not kwargs and len(args) == 1:
            return cls.cat(list(args[0]))
        return NotImplemented
