"""Features of nodes and edges: their attributes, labels and weights, and degrees."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Number
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._data._arrays import FARTHEST, mean_and_std
from .._warnings import warn
from ._batch import EdgeColumns, GraphBatch
from ._packed import PackedGraphs

# Degrees from here on share a code.
_LARGEST_DEGREE = 64


class EdgeFeatures:
    """The map from packed graphs to the features of edges that encoders and augmentations see.

    Attributes and weights are standardised over all edges of the training set, labels become
    one-hot codes, as those of nodes do. Weights are also kept in units of the mean absolute
    weight of the training set, unless all are 0 or 1.

    Parameters
    ----------
    standardize : bool
        Whether numbers are standardised.
    """

    def __init__(self, standardize: bool):
        self.standardize = standardize

    def fit(self, graphs: PackedGraphs) -> EdgeFeatures:
        """Learn the map from the training graphs."""
        self.seen_ = _description(graphs)
        self.mean_, self.std_ = standards(_numbers(graphs), self.standardize)
        self.codes_: dict | None = None
        if graphs.edge_labels is not None:
            self.codes_ = codes_of(graphs.edge_labels, graphs.edge_categories)
        weights, self.unit_ = graphs.edge_weights, 1.0
        if self.standardize and weights is not None and not is_binary(weights).all():
            self.unit_ = float(weights.double().abs().mean())
        return self

    def to_columns(self, graphs: PackedGraphs) -> EdgeColumns | None:
        """Return the features of the edges of packed graphs, None if `fit` saw none."""
        n_edges = len(graphs.topology.sources)
        found = _description(graphs)
        if n_edges and found != self.seen_:
            raise ValueError(
                f"Edges had {self.seen_ or 'no features'} in fit, but have {found or 'none'} in X."
            )
        if not self.seen_:
            return None
        numbers, weights = _numbers(graphs), graphs.edge_weights
        labels: Any = graphs.edge_labels
        if not n_edges:  # and so nothing that describes them
            numbers, labels = torch.empty(0, len(self.mean_)), torch.empty(0, dtype=torch.int64)
            weights = torch.empty(0) if "weights" in self.seen_ else None
        codes = None if self.codes_ is None else coded(labels, graphs.edge_categories, self.codes_)
        dense, n_codes = standardised(numbers, self.mean_, self.std_), len(self.codes_ or ())
        weight = None if weights is None else (weights.double() / self.unit_).float()
        return EdgeColumns(dense, codes, n_codes, weight=weight)

    def restore(self, edges: EdgeColumns, graphs: PackedGraphs) -> None:
        """Give packed graphs the attributes, weights and labels of features.

        A label that is masked or was not seen in `fit` is None.
        """
        numbers = edges.dense.double() * self.std_ + self.mean_
        if edges.weight is not None:
            graphs.edge_weights = edges.weight.double() * self.unit_
            numbers = numbers[:, :-1]
        if numbers.shape[1]:
            graphs.edge_attributes = numbers
        if edges.codes is not None:
            graphs.edge_labels = edges.codes % (edges.n_codes + 1)
            graphs.edge_categories = (*(self.codes_ or {}), None)


def _description(graphs: PackedGraphs) -> str:
    """Return which features edges have, for comparison and for messages."""
    attributes, weights, labels = graphs.of_edges()
    parts = [] if attributes is None else [f"{attributes.shape[1]} attributes ('x')"]
    parts += [] if weights is None else ["weights"]
    parts += [] if labels is None else ["labels"]
    return ", ".join(parts)


def _numbers(graphs: PackedGraphs) -> Tensor:
    """Return attributes and, last, the weight of each edge, shape (n_edges, d)."""
    attributes, weights, _ = graphs.of_edges()
    columns = [] if attributes is None else [attributes]
    columns += [] if weights is None else [weights[:, None]]
    return torch.cat(columns, 1) if columns else torch.empty(len(graphs.topology.sources), 0)


class NodeFeatures:
    """The map from packed graphs to the features that encoders and augmentations see.

    Attributes are standardised over all nodes of the training set, except columns of zeros and
    ones, and clipped at a million standard deviations. Labels become one-hot codes of the
    categories of the training set; any other category is all zeros. Graphs with neither get the
    in-degree d as a cumulative code, whose component k = 0, 1, … is 1 if d ≥ k. It ends at the
    largest degree of the training set, or at 64. So near degrees have near codes, however rare
    they are.

    Attributes and labels of edges become features in the same way. Weights are a feature too, and
    are also kept in units of the mean absolute weight of the training set.

    Parameters
    ----------
    kind : {"auto", "attributes", "degree", "constant"}
        "attributes" are attributes and labels; "degree" and "constant", a single 1, replace
        them; "auto" is "attributes" if graphs have any, else "degree".
    standardize : bool
        Whether attributes are standardised.
    edges : {"auto", "attributes"} or None
        Whether edges have features: None means no, "attributes" requires that edges have
        attributes, weights or labels.
    """

    edges_: EdgeFeatures | None = None
    mean_: Tensor | None
    std_: Any

    def __init__(self, kind: str = "auto", standardize: bool = True, edges: str | None = "auto"):
        self.kind = kind
        self.standardize = standardize
        self.edges = edges

    def fit(self, graphs: PackedGraphs) -> NodeFeatures:
        """Learn the map from the training graphs."""
        has_any = graphs.attributes is not None or graphs.labels is not None
        if self.kind == "attributes" and not has_any:
            raise ValueError(
                "node_features='attributes', but the nodes in X have neither 'x' nor 'label'."
            )
        if self.edges == "attributes" and not any(c is not None for c in graphs.of_edges()):
            raise ValueError(
                "edge_features='attributes', but edges in X have no 'x', 'weight' or 'label'."
            )
        # What is learned: the largest degree, or codes of labels and a mean and std.
        self.kind_ = self.kind
        if self.kind == "auto":
            self.kind_ = "attributes" if has_any else "degree"
        self.codes_: dict | None = None
        self.mean_, self.std_ = None, None
        if self.kind_ == "degree":
            self.largest_degree_ = int(graphs.topology.in_degrees.max())
        if self.kind_ == "attributes" and graphs.labels is not None:
            self.codes_ = codes_of(graphs.labels, graphs.categories)
        if self.kind_ == "attributes" and graphs.attributes is not None:
            self.mean_, self.std_ = standards(graphs.attributes, self.standardize)
        self.edges_ = None if self.edges is None else EdgeFeatures(self.standardize).fit(graphs)
        return self

    def to_tensor(self, graphs: PackedGraphs, device: torch.device | str) -> GraphBatch:
        """Return packed graphs as a GraphBatch on a device."""
        topology = graphs.topology
        dense, codes, n_codes = torch.empty(topology.n_nodes, 0), None, 0
        if self.kind_ == "constant":
            dense = torch.ones(topology.n_nodes, 1)
        elif self.kind_ == "degree":
            # Bounded here, too: what a file holds must not ask for any amount of memory.
            n_codes = min(self.largest_degree_, _LARGEST_DEGREE) + 1
            codes = topology.in_degrees.clamp_max(n_codes - 1)
        else:
            if self.mean_ is not None and graphs.attributes is not None:
                dense = standardised(graphs.attributes, self.mean_, self.std_)
            codes = self._coded(graphs)
            n_codes = len(self.codes_ or ())
        edges = None if self.edges_ is None else self.edges_.to_columns(graphs)
        ordinal = self.kind_ == "degree"
        return GraphBatch(topology, dense, codes, n_codes, ordinal, edges).to(device)

    def _coded(self, graphs: PackedGraphs) -> Tensor | None:
        """Return the codes of the labels of nodes, None if there are no labels."""
        if self.codes_ is None and graphs.labels is None:
            return None
        if self.codes_ is None or graphs.labels is None:
            had, have = ("no labels", "") if self.codes_ is None else ("labels", " none")
            raise ValueError(f"Nodes had {had} in fit, but those of X have{have}.")
        return coded(graphs.labels, graphs.categories, self.codes_)

    def from_tensor(self, batch: GraphBatch, X: PackedGraphs) -> PackedGraphs:
        """Return views of graphs with attributes and labels as in X.

        A label that is masked or was not seen in `fit` is None. Nodes that are described by
        their degrees or a constant have neither attributes nor labels.
        """
        graphs = PackedGraphs(batch.topology)
        if self.edges_ is not None and batch.edges is not None:
            self.edges_.restore(batch.edges, graphs)
        if self.kind_ != "attributes":
            return graphs
        if self.mean_ is not None and len(self.mean_):
            graphs.attributes = batch.dense.double() * self.std_ + self.mean_
        if batch.codes is not None:
            graphs.labels = batch.codes % (batch.n_codes + 1)
            graphs.categories = (*(self.codes_ or {}), None)
        return graphs


def standards(values: Tensor, standardize: bool) -> tuple[Tensor, Tensor]:
    """Return the mean and the standard deviation of each column of (n, d).

    They are 0 and 1 for columns of zeros and ones, and for all without `standardize`.
    """
    d = values.shape[1]
    if not (standardize and len(values)):
        return torch.zeros(d, dtype=torch.float64), torch.ones(d, dtype=torch.float64)
    mean, std = map(torch.from_numpy, mean_and_std(values.numpy()))
    is_kept = is_binary(values).all(0)
    return mean.masked_fill(is_kept, 0.0), std.masked_fill(is_kept, 1.0)


def is_binary(values: Tensor) -> Tensor:
    """Return which values are 0 or 1."""
    return (values == 0) | (values == 1)


def standardised(values: Tensor, mean: Tensor, std: Tensor) -> Tensor:
    """Return columns in standard deviations from the mean, see `standards`, clipped."""
    return ((values.double() - mean) / std).clamp_(-FARTHEST, FARTHEST).float()


def codes_of(labels: Tensor, categories: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return the code of each category that occurs."""
    return {categories[k]: code for code, k in enumerate(labels.unique().tolist())}


def _type_of(category: Hashable) -> str:
    """Return what a label is; numbers are equal whatever their type."""
    if isinstance(category, str):
        return "strings"
    return "numbers" if isinstance(category, Number | np.bool_) else type(category).__name__


def coded(labels: Tensor, categories: Sequence[Hashable], codes: dict[Hashable, int]) -> Tensor:
    """Return the codes of labels, shape (n,), −1 for a category that has none.

    Raises
    ------
    ValueError
        If none is of a type that some had in `fit`.
    """
    had, have = ({_type_of(c) for c in of if c is not None} for of in (codes, categories))
    if had and (new := have - had):
        then, now = (" and ".join(sorted(types)) for types in (had, new))
        if have == new:
            raise ValueError(f"Labels of the graphs in X were {then} in fit, but are {now} now.")
        warn(f"Labels of the graphs in X were {then} in fit: those that are {now} are unseen.")
    table = [codes.get(category, -1) for category in categories]
    return torch.tensor(table, dtype=torch.int64)[labels]
