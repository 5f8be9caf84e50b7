"""From lists of graph objects to packed arrays."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Sequence
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from .._row_labels import row_labels
from ._packed import PackedGraphs, check_finite, check_sizes, is_symmetric
from ._topology import Topology, offsets

# Size, edges (2, n_edges), attributes, labels, and whether edges have a direction.
_Parts: TypeAlias = "tuple[int, NDArray, NDArray | None, list | None, bool]"


def pack_graphs(graphs: Any) -> PackedGraphs:
    """Pack a list of graphs into a few arrays.

    The nodes of a networkx graph, directed or not, may have an attribute ``x``, a number or a
    vector, and an attribute ``label``, any hashable category; either all nodes of all graphs have
    it or none does. From PyTorch Geometric's ``Data``, ``x`` and ``edge_index`` are read, or else
    ``adj_t``. Names of nodes, weights of edges and all other attributes are ignored.

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
    PackedGraphs.from_arrays : Packs graphs that are arrays already.
    skcontrast.datasets.fetch_tudataset : Loads packed graphs.

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
    if isinstance(graphs, Dataset):
        graphs = [graphs[row] for row in range(len(graphs))]
    if (
        inspect.isclass(graphs)
        or not hasattr(graphs, "__iter__")
        or not getattr(graphs, "ndim", 1)
    ):
        raise TypeError(f"X must be a list of graphs, got a {type(graphs).__name__}.")
    read = [_read(graph, index) for index, graph in enumerate(graphs)]
    if not read:
        raise ValueError("Found a list of 0 graphs in X: at least 1 is required.")
    sizes, edges, attributes, labels, directed = zip(*read, strict=True)
    node_ptr = offsets(torch.tensor(sizes))
    check_sizes(node_ptr)
    numbered = [part + start for part, start in zip(edges, node_ptr.tolist(), strict=False)]
    edge_index = torch.from_numpy(np.concatenate(numbered, axis=1))
    topology = Topology.from_edges(edge_index, node_ptr, not any(directed))
    attributes = _joined_attributes(attributes, node_ptr)
    packed = PackedGraphs(topology, attributes, *_joined_labels(labels))
    packed.index = row_labels(graphs)
    return packed


def is_graphs(X: Any) -> bool:
    """Return whether X is packed graphs, a graph, or a sequence of graphs or of rows of graphs."""
    if isinstance(X, PackedGraphs) or is_graph(X):
        return True
    classes = _graph_classes()
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


def is_graph(item: Any) -> bool:
    """Return whether an object is a graph of networkx or PyTorch Geometric."""
    return isinstance(item, _graph_classes())


def _graph_classes() -> tuple[type, ...]:
    """Return the graph classes of the libraries that have been imported: there are no others."""
    classes = [(sys.modules.get("networkx"), "Graph"), (_pyg(), "Data"), (_pyg(), "HeteroData")]
    return tuple(getattr(module, name) for module, name in classes if hasattr(module, name))


def _pyg() -> Any:
    return sys.modules.get("torch_geometric.data")


def _read(graph: Any, index: int) -> _Parts:
    """Return size, edges (2, n_edges), attributes, labels and whether edges have a direction."""
    if not is_graph(graph):
        raise TypeError(
            f"X must hold graphs only, of networkx or PyTorch Geometric: item {index} is a "
            f"{type(graph).__name__}."
        )
    try:
        if isinstance(graph, getattr(sys.modules.get("networkx"), "Graph", ())):
            return _read_networkx(graph)
        return _read_pyg(graph)
    except (ValueError, TypeError, KeyError, OverflowError, RuntimeError) as error:
        raise ValueError(f"Graph {index} in X: {error}") from error


def _read_networkx(graph: Any) -> _Parts:
    number = {node: k for k, node in enumerate(graph)}
    flat = chain.from_iterable((number[u], number[v]) for u, v in graph.edges())
    edges = np.fromiter(flat, np.int64).reshape(-1, 2).T
    if not graph.is_directed():
        edges = np.concatenate([edges, edges[::-1, edges[0] != edges[1]]], axis=1)
    attributes = _as_vectors(_of_all_nodes(graph, "x"))
    return len(number), edges, attributes, _labels(graph), graph.is_directed()


def _as_vectors(values: list | None) -> NDArray | None:
    """Return numbers, or vectors of one length, as an array (n_nodes, d)."""
    if values is None:
        return None
    try:
        with np.errstate(over="ignore"):
            array = np.array(values)
            if array.dtype.kind == "c":
                raise ValueError("got complex numbers")
            return array.astype(np.float32).reshape(len(values), -1)
    except (ValueError, TypeError) as error:
        raise ValueError(
            "the node attribute 'x' must be a number, or a vector of numbers of the same length "
            f"for all nodes: {error}"
        ) from error


def _labels(graph: Any) -> list | None:
    labels = _of_all_nodes(graph, "label")
    if labels is None:
        return None
    # Tensors are hashed by identity, not by value.
    labels = [label.item() if isinstance(label, torch.Tensor) else label for label in labels]
    try:
        categories = set(labels)
    except TypeError as error:
        raise ValueError(f"the node attribute 'label' must be hashable: {error}") from error
    if any(_is_missing(label) for label in categories):
        raise ValueError("the node attribute 'label' must be a category, got NaN.")
    return labels


def _is_missing(label: Any) -> bool:
    """Return whether a label is missing: it does not equal itself, like NaN and pandas' NA."""
    try:
        return bool(label != label)
    except TypeError:
        return True


def _of_all_nodes(graph: Any, name: str) -> list | None:
    """Return the attribute of all nodes as a list, None if none has it."""
    values = [value for _, value in graph.nodes(data=name)]
    missing = [node for node, value in zip(graph, values, strict=True) if value is None]
    if len(missing) == len(values):
        return None
    if missing:
        raise ValueError(f"node {missing[0]!r} has no attribute {name!r}, others have.")
    return values


def _read_pyg(data: Any) -> _Parts:
    if not isinstance(data, _pyg().Data):
        raise TypeError("a HeteroData has nodes of several kinds: pass data.to_homogeneous().")
    x, edges = getattr(data, "x", None), getattr(data, "edge_index", None)
    if edges is None and getattr(data, "adj_t", None) is not None:  # as ToSparseTensor leaves it
        targets_and_sources, _ = sys.modules["torch_geometric.utils"].to_edge_index(data.adj_t)
        edges = targets_and_sources.flip(0)
    n_nodes = data.num_nodes or 0
    edges = _numbers_of_nodes(torch.empty(2, 0) if edges is None else _plain(edges))
    if edges.ndim != 2 or len(edges) != 2:
        raise ValueError(f"'edge_index' must have shape (2, n_edges), got {tuple(edges.shape)}.")
    if edges.numel() and (edges.min() < 0 or edges.max() >= n_nodes):
        raise ValueError(f"'edge_index' must hold numbers of nodes, 0 to {n_nodes - 1}.")
    if x is not None and len(x) != n_nodes:
        raise ValueError(f"'x' must have {n_nodes} rows, one for each node, got {len(x)}.")
    if x is not None and n_nodes:
        x = _plain(x).float().reshape(n_nodes, -1).numpy()
    return n_nodes, edges.numpy(), x, None, not is_symmetric(edges, n_nodes)


def _numbers_of_nodes(edges: Tensor) -> Tensor:
    """Return edges as int64, or raise ValueError if they are not whole numbers."""
    if edges.dtype == torch.bool or edges.is_complex() or not torch.equal(edges, edges.round()):
        raise ValueError(f"'edge_index' must hold whole numbers, got dtype {edges.dtype}.")
    return edges.to(torch.int64)


def _plain(values: Any) -> Tensor:
    """Return an array or a tensor, sparse or not, as a dense tensor on the CPU."""
    return torch.as_tensor(values).detach().cpu().to_dense()


def _joined_attributes(attributes: Sequence[NDArray | None], node_ptr: Tensor) -> Tensor | None:
    """Return the attributes of all nodes, shape (n_nodes, d), or None."""
    widths = [0 if a is None else a.shape[1] for a in attributes]
    others = [k for k, width in enumerate(widths) if width != widths[0]]
    if others:
        raise ValueError(
            f"Graph {others[0]} in X has {widths[others[0]]} node attributes ('x'), graph 0 has "
            f"{widths[0]}."
        )
    if not widths[0]:
        return None
    joined = torch.from_numpy(np.concatenate([a for a in attributes if a is not None]))
    check_finite(joined, node_ptr)
    return joined


def _joined_labels(labels: Sequence[list | None]) -> tuple[Tensor | None, tuple]:
    """Return labels as codes, shape (n_nodes,), or None, and the categories they stand for."""
    without = [k for k, some in enumerate(labels) if some is None]
    if len(without) == len(labels):
        return None, ()
    if without:
        raise ValueError(f"Graph {without[0]} in X has no node labels ('label'), others have.")
    code: dict[Any, int] = {}
    codes = [code.setdefault(label, len(code)) for some in labels for label in some or ()]
    return torch.tensor(codes), tuple(code)
