"""Features of edges: numbers from their attributes and weights, and their label."""

from __future__ import annotations

import torch
from torch import Tensor

from ._columns import EdgeColumns, coded, codes_of, standardised, standards
from ._packed import PackedGraphs


class EdgeFeatures:
    """The map from packed graphs to the features of edges that encoders and augmentations see.

    Attributes and weights are standardised over all edges of the training set, labels become
    one-hot codes, as those of nodes do. Weights are kept besides, in units of the mean absolute
    weight of the training set, unless all are 0 or 1.

    Parameters
    ----------
    standardize : bool
        Whether numbers are standardised.
    """

    def __init__(self, standardize: bool):
        self.standardize = standardize

    def fit(self, graphs: PackedGraphs) -> EdgeFeatures:
        """Learn the map from the training graphs, whose edges are described somehow."""
        self.seen_ = _description(graphs)
        self.mean_, self.std_ = standards(_numbers(graphs), self.standardize)
        self.codes_: dict | None = None
        if graphs.edge_labels is not None:
            self.codes_ = codes_of(graphs.edge_labels, graphs.edge_categories)
        self.unit_ = 1.0
        if self.standardize and graphs.edge_weights is not None:
            self.unit_ = _unit(graphs.edge_weights)
        return self

    def to_columns(self, graphs: PackedGraphs) -> EdgeColumns:
        """Return the features of the edges of packed graphs."""
        n_edges = len(graphs.topology.sources)
        found = _description(graphs)
        if n_edges and found != self.seen_:
            raise ValueError(
                f"The edges of the graphs in fit had {self.seen_}, those in X have {found}."
            )
        if not n_edges:
            return self._empty()
        codes, weights = None, graphs.edge_weights
        if self.codes_ is not None and graphs.edge_labels is not None:
            codes = coded(graphs.edge_labels, graphs.edge_categories, self.codes_)
        return EdgeColumns(
            standardised(_numbers(graphs), self.mean_, self.std_),
            codes,
            len(self.codes_ or ()),
            weight=None if weights is None else (weights.double() / self.unit_).float(),
        )

    def _empty(self) -> EdgeColumns:
        """Return the features of no edges."""
        return EdgeColumns(
            torch.empty(0, len(self.mean_)),
            None if self.codes_ is None else torch.empty(0, dtype=torch.int64),
            len(self.codes_ or ()),
            weight=torch.empty(0) if "weights" in self.seen_ else None,
        )

    def restore(self, edges: EdgeColumns, graphs: PackedGraphs) -> None:
        """Give packed graphs the attributes, weights and labels that features stand for.

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


def describes_edges(graphs: PackedGraphs) -> bool:
    """Return whether anything is known about the edges of packed graphs."""
    return any(column is not None for column in graphs.of_edges())


def _unit(weights: Tensor) -> float:
    """Return the mean absolute weight, 1 if all weights are 0 or 1."""
    if ((weights == 0) | (weights == 1)).all():
        return 1.0
    return float(weights.double().abs().mean())


def _description(graphs: PackedGraphs) -> str:
    """Return what is known about edges, for comparison and for messages."""
    attributes, weights, labels = graphs.of_edges()
    parts = [] if attributes is None else [f"{attributes.shape[1]} attributes ('x')"]
    parts += [] if weights is None else ["weights"]
    parts += [] if labels is None else ["labels"]
    return ", ".join(parts) or "nothing"


def _numbers(graphs: PackedGraphs) -> Tensor:
    """Return attributes and, last, the weight of each edge, shape (n_edges, d)."""
    attributes, weights, _ = graphs.of_edges()
    columns = [] if attributes is None else [attributes]
    columns += [] if weights is None else [weights[:, None]]
    return torch.cat(columns, 1) if columns else torch.empty(len(graphs.topology.sources), 0)
