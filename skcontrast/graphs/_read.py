"""Reads one graph, of networkx or PyTorch Geometric."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .._checks import check_entries
from .._data._arrays import as_array
from ._packed import is_symmetric

# Attributes in networkx.
_READ = {"node": {"x", "label"}, "edge": {"x", "label", "weight"}}


class Described(NamedTuple):
    """Numbers (n, d) and categories of the nodes, or the edges, of a graph."""

    attributes: NDArray | None = None
    labels: list | None = None


class GraphParts(NamedTuple):
    """The nodes and edges of a graph, with their attributes.

    Attributes
    ----------
    n_nodes : int
        Number of nodes.
    edges : ndarray of shape (2, n_edges)
        Sources and targets.
    directed : bool
        Whether edges have a direction.
    once : bool
        Whether undirected edges are there in one direction only.
    of_nodes, of_edges : Described
        Their attributes and labels.
    weights : ndarray of shape (n_edges,) or None
        Weights of the edges.
    ignored : frozenset of str
        Names of attributes that were not read.
    """

    n_nodes: int
    edges: NDArray
    directed: bool
    once: bool
    of_nodes: Described
    of_edges: Described
    weights: NDArray | None
    ignored: Iterable[str] = ()


def read_networkx(graph: Any) -> GraphParts:
    number = {node: k for k, node in enumerate(graph)}
    # Reading the attributes of edges takes nearly as long again, whether they have any or not.
    is_described = any(any(own.values()) for _, own in graph.adjacency())
    links = list(graph.edges(data=True) if is_described else graph.edges())
    flat = chain.from_iterable((number[link[0]], number[link[1]]) for link in links)
    edges = np.fromiter(flat, np.int64).reshape(-1, 2).T
    data = [link[2] for link in links] if is_described else []
    nodes = _Items("node", [node[1] for node in graph.nodes(data=True)], lambda: list(graph))
    joined = _Items("edge", data, lambda: [link[:2] for link in links])
    described = nodes.described(), joined.described(), joined.weights()
    is_directed, ignored = graph.is_directed(), nodes.ignored() | joined.ignored()
    return GraphParts(len(number), edges, is_directed, not is_directed, *described, ignored)


class _Items:
    """The nodes or the edges of a graph of networkx.

    Parameters
    ----------
    kind : {"node", "edge"}
        Their kind.
    data : list of dict
        The attributes of each.
    names : callable
        Returns their names, for messages.
    """

    def __init__(self, kind: str, data: Sequence[Mapping], names: Callable[[], Sequence]):
        self.kind, self.data, self.names = kind, data, names
        self.keys: set = set().union(*filter(None, data))

    def described(self) -> Described:
        """Return the attributes ``x`` and ``label``."""
        return Described(self._vectors(), self._labels())

    def weights(self) -> NDArray | None:
        """Return the attribute ``weight``, 1 where it is missing; None if none has it."""
        if "weight" not in self.keys:
            return None
        weights = [data.get("weight", 1.0) for data in self.data]
        return self._array("weight", weights, (len(weights),), "a number")

    def ignored(self) -> frozenset[str]:
        """Return the names of all other attributes."""
        keys = self.keys - _READ[self.kind]
        return frozenset(f"the {self.kind} attribute {key!r}" for key in keys)

    def _values(self, key: str) -> list | None:
        """Return the attribute of all as a list, None if none has it."""
        if key not in self.keys:
            return None
        values = [data.get(key) for data in self.data]
        missing = [k for k, value in enumerate(values) if value is None]
        if len(missing) == len(values):
            return None
        if missing:
            name = self.names()[missing[0]]
            raise ValueError(f"{self.kind} {name!r} has no attribute {key!r}, others have.")
        return values

    def _vectors(self) -> NDArray | None:
        """Return numbers, or vectors of one length, as an array (n, d)."""
        values = self._values("x")
        expected = f"a number, or a vector of numbers of the same length for all {self.kind}s"
        return None if values is None else self._array("x", values, (len(values), -1), expected)

    def _array(self, key: str, values: list, shape: tuple[int, ...], expected: str) -> NDArray:
        """Return the values of an attribute as floats of a shape, or say what was expected."""
        try:
            check_entries(values, key)
            return _floats(np.array(values)).reshape(shape)
        except (ValueError, TypeError) as error:
            words = (k for k, value in enumerate(values) if isinstance(value, str))
            reason: Any = error
            if (k := next(words, None)) is not None:
                reason = f"{self.kind} {self.names()[k]!r} has {key}={values[k]!r}"
                reason += ". Categories go to the attribute 'label'"
            raise ValueError(
                f"the {self.kind} attribute {key!r} must be {expected}: {reason}"
            ) from error

    def _labels(self) -> list | None:
        """Return categories, which can be compared."""
        labels, name = self._values("label"), f"the {self.kind} attribute 'label'"
        if labels is None:
            return None
        # Tensors are hashed by identity, not by value.
        labels = [label.item() if isinstance(label, torch.Tensor) else label for label in labels]
        try:
            categories = set(labels)
        except TypeError as error:
            raise ValueError(f"{name} must be hashable: {error}") from error
        if any(_is_missing(label) for label in categories):
            raise ValueError(f"{name} must be a category, got NaN.")
        return labels


def _floats(array: NDArray) -> NDArray:
    """Return numbers as float32 if it holds all of their dtype exactly, else as float64."""
    if array.dtype.kind == "c":
        raise ValueError("got complex numbers")
    return array.astype(np.float32 if np.can_cast(array.dtype, np.float32) else np.float64)


def _is_missing(label: Any) -> bool:
    """Return whether a label is missing: it does not equal itself, like NaN and pandas' NA."""
    try:
        return bool(label != label)
    except TypeError:
        return True


def read_pyg(data: Any) -> GraphParts:
    if not isinstance(data, pyg().Data):
        raise TypeError("a HeteroData has nodes of several kinds: pass data.to_homogeneous().")
    edges, weights = _edges_of_pyg(data)
    n_nodes, n_edges = data.num_nodes or 0, edges.shape[1]
    if edges.numel() and (edges.min() < 0 or edges.max() >= n_nodes):
        raise ValueError(f"'edge_index' must hold numbers of nodes, 0 to {n_nodes - 1}.")
    x, edge_attributes = _rows(data, "x", n_nodes), _rows(data, "edge_attr", n_edges)
    if getattr(data, "edge_weight", None) is not None:
        weights = _rows(data, "edge_weight", n_edges)
    if weights is not None and weights.ndim == 2 and weights.shape[1] != 1:
        raise ValueError(f"'edge_weight' must hold a number for each edge, got {weights.shape}.")
    known = [torch.from_numpy(a) for a in (edge_attributes, weights) if a is not None]
    # Data does not say: undirected are edges that exist both ways with the same numbers.
    is_directed = not is_symmetric(edges, n_nodes, *known)
    of_nodes, of_edges = Described(x, _labels_of_pyg(data, n_nodes)), Described(edge_attributes)
    weights = None if weights is None else weights.reshape(-1)
    return GraphParts(n_nodes, edges.numpy(), is_directed, False, of_nodes, of_edges, weights)


def _labels_of_pyg(data: Any, n_nodes: int) -> list | None:
    """Return the categories in ``label``, one for each node, or None."""
    labels = getattr(data, "label", None)
    if labels is None:
        return None
    if len(labels) != n_nodes or getattr(labels, "ndim", 1) != 1:
        raise ValueError(f"'label' must hold {n_nodes} categories, one for each node.")
    return labels.tolist() if hasattr(labels, "tolist") else list(labels)


def _edges_of_pyg(data: Any) -> tuple[Tensor, NDArray | None]:
    """Return edges (2, n_edges) and, from a sparse matrix whose values are not all 1, weights."""
    edges, values = getattr(data, "edge_index", None), None
    if edges is None and getattr(data, "adj_t", None) is not None:  # as ToSparseTensor leaves it
        to_edge_index = sys.modules["torch_geometric.utils"].to_edge_index
        targets_and_sources, values = to_edge_index(data.adj_t)
        edges = targets_and_sources.flip(0)
        values = None if bool((values == 1).all()) else _floats(as_array(_plain(values)))
    edges = _numbers_of_nodes(torch.empty(2, 0) if edges is None else _plain(edges))
    if edges.ndim != 2 or len(edges) != 2:
        raise ValueError(f"'edge_index' must have shape (2, n_edges), got {tuple(edges.shape)}.")
    return edges, values


def _rows(data: Any, name: str, n: int) -> NDArray | None:
    """Return an attribute with a row per node or edge as an array (n, d), or None."""
    values = getattr(data, name, None)
    if values is None:
        return None
    if len(values) != n:
        of = "node" if name == "x" else "edge"
        raise ValueError(f"{name!r} must have {n} rows, one for each {of}, got {len(values)}.")
    return _floats(as_array(_plain(values))).reshape(n, -1) if n else None


def _numbers_of_nodes(edges: Tensor) -> Tensor:
    """Return edges as int64, or raise ValueError if they are not whole numbers."""
    if edges.dtype == torch.bool or edges.is_complex() or not torch.equal(edges, edges.round()):
        raise ValueError(f"'edge_index' must hold whole numbers, got dtype {edges.dtype}.")
    return edges.to(torch.int64)


def _plain(values: Any) -> Tensor:
    """Return an array or a tensor, sparse or not, as a dense tensor on the CPU."""
    return torch.as_tensor(values).detach().cpu().to_dense()


def pyg() -> Any:
    return sys.modules.get("torch_geometric.data")
