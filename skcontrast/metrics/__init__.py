"""Measures of embeddings, with and without labels.

Functions take arrays of embeddings, and are deterministic. With classes:
``knn_accuracy``, ``linear_probe``, ``few_label_accuracy``, ``recall_at_k`` and ``map_at_r``, for a
training and a test set or for a single set. With two views of each sample, or embeddings of two
embedders: ``alignment`` and ``neighbor_agreement``. With one embedding: ``uniformity`` and
``effective_rank``. For the scores of two embedders: ``compare_paired``. For an embedder and
training-free baselines: ``compare_with_baselines``.

A scorer is called as ``scorer(estimator, X, y=None)`` and can be the ``scoring`` of
``GridSearchCV``, ``cross_validate`` and ``cross_val_score``. So can the measures themselves.
``make_embedding_scorer`` makes a scorer from a custom measure of embeddings,
``make_view_scorer`` from one of two views.
"""

from typing import TYPE_CHECKING, Any

from ._embeddings import alignment, effective_rank, uniformity
from ._estimated import EstimatedAccuracy, GroupAgreement
from ._neighbors import knn_accuracy, map_at_r, neighbor_agreement, recall_at_k
from ._paired import PairedComparison, compare_paired
from ._probes import few_label_accuracy, linear_probe
from ._scorers import make_embedding_scorer, make_view_scorer

if TYPE_CHECKING:
    from .._baselines import BaselineComparison, compare_with_baselines

__all__ = [
    "BaselineComparison",
    "EstimatedAccuracy",
    "GroupAgreement",
    "PairedComparison",
    "alignment",
    "compare_paired",
    "compare_with_baselines",
    "effective_rank",
    "few_label_accuracy",
    "knn_accuracy",
    "linear_probe",
    "make_embedding_scorer",
    "make_view_scorer",
    "map_at_r",
    "neighbor_agreement",
    "recall_at_k",
    "uniformity",
]


def __getattr__(name: str) -> Any:
    if name in ("BaselineComparison", "compare_with_baselines"):  # which import the embedder
        from .. import _baselines

        return getattr(_baselines, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
