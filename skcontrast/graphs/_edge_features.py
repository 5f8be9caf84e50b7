"""Features of edges: numbers from their attributes and weights, and their label."""

from __future__ import annotations

import torch
from torch import Tensor

from ._columns import EdgeColumns, coded, codes_of, is_binary, standardised, standards
from ._packed import PackedGraphs


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
                f"Edges had {self.seen_ or 'no features'} in fit, but those of X have "
                f"{found or 'none'}."
            )
        if not self.seen_:
            return None
        numbers, (_, weights, labels) = _numbers(graphs), graphs.of_edges()
        if not n_edges:  # and so nothing that describes them
            numbers, weights = torch.empty(0, len(self.mean_)), torch.empty(0)
            labels = torch.empty(0, dtype=torch.int64)
        if weights is not None and "weights" in self.seen_:
            weights = (weights.double() / self.unit_).float()
        else:
            weights = None
        return EdgeColumns(
            standardised(numbers, self.mean_, self.std_),
            None if self.codes_ is None else coded(labels, graphs.edge_categories, self.codes_),
            len(self.codes_ or ()),
            weight=weights,
        )

    def restore(self, edges: EdgeColumns, graphs: PackedGraphs) -> None:
        """Give packed graphs the attributes, weights and labels of features.

        A label that is masked or was not seen in `fit` is None.
        """
        numbers = (edges.dense.double() * self.std_ + self.mean_).float()
        if edges.weight is not None:
            graphs.edge_weights = (edges.weight.double() * self.unit_).float()
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
