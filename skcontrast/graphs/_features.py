"""Features of nodes and edges: their attributes, labels and weights, and degrees."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from .._data._arrays import FARTHEST, column_scaler
from .._warnings import warn
from ._batch import Columns, EdgeColumns, GraphBatch
from ._packed import PackedGraphs

# Attributes, weights and labels of nodes or edges.
_Described: TypeAlias = tuple[Tensor | None, Tensor | None, Tensor | None]
# Larger degrees share a code.
_LARGEST_DEGREE = 64


class Descriptions:
    """The map from attributes, weights and labels of nodes or edges to scaled numbers and codes.

    Attributes and weights are standardised over the training set, and labels become codes of the
    categories that occur there. Weights are also kept in units of the mean absolute weight of the
    training set, unless all are 0 or 1.

    Parameters
    ----------
    of : {"Nodes", "Edges"}
        For messages.
    standardize : bool
        Whether numbers are standardised.
    """

    def __init__(self, of: str, standardize: bool):
        self.of, self.standardize = of, standardize

    def fit(self, described: _Described, categories: Sequence[Hashable]) -> Descriptions:
        """Learn the map from attributes, weights and labels of the training graphs."""
        _, weights, labels = described
        self.seen_, self.unit_ = _description(described), 1.0
        self.mean_, self.std_ = standards(_numeric_columns(described), self.standardize)
        self.codes_: dict | None = None if labels is None else codes_of(labels, categories)
        if self.standardize and weights is not None and not is_binary(weights).all():
            self.unit_ = float(weights.double().abs().mean())
        return self

    def to_columns(
        self, n: int, described: _Described, categories: Sequence[Hashable]
    ) -> EdgeColumns | None:
        """Return the features of n nodes or edges, None if there were none in `fit`."""
        if n and (names := _description(described)) != self.seen_:
            raise ValueError(
                f"{self.of} had {self.seen_ or 'no features'} in fit, but have {names or 'none'} "
                "in X."
            )
        if not self.seen_:
            return None
        if not n:
            weights = torch.empty(0) if "weights" in self.seen_ else None
            n_attributes = len(self.mean_) - (weights is not None)
            described = torch.empty(0, n_attributes), weights, torch.empty(0, dtype=torch.int64)
        weights, labels = described[1:]
        codes: Any = None
        if self.codes_ is not None and labels is not None:
            codes = codes_in(labels, categories, self.codes_)
        dense = (_numeric_columns(described).double() - self.mean_) / self.std_
        dense = dense.clamp_(-FARTHEST, FARTHEST).float().expand(n, -1)
        weight = None if weights is None else (weights.double() / self.unit_).float()
        return EdgeColumns(dense, codes, len(self.codes_ or ()), weight=weight)

    def restore(self, columns: Columns, graphs: PackedGraphs, prefix: str = "") -> None:
        """Set the attributes, weights and labels of packed graphs from features.

        A label that is masked or was not seen in `fit` is None.
        """
        numbers = columns.dense.double() * self.std_ + self.mean_
        if isinstance(columns, EdgeColumns) and columns.weight is not None:
            graphs.edge_weights = columns.weight.double() * self.unit_
            numbers = numbers[:, :-1]
        if numbers.shape[1]:
            setattr(graphs, f"{prefix}attributes", numbers)
        if columns.codes is not None:
            setattr(graphs, f"{prefix}labels", columns.codes % (columns.n_codes + 1))
            setattr(graphs, f"{prefix}categories", (*(self.codes_ or {}), None))


def _description(described: _Described) -> str:
    """Describe the features that exist, for comparisons and messages."""
    attributes, weights, labels = described
    names = [] if attributes is None else [f"{attributes.shape[1]} attributes ('x')"]
    names += [] if weights is None else ["weights"]
    names += [] if labels is None else ["labels"]
    return ", ".join(names)


def _numeric_columns(described: _Described) -> Tensor:
    """Return attributes and, in the last column, weights, (n, d); (1, 0) if there are none."""
    attributes, weights, _ = described
    columns = [] if attributes is None else [attributes]
    columns += [] if weights is None else [weights[:, None]]
    return torch.cat(columns, 1) if columns else torch.empty(1, 0)


class NodeFeatures:
    """The map from packed graphs to the features for encoders and augmentations.

    Attributes are standardised over all nodes of the training set, except columns of zeros and
    ones, and clipped at a million standard deviations. Labels become one-hot codes of the
    categories of the training set; any other category is all zeros. Graphs with neither get the
    in-degree d as a cumulative code, whose component k = 0, 1, … is 1 if d ≥ k. It ends at the
    largest degree of the training set, or at 64. So similar degrees have similar codes.

    Attributes and labels of edges become features in the same way.

    Parameters
    ----------
    kind : {"auto", "degree", "constant"}
        "auto" are attributes and labels, if graphs have any, else "degree"; "degree" and
        "constant", a single 1, replace them.
    standardize : bool
        Whether attributes are standardised.
    edges : "auto" or None
        Whether edges have features: None means no.
    """

    nodes_: Descriptions | None = None
    edges_: Descriptions | None = None

    def __init__(self, kind: str = "auto", standardize: bool = True, edges: str | None = "auto"):
        self.kind = kind
        self.standardize = standardize
        self.edges = edges

    def fit(self, graphs: PackedGraphs) -> NodeFeatures:
        """Learn the map from the training graphs."""
        of_nodes, of_edges = graphs.of_nodes(), graphs.of_edges()
        self.kind_ = self.kind
        if self.kind == "auto":
            self.kind_ = "attributes" if _description(of_nodes) else "degree"
        if self.kind_ == "degree":
            self.largest_degree_ = min(int(graphs.topology.in_degrees.max()), _LARGEST_DEGREE)
        if self.kind_ == "attributes":
            self.nodes_ = Descriptions("Nodes", self.standardize).fit(of_nodes, graphs.categories)
        if self.edges is not None:
            edges = Descriptions("Edges", self.standardize)
            self.edges_ = edges.fit(of_edges, graphs.edge_categories)
        return self

    def to_tensor(self, graphs: PackedGraphs, device: torch.device | str) -> GraphBatch:
        """Return packed graphs as a GraphBatch on a device."""
        topology, n = graphs.topology, graphs.topology.n_nodes
        dense, codes, n_codes = torch.ones(n, int(self.kind_ == "constant")), None, 0
        if self.kind_ == "degree":
            n_codes = self.largest_degree_ + 1
            codes = topology.in_degrees.clamp_max(n_codes - 1)
        if self.nodes_ is not None:
            nodes: Any = self.nodes_.to_columns(n, graphs.of_nodes(), graphs.categories)
            dense, codes, n_codes = nodes.dense, nodes.codes, nodes.n_codes
        n_edges, edges = len(topology.sources), None
        if self.edges_ is not None:
            edges = self.edges_.to_columns(n_edges, graphs.of_edges(), graphs.edge_categories)
        is_ordinal = self.kind_ == "degree"
        return GraphBatch(topology, dense, codes, n_codes, is_ordinal, edges).to(device)

    def from_tensor(self, batch: GraphBatch, X: PackedGraphs) -> PackedGraphs:
        """Return views of graphs with attributes and labels as in X.

        A label that is masked or was not seen in `fit` is None. Nodes whose features are
        degrees or a constant have neither attributes nor labels.
        """
        graphs = PackedGraphs(batch.topology)
        if self.nodes_ is not None:
            self.nodes_.restore(batch, graphs)
        if self.edges_ is not None and batch.edges is not None:
            self.edges_.restore(batch.edges, graphs, "edge_")
        return graphs


def standards(values: Tensor, standardize: bool) -> tuple[Tensor, Tensor]:
    """Return the mean and the standard deviation of each column of (n, d).

    They are 0 and 1 for columns of zeros and ones, and for all columns without `standardize`.
    """
    d = values.shape[1]
    if not (standardize and values.numel()):
        return torch.zeros(d, dtype=torch.float64), torch.ones(d, dtype=torch.float64)
    scaler = column_scaler(values.numpy())
    mean, std = torch.from_numpy(scaler.mean_), torch.from_numpy(scaler.scale_)
    is_kept = is_binary(values).all(0)
    return mean.masked_fill(is_kept, 0.0), std.masked_fill(is_kept, 1.0)


def is_binary(values: Tensor) -> Tensor:
    """Return a mask of the values 0 and 1."""
    return (values == 0) | (values == 1)


def codes_of(labels: Tensor, categories: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return the code of each category that occurs."""
    return {categories[k]: code for code, k in enumerate(labels.unique().tolist())}


def codes_in(labels: Tensor, categories: Sequence[Hashable], codes: dict[Hashable, int]) -> Tensor:
    """Return the codes of labels, shape (n,), −1 for unknown categories."""
    table = [codes.get(category, -1) for category in categories]
    if table and max(table) < 0:
        warn(
            f"No label of the graphs in X, such as {categories[0]!r}, occurred in fit. The labels "
            f"in fit included {list(codes)[:3]}."
        )
    return torch.tensor(table, dtype=torch.int64)[labels]
