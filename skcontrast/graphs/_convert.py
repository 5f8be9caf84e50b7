"""From lists of graphs of networkx or PyTorch Geometric to packed arrays."""

import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.utils.data import Dataset

from .._checks._arguments import check_entries
from .._data._arrays import as_array
from .._data._modalities import row_labels
from .._runtime import guarded
from ._packed import PackedGraphs, assemble, is_symmetric, offsets, take_rows

# Attributes in networkx.
_READ = {"node": {"x", "label"}, "edge": {"x", "label", "weight"}}
# Attributes of PyTorch Geometric that are read, or say nothing about the nodes and edges.
_KNOWN = {
    "x", "label", "edge_index", "edge_attr", "edge_weight", "adj_t", "y", "batch", "ptr", "face",
    "num_nodes", "n_id", "e_id", "idx",
}  # fmt: skip


class Described(NamedTuple):
    """Numbers (n, d), weights (n,) and categories of the nodes, or the edges, of a graph."""

    attributes: NDArray | None = None
    weights: NDArray | None = None
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
        Whether undirected edges are listed in one direction only.
    of_nodes, of_edges : Described
        Their attributes, weights and labels.
    ignored : frozenset of str
        Names of attributes that were not read.
    """

    n_nodes: int
    edges: NDArray
    directed: bool
    once: bool
    of_nodes: Described
    of_edges: Described
    ignored: Iterable[str] = ()


@guarded()
def pack_graphs(graphs: Any) -> PackedGraphs:
    """Pack a list of graphs into a few arrays.

    The nodes and the edges of a networkx graph, directed or not, may have an attribute ``x``, a
    number or a vector, and an attribute ``label``, any hashable category; either all nodes, or all
    edges, of all graphs have it or none does. Edges may also have a ``weight``, which is 1 where
    it is missing. From PyTorch Geometric's ``Data``, ``x``, ``label``, ``edge_index``,
    ``edge_attr`` and ``edge_weight`` are read, or ``adj_t`` and its values as weights. Names of
    nodes and all other attributes are ignored; `fit` warns of attributes that are.

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
    PackedGraphs : The result, which can be indexed.

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
    if not (items := list(graphs)):
        raise ValueError("Found a list of 0 graphs in X: at least 1 is required.")
    read = [_read(graph, index) for index, graph in enumerate(items)]
    packed = _packed(read)
    # An array of a whole graph may have as many rows as one graph has nodes, but not as each has.
    pairs, data = zip(items, read, strict=True), getattr(pyg(), "Data", ())
    of_pyg = [set(parts.ignored) for item, parts in pairs if isinstance(item, data)]
    others = set().union(*(parts.ignored for parts in read)) - set().union(*of_pyg)
    packed.ignored = tuple(sorted(others | (set.intersection(*of_pyg) if of_pyg else set())))
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
    if not (classes := graph_classes()):
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


def _read(graph: Any, k: int) -> GraphParts:
    """Return the arrays of graph k of X."""
    if not is_graph(graph):
        advice = ""
        if getattr(graph, "ndim", 0) == 2:
            name = "numpy" if isinstance(graph, np.ndarray) else "scipy_sparse"
            advice = (
                f": if it is an adjacency matrix, pass [networkx.from_{name}_array(A) for A in X]"
            )
        raise TypeError(f"X must hold graphs only: item {k} is a {type(graph).__name__}{advice}.")
    try:
        if isinstance(graph, getattr(sys.modules.get("networkx"), "Graph", ())):
            return read_networkx(graph)
        return read_pyg(graph)
    except (ValueError, TypeError, KeyError, OverflowError, RuntimeError) as error:
        raise ValueError(f"Graph {k} in X: {error}") from error


def _packed(graphs: Sequence[GraphParts]) -> PackedGraphs:
    """Return the arrays of all graphs as one `PackedGraphs`."""
    node_ptr = offsets(torch.tensor([graph.n_nodes for graph in graphs]))
    if len(empty := torch.nonzero(node_ptr.diff() < 1)):
        raise ValueError(f"Graph {int(empty[0])} in X has no nodes: remove it from X.")
    starts = zip(graphs, node_ptr.tolist(), strict=False)
    edges = torch.from_numpy(np.concatenate([graph.edges + start for graph, start in starts], 1))
    once = np.repeat([graph.once for graph in graphs], [graph.edges.shape[1] for graph in graphs])
    # The reverse of each edge follows, except of loops.
    back = torch.from_numpy(once) & (edges[0] != edges[1])
    rows = torch.cat([torch.arange(edges.shape[1]), back.nonzero()[:, 0]])
    # A graph without edges has no edges that could lack attributes.
    nodes = {k: (graph.n_nodes, graph.of_nodes) for k, graph in enumerate(graphs)}
    linked = {k: (graph.edges.shape[1], graph.of_edges) for k, graph in enumerate(graphs)}
    linked = {k: (n_edges, described) for k, (n_edges, described) in linked.items() if n_edges}
    attributes, _, labels, categories = _concatenate_descriptions(nodes, "node")
    *of_edges, edge_categories = _concatenate_descriptions(linked, "edge")
    edge_attributes, edge_weights, edge_labels = (take_rows(column, rows) for column in of_edges)
    return assemble(
        torch.cat([edges, edges[:, back].flip(0)], 1),
        node_ptr,
        not any(graph.directed for graph in graphs),
        attributes=attributes,
        labels=labels,
        categories=categories,
        edge_attributes=edge_attributes,
        edge_weights=edge_weights,
        edge_labels=edge_labels,
        edge_categories=edge_categories,
    )


def _concatenate_descriptions(
    described: Mapping[int, tuple[int, Described]], of: str
) -> tuple[Any, Any, Any, tuple]:
    """Return attributes, weights and labels of all nodes or edges, and the categories.

    Parameters
    ----------
    described : dict of int to (int, Described)
        Number and description of the nodes or edges of each graph, by its number.
    of : {"node", "edge"}
        For messages.
    """
    attributes = {k: description.attributes for k, (_, description) in described.items()}
    widths = {k: 0 if array is None else array.shape[1] for k, array in attributes.items()}
    first = next(iter(widths), 0)
    for k, width in widths.items():
        if width != widths[first]:
            raise ValueError(
                f"Graph {k} in X has {width} {of} attributes ('x'), graph {first} has "
                f"{widths[first]}."
            )
    columns: list[Any] = [None, None, None]
    if widths.get(first):
        columns[0] = _finite(attributes, f"{of} attributes")
    if any(description.weights is not None for _, description in described.values()):
        weights = {
            k: np.ones(n, np.float32) if description.weights is None else description.weights
            for k, (n, description) in described.items()
        }
        columns[1] = _finite(weights, f"{of} weights")
    without = [k for k, (_, description) in described.items() if description.labels is None]
    categories: dict[Any, int] = {}
    if 0 < len(without) < len(described):
        raise ValueError(f"Graph {without[0]} in X has no {of} labels ('label'), unlike others.")
    if described and not without:
        labels = chain.from_iterable(item.labels or () for _, item in described.values())
        codes = [categories.setdefault(label, len(categories)) for label in labels]
        columns[2] = torch.tensor(codes)
    return columns[0], columns[1], columns[2], tuple(categories)


def _finite(arrays: Mapping[int, Any], what: str) -> Tensor:
    """Return arrays of graphs as one tensor; raise ValueError if one holds NaN or infinity."""
    joined = np.concatenate(list(arrays.values()))
    if not np.isfinite(joined).all():
        k = next(k for k, array in arrays.items() if not np.isfinite(array).all())
        raise ValueError(f"Graph {k} in X has {what} that are NaN or infinite.")
    return torch.from_numpy(joined)


def read_networkx(graph: Any) -> GraphParts:
    number = {node: k for k, node in enumerate(graph)}
    # Reading the attributes of edges takes nearly as long again, whether they have any or not.
    is_described = any(any(attributes.values()) for _, attributes in graph.adjacency())
    links = list(graph.edges(data=True) if is_described else graph.edges())
    flat = chain.from_iterable((number[link[0]], number[link[1]]) for link in links)
    edges = np.fromiter(flat, np.int64).reshape(-1, 2).T
    data = [link[2] for link in links] if is_described else []
    attributes = [of_node for _, of_node in graph.nodes(data=True)]
    nodes, of_nodes = _describe("node", list(graph), attributes)
    joined, of_edges = _describe("edge", links, data)
    is_directed = graph.is_directed()
    return GraphParts(
        len(number), edges, is_directed, not is_directed, of_nodes, of_edges, nodes | joined
    )


def _describe(kind: str, names: Sequence, data: Sequence[Mapping]) -> tuple[set[str], Described]:
    """Return the names of the attributes that are not read, and those that are, as arrays.

    Parameters
    ----------
    kind : {"node", "edge"}
        What has them.
    names : sequence
        The nodes, or the ends of the edges, for messages.
    data : list of dict
        The attributes of each.
    """
    keys: set = set().union(*filter(None, data))
    columns: dict[str, Any] = {}
    for key in keys & _READ[kind]:
        values = [attributes.get(key, 1.0 if key == "weight" else None) for attributes in data]
        if any(value is None for value in values):
            if all(value is None for value in values):
                continue
            name = next(n for n, value in zip(names, values, strict=True) if value is None)
            name = name if kind == "node" else name[:2]
            raise ValueError(f"{kind} {name!r} has no attribute {key!r}, unlike others.")
        what = f"the {kind} attribute {key!r}"
        if key == "label":
            columns[key] = _categories(values, what)
            continue
        expected = "a number"
        if key == "x":
            expected += f", or a vector of numbers of the same length for all {kind}s"
        try:
            check_entries(values, key)
            shape = (len(values), -1) if key == "x" else (len(values),)
            columns[key] = _floats(np.array(values)).reshape(shape)
        except (ValueError, TypeError) as error:
            words = (k for k, value in enumerate(values) if isinstance(value, str))
            reason: Any = error
            if (k := next(words, None)) is not None:
                reason = f"{kind} {names[k]!r} has {key}={values[k]!r}"
                reason += ". Categories go to the attribute 'label'"
            raise ValueError(f"{what} must be {expected}: {reason}") from error
    ignored = {f"the {kind} attribute {key!r}" for key in keys - _READ[kind]}
    return ignored, Described(columns.get("x"), columns.get("weight"), columns.get("label"))


def _categories(labels: list, what: str) -> list:
    """Return categories, which can be compared."""
    # Tensors are hashed by identity, not by value.
    labels = [label.item() if isinstance(label, torch.Tensor) else label for label in labels]
    try:
        categories = set(labels)
    except TypeError as error:
        raise ValueError(f"{what} must be hashable: {error}") from error
    if any(_is_missing(label) for label in categories):
        raise ValueError(f"{what} must be a category, got NaN.")
    return labels


def _floats(array: NDArray) -> NDArray:
    """Return numbers as float32 if it holds all values of their dtype exactly, else as float64."""
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
    x = _checked_rows(data, "x", n_nodes)
    edge_attributes = _checked_rows(data, "edge_attr", n_edges)
    if getattr(data, "edge_weight", None) is not None:
        weights = _checked_rows(data, "edge_weight", n_edges)
    if weights is not None and weights.size != n_edges:
        raise ValueError(f"'edge_weight' must hold a number for each edge, got {weights.shape}.")
    known = [torch.from_numpy(a) for a in (edge_attributes, weights) if a is not None]
    # Data does not say: undirected are edges that exist both ways with the same numbers.
    is_directed = not is_symmetric(edges, n_nodes, *known)
    of_nodes = Described(x, labels=_labels_of_pyg(data, n_nodes))
    of_edges = Described(edge_attributes, None if weights is None else weights.reshape(-1))
    ignored = list(_ignored_by_pyg(data, n_nodes, n_edges))
    return GraphParts(n_nodes, edges.numpy(), is_directed, False, of_nodes, of_edges, ignored)


def _ignored_by_pyg(data: Any, n_nodes: int, n_edges: int) -> Iterator[str]:
    """Yield the attributes with a row for each node, or for each edge, that are not read."""
    for name in set(data.keys()) - _KNOWN:
        n_rows = np.shape(data[name])[:1] if hasattr(data[name], "shape") else ()
        if n_rows and n_rows[0] in (n_nodes, n_edges) and not name.endswith(("mask", "index")):
            is_edge = n_rows[0] != n_nodes or name.startswith("edge")
            yield f"the {'edge' if is_edge else 'node'} attribute {name!r}"


def _labels_of_pyg(data: Any, n_nodes: int) -> list | None:
    """Return the categories in ``label``, one for each node, or None."""
    if (labels := getattr(data, "label", None)) is None:
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
        values = None if bool((values == 1).all()) else _floats(as_array(_cpu_tensor(values)))
    edges = (torch.empty(2, 0) if edges is None else _cpu_tensor(edges)).to(torch.int64)
    if edges.ndim != 2 or len(edges) != 2:
        raise ValueError(f"'edge_index' must have shape (2, n_edges), got {tuple(edges.shape)}.")
    return edges, values


def _checked_rows(data: Any, name: str, n: int) -> NDArray | None:
    """Return an attribute with a row per node or edge as an array (n, d), or None."""
    if (values := getattr(data, name, None)) is None:
        return None
    if len(values) != n:
        of = "node" if name == "x" else "edge"
        raise ValueError(f"{name!r} must have {n} rows, one for each {of}, got {len(values)}.")
    return _floats(as_array(_cpu_tensor(values))).reshape(n, -1) if n else None


def _cpu_tensor(values: Any) -> Tensor:
    """Return an array or a tensor, sparse or not, as a dense tensor on the CPU."""
    return torch.as_tensor(values).detach().cpu().to_dense()


def pyg() -> Any:
    return sys.modules.get("torch_geometric.data")
