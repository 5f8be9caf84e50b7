"""From lists of graph objects to packed arrays."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from .._data._row_labels import row_labels
from ._packed import PackedGraphs, assemble, offsets, subset
from ._read import Described, GraphParts, pyg, read_networkx, read_pyg

# Of PyTorch Geometric: what is read, and attributes of whole graphs.
_PYG_READ = {"x", "label", "edge_index", "edge_attr", "edge_weight", "adj_t", "y", "batch", "ptr"}
# So many graphs of PyTorch Geometric tell which of their attributes are those of nodes or edges.
_LOOKED_AT = 10


def pack_graphs(graphs: Any) -> PackedGraphs:
    """Pack a list of graphs into a few arrays.

    The nodes and the edges of a networkx graph, directed or not, may have an attribute ``x``, a
    number or a vector, and an attribute ``label``, any hashable category; either all nodes, or all
    edges, of all graphs have it or none does. Edges may also have a ``weight``, which is 1 where
    it is missing. From PyTorch Geometric's ``Data``, ``x``, ``label``, ``edge_index``,
    ``edge_attr`` and ``edge_weight`` are read, or ``adj_t`` and its values as weights. Names of
    nodes and all other attributes are ignored; `fit` warns of attributes of nodes and edges that
    are.

    Parameters
    ----------
    graphs : sequence of networkx.Graph or of torch_geometric.data.Data
        At least one, each with at least one node. A list, an array of objects, a Series of pandas
        or a dataset of PyTorch Geometric.

    Returns
    -------
    graphs : PackedGraphs

    Raises
    ------
    ValueError
        If a graph has no nodes, or an attribute is missing, not finite or of a different width
        than in the graphs before; the message gives the index of the graph.
    TypeError
        If `graphs` is a single graph or holds anything except graphs.

    See Also
    --------
    PackedGraphs.to_networkx : The way back.

    Examples
    --------
    >>> import networkx as nx
    >>> from skcontrast.graphs import pack_graphs
    >>> pack_graphs([nx.path_graph(3), nx.complete_graph(4)])
    PackedGraphs(2 graphs, 7 nodes, 16 edges)
    """
    if isinstance(graphs, PackedGraphs):
        return graphs
    if is_graph(graphs):
        advice = "batch.to_data_list()" if hasattr(graphs, "to_data_list") else "[graph]"
        raise TypeError(f"X must be a list of graphs, got a single graph: pass {advice}.")
    # A Dataset has items, and need not be iterable.
    if isinstance(graphs, Dataset):
        rows: Any = graphs
        graphs = [rows[row] for row in range(len(rows))]
    is_iterable = hasattr(graphs, "__iter__") and not inspect.isclass(graphs)
    if not is_iterable or not getattr(graphs, "ndim", 1):
        raise TypeError(f"X must be a list of graphs, got a {type(graphs).__name__}.")
    items = list(graphs)
    if not items:
        raise ValueError("Found a list of 0 graphs in X: at least 1 is required.")
    parts = [_read(graph, index) for index, graph in enumerate(items)]
    packed = _packed(parts)
    ignored = _ignored_by_pyg(items).union(*(part.ignored for part in parts))
    packed.ignored = tuple(sorted(ignored))
    packed.index = row_labels(graphs)
    return packed


def is_graph(item: Any) -> bool:
    """Return whether an object is a graph of networkx or PyTorch Geometric."""
    return isinstance(item, graph_classes())


def graph_classes() -> tuple[type, ...]:
    """Return the graph classes of the libraries that have been imported: there are no others."""
    classes = [(sys.modules.get("networkx"), "Graph"), (pyg(), "Data"), (pyg(), "HeteroData")]
    return tuple(getattr(module, name) for module, name in classes if hasattr(module, name))


def is_graphs(X: Any) -> bool:
    """Return whether X is packed graphs, a graph, or a sequence of graphs or of rows of graphs."""
    if isinstance(X, PackedGraphs) or is_graph(X):
        return True
    classes = graph_classes()
    if not classes:
        return False
    if isinstance(X, Dataset):
        return hasattr(X, "__len__") and len(X) > 0 and is_graph(X[0])
    # An array of numpy or a Series of pandas.
    is_column = getattr(X, "ndim", 0) == 1 and getattr(X, "dtype", "") == np.dtype(object)
    if not (isinstance(X, (list, tuple)) or is_column):
        return False
    # Rows of graphs count as graphs, so that the mistake is reported as such.
    items = (item[0] if isinstance(item, (list, tuple)) and item else item for item in X)
    return any(isinstance(item, classes) for item in items)


def _read(graph: Any, index: int) -> GraphParts:
    """Return the parts of the graph at a place in X."""
    if not is_graph(graph):
        raise TypeError(f"X must hold graphs only: item {index} is a {type(graph).__name__}.")
    try:
        if isinstance(graph, getattr(sys.modules.get("networkx"), "Graph", ())):
            return read_networkx(graph)
        return read_pyg(graph)
    except (ValueError, TypeError, KeyError, OverflowError, RuntimeError) as error:
        raise ValueError(f"Graph {index} in X: {error}") from error


def _ignored_by_pyg(graphs: Sequence[Any]) -> frozenset[str]:
    """Return the names of what else data of PyTorch Geometric say about nodes and edges.

    An attribute of a graph may have, by chance, as many numbers as there are nodes in one graph,
    but not in several.
    """
    first = graphs[:_LOOKED_AT]
    if not isinstance(first[0], getattr(pyg(), "Data", ())):
        return frozenset()
    found = [
        {f"the node attribute {key!r}" for key in set(data.node_attrs()) - _PYG_READ}
        | {f"the edge attribute {key!r}" for key in set(data.edge_attrs()) - _PYG_READ}
        for data in first
    ]
    return frozenset(found[0].intersection(*found[1:]))


def _packed(parts: Sequence[GraphParts]) -> PackedGraphs:
    """Return graphs of which all parts have been read."""
    node_ptr = offsets(torch.tensor([part.n_nodes for part in parts]))
    empty = torch.nonzero(node_ptr.diff() < 1)
    if len(empty):
        raise ValueError(f"Graph {int(empty[0])} in X has no nodes: remove it from X.")
    starts = zip(parts, node_ptr.tolist(), strict=False)
    edges = torch.from_numpy(np.concatenate([part.edges + start for part, start in starts], 1))
    once = np.repeat([part.once for part in parts], [part.edges.shape[1] for part in parts])
    # The reverse of each edge follows, except of loops.
    back = torch.from_numpy(once) & (edges[0] != edges[1])
    rows = torch.cat([torch.arange(edges.shape[1]), back.nonzero()[:, 0]])
    # A graph without edges may be anywhere: it has no edges that lack attributes.
    nodes = {k: part.of_nodes for k, part in enumerate(parts)}
    linked = {k: part.of_edges for k, part in enumerate(parts) if part.edges.shape[1]}
    codes, edge_categories = _joined_labels(linked, "edge")
    labels, categories = _joined_labels(nodes, "node")
    return assemble(
        torch.cat([edges, edges[:, back].flip(0)], 1),
        node_ptr,
        not any(part.directed for part in parts),
        attributes=_joined_attributes(nodes, "node"),
        labels=labels,
        categories=categories,
        edge_attributes=subset(_joined_attributes(linked, "edge"), rows),
        edge_weights=subset(_joined_weights(parts), rows),
        edge_labels=subset(codes, rows),
        edge_categories=edge_categories,
    )


def _joined_attributes(parts: Mapping[int, Described], of: str) -> Tensor | None:
    """Return the attributes of all nodes or edges, shape (n, d), or None."""
    arrays = {k: part.attributes for k, part in parts.items()}
    widths = {k: 0 if array is None else array.shape[1] for k, array in arrays.items()}
    first = next(iter(widths), 0)
    others = [k for k, width in widths.items() if width != widths[first]]
    if others:
        raise ValueError(
            f"Graph {others[0]} in X has {widths[others[0]]} {of} attributes ('x'), graph {first} "
            f"has {widths[first]}."
        )
    if not widths or not widths[first]:
        return None
    return _joined(arrays, f"{of} attributes")


def _joined_labels(parts: Mapping[int, Described], of: str) -> tuple[Tensor | None, tuple]:
    """Return labels as codes, shape (n,), or None, and their categories."""
    without = [k for k, part in parts.items() if part.labels is None]
    if len(without) == len(parts):
        return None, ()
    if without:
        raise ValueError(f"Graph {without[0]} in X has no {of} labels ('label'), others have.")
    code: dict[Any, int] = {}
    every = chain.from_iterable(part.labels or () for part in parts.values())
    codes = [code.setdefault(label, len(code)) for label in every]
    return torch.tensor(codes), tuple(code)


def _joined_weights(parts: Sequence[GraphParts]) -> Tensor | None:
    """Return the weights of all edges, shape (n_edges,), 1 where a graph has none; or None."""
    if all(part.weights is None for part in parts):
        return None
    ones = [np.ones(part.edges.shape[1], np.float32) for part in parts]
    every = {k: ones[k] if p.weights is None else p.weights for k, p in enumerate(parts)}
    return _joined(every, "edge weights")


def _joined(arrays: Mapping[int, Any], what: str) -> Tensor:
    """Return arrays of graphs as one tensor; raise ValueError if one holds NaN or infinity."""
    joined = np.concatenate(list(arrays.values()))
    if not np.isfinite(joined).all():
        k = next(k for k, array in arrays.items() if not np.isfinite(array).all())
        raise ValueError(f"Graph {k} in X has {what} that are NaN or infinite.")
    return torch.from_numpy(joined)
