"""A collection of graphs as a few arrays."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from .._arguments import naming
from ._topology import Topology

# Pairs of nodes are compared as products of their numbers, in 64 bits.
_MOST_NODES = 2**31
# So many nodes need no reason; of more than these, most have an edge, a label or an attribute.
_FREE_NODES = 2**22
_NODES_PER_NUMBER = 64


class PackedGraphs:
    """Graphs packed into a few arrays, as an embedder takes them.

    It has a length, and indexing by rows, a slice or a mask gives the graphs of these rows, so
    that scikit-learn can split it. An embedder packs a list of graphs at each call; pack it by
    :func:`pack_graphs` to do so only once.

    Parameters
    ----------
    topology : Topology
        Nodes and edges.
    attributes : Tensor of shape (n_nodes, n_attributes), dtype float32, default=None
        Numbers that describe the nodes.
    labels : Tensor of shape (n_nodes,), dtype int64, default=None
        Categories of the nodes: indices into `categories`.
    categories : tuple, default=()
        The categories, hashable, all different.

    See Also
    --------
    pack_graphs : Packs graphs of networkx or PyTorch Geometric.
    skcontrast.datasets.fetch_tudataset : Loads packed graphs with ``as_packed=True``.
    GraphBatch : Graphs with node features, as passed to encoders and augmentations.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.graphs import PackedGraphs
    >>> edges = np.array([[0, 1, 3, 4], [1, 2, 4, 3]])  # a path of three nodes, and a pair
    >>> graphs = PackedGraphs.from_arrays(edges, node_ptr=[0, 3, 5])
    >>> graphs
    PackedGraphs(2 graphs, 5 nodes, 4 edges)
    >>> graphs[[1]]
    PackedGraphs(1 graph, 2 nodes, 2 edges)
    """

    # The row labels of the Series that the graphs come from.
    index: Any = None

    def __init__(
        self,
        topology: Topology,
        attributes: Tensor | None = None,
        labels: Tensor | None = None,
        categories: Sequence[Hashable] = (),
    ):
        self.topology = topology
        self.attributes = attributes
        self.labels = labels
        self.categories: tuple[Hashable, ...] = tuple(categories)

    @classmethod
    def from_arrays(
        cls,
        edge_index: ArrayLike,
        node_ptr: ArrayLike,
        attributes: ArrayLike | None = None,
        labels: ArrayLike | None = None,
    ) -> PackedGraphs:
        """Pack graphs that are arrays already, such as those of TUDataset.

        Parameters
        ----------
        edge_index : array-like of shape (2, n_edges), int
            Sources and targets; nodes are numbered through all graphs. Both directions of an
            undirected edge.
        node_ptr : array-like of shape (n_graphs + 1,), int
            Graph g has the nodes ``node_ptr[g]`` to ``node_ptr[g + 1] - 1``.
        attributes : array-like of shape (n_nodes, n_attributes), default=None
            Numbers that describe the nodes.
        labels : array-like of shape (n_nodes,), default=None
            Categories of the nodes.

        Returns
        -------
        graphs : PackedGraphs

        Raises
        ------
        ValueError
            If shapes disagree, an edge leaves its graph, a graph has no nodes, there are more
            than 2³¹ nodes, or attributes are not finite; the message names the graph.
        """
        edges = _as_integers(edge_index, "edge_index")
        ptr = _as_integers(node_ptr, "node_ptr")
        _check_structure(edges, ptr)
        _check_described(int(ptr[-1]), edges, ptr, attributes, labels)
        topology = Topology.from_edges(edges, ptr, is_symmetric(edges, int(ptr[-1])))
        packed = cls(topology)
        if attributes is not None:
            packed.attributes = _checked_attributes(attributes, ptr)
        if labels is not None:
            packed.labels, packed.categories = _checked_labels(labels, int(ptr[-1]))
        return packed

    @property
    def shape(self) -> tuple[int, None, int]:
        """``(n_graphs, None, n_attributes)``: graphs have any number of nodes."""
        return len(self), None, 0 if self.attributes is None else self.attributes.shape[1]

    @property
    def ndim(self) -> int:
        """Number of entries of `shape`."""
        return 3

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the attributes."""
        return np.dtype(np.float32)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of nodes of each graph, ndarray of shape (n_graphs,)."""
        return self.topology.sizes.numpy()

    def __len__(self) -> int:
        return self.topology.n_graphs

    def __getitem__(self, rows: Any) -> PackedGraphs:
        if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
            rows = rows[0]  # as scikit-learn indexes arrays of more than one dimension
        if rows is None or isinstance(rows, tuple):
            raise IndexError("PackedGraphs are indexed by graphs only: graphs[rows].")
        rows = np.array(np.arange(len(self))[rows], ndmin=1)
        topology, nodes = self.topology.take(torch.from_numpy(rows))
        part = PackedGraphs(
            topology,
            None if self.attributes is None else self.attributes[nodes],
            None if self.labels is None else self.labels[nodes],
            self.categories,
        )
        part.index = None if self.index is None else self.index[rows]
        return part

    def arrays(self) -> list[NDArray]:
        """Return the arrays that distinguish these graphs from others."""
        tensors = [*self.topology[:3], self.attributes, self.labels]
        return [tensor.numpy() for tensor in tensors if tensor is not None]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray:
        raise TypeError("Graphs cannot be turned into an array: embed them first.")

    def __repr__(self) -> str:
        counts = (
            (len(self), "graph"),
            (self.topology.n_nodes, "node"),
            (len(self.topology.sources), "edge"),
        )
        text = ", ".join(f"{n} {noun}{'' if n == 1 else 's'}" for n, noun in counts)
        return f"PackedGraphs({text})"


def check_finite(attributes: Tensor, node_ptr: Tensor) -> None:
    """Raise ValueError, naming the graph, if attributes (n_nodes, d) hold NaN or infinity."""
    bad = torch.nonzero(~attributes.isfinite().all(1))
    if len(bad):
        graph = int(torch.searchsorted(node_ptr, bad[0, 0], right=True)) - 1
        raise ValueError(f"Graph {graph} in X has node attributes that are NaN or infinite.")


def check_sizes(node_ptr: Tensor) -> None:
    """Raise ValueError, naming the graph, if a graph has no nodes."""
    empty = torch.nonzero(node_ptr.diff() < 1)
    if len(empty):
        raise ValueError(f"Graph {int(empty[0])} in X has no nodes: remove it from X.")


def _check_structure(edges: Tensor, node_ptr: Tensor) -> None:
    if edges.ndim != 2 or len(edges) != 2:
        raise ValueError(f"edge_index must have shape (2, n_edges), got {tuple(edges.shape)}.")
    if node_ptr.ndim != 1 or len(node_ptr) < 2 or node_ptr[0] != 0:
        raise ValueError(
            "node_ptr must be a sequence of at least two numbers, the first of them 0."
        )
    check_sizes(node_ptr)
    if node_ptr[-1] > _MOST_NODES:
        raise ValueError(f"There are {int(node_ptr[-1])} nodes, more than {_MOST_NODES}.")
    if edges.numel() and (edges.min() < 0 or edges.max() >= node_ptr[-1]):
        raise ValueError(f"edge_index must hold numbers of nodes, 0 to {int(node_ptr[-1]) - 1}.")
    owner = torch.searchsorted(node_ptr, edges, right=True) - 1
    crossing = torch.nonzero(owner[0] != owner[1])
    if len(crossing):
        graph = int(owner[0, crossing[0, 0]])
        raise ValueError(
            f"An edge in edge_index leaves graph {graph} for a different one, see node_ptr."
        )


def _check_described(n_nodes: int, *arrays: Any) -> None:
    """Raise ValueError if there are far more nodes than numbers that describe them."""
    with naming("attributes and labels", "arrays"):
        n_numbers = sum(math.prod(np.shape(array)) for array in arrays if array is not None)
    if n_nodes > max(_FREE_NODES, _NODES_PER_NUMBER * n_numbers):
        raise ValueError(
            f"node_ptr ends with {n_nodes} nodes, but edges, labels and attributes are only "
            f"{n_numbers} numbers."
        )


def _as_integers(values: Any, name: str) -> Tensor:
    with naming(name, "an array of integers", values):
        values = np.asarray(values)
    if values.size and values.dtype.kind not in "iu":
        raise ValueError(f"{name} must hold integers, got an array of dtype {values.dtype}.")
    return torch.from_numpy(np.array(values, dtype=np.int64, order="C"))


def _checked_labels(labels: Any, n_nodes: int) -> tuple[Tensor, tuple]:
    """Return labels as codes, shape (n_nodes,), and the categories that they stand for."""
    with naming("labels", "an array of categories", labels):
        labels = np.asarray(labels)
    if labels.shape != (n_nodes,):
        raise ValueError(f"labels must have shape ({n_nodes},), got {labels.shape}.")
    try:
        categories, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise ValueError("labels must hold categories of one type, such as ints.") from error
    if any(category != category for category in categories.tolist()):
        raise ValueError("labels must hold categories of nodes, got NaN.")
    return torch.from_numpy(codes.astype(np.int64)), tuple(categories.tolist())


def _checked_attributes(attributes: Any, node_ptr: Tensor) -> Tensor:
    if np.iscomplexobj(attributes):
        raise ValueError("attributes must hold real numbers, got complex ones.")
    with np.errstate(over="ignore"), naming("attributes", "an array of numbers", attributes):
        attributes = torch.from_numpy(np.array(attributes, dtype=np.float32, order="C"))
    if attributes.ndim != 2 or len(attributes) != node_ptr[-1]:
        raise ValueError(
            f"attributes must have shape ({int(node_ptr[-1])}, n_attributes), got "
            f"{tuple(attributes.shape)}."
        )
    check_finite(attributes, node_ptr)
    return attributes


def is_symmetric(edges: Tensor, n_nodes: int) -> bool:
    """Return whether every edge occurs as often as its reverse."""
    forth, back = (u * n_nodes + v for u, v in (edges, edges.flip(0)))
    return bool(torch.equal(forth.sort().values, back.sort().values))
