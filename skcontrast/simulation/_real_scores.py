"""Scores of embeddings whose classes are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .._arguments import numbers
from .._data._metadata import validate_labels
from .._objective._functional import contrast_of
from .._objective._rows import tiles
from ..similarity import Similarity


def scores_of_views(
    views: Sequence[Any],
    y: Sequence | np.ndarray,
    similarity: Similarity | None,
    positives: str,
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float, float]:
    """Return scores, which of them are of true negatives, positives and their bounds."""
    if len(views) < 2:
        raise ValueError(f"ScoreSample.from_views needs at least two views, got {len(views)}.")
    labels = validate_labels(y, None, needed_by="ScoreSample.from_views")
    views, labels = [_known(view, labels) for view in views], labels[labels >= 0]
    if len(labels) < 2:
        raise ValueError(f"y must hold the classes of at least two samples, got {len(labels)}.")
    contrast, similarity = contrast_of(views, similarity, torch.from_numpy(labels))
    with torch.no_grad():
        scores = torch.cat([part.clone() for _, part in tiles(contrast, similarity)])
    if positives == "classmates":
        contrast = replace(contrast, positives=_of_classmates(scores, labels, len(views)))
    is_candidate = torch.ones_like(scores, dtype=torch.bool)
    is_candidate.scatter_(1, contrast.excluded, False)
    is_negative = ~contrast.same_class(slice(None))
    return (
        _kept(scores, is_candidate),
        _kept(is_negative, is_candidate),
        contrast.positives.numpy(),
        *similarity.bounds(contrast.anchors.shape[1]),
    )


def _known(view: Any, labels: np.ndarray) -> Any:
    """Return the rows of a view whose classes are known."""
    if isinstance(view, tuple):
        return tuple(_known(part, labels) for part in view)
    view = numbers(view, "views", ensure_2d=False, allow_nd=True)
    if len(view) != len(labels):
        raise ValueError(f"y must have one entry per sample, {len(view)}, got {len(labels)}.")
    return view[labels >= 0]


def _kept(values: Tensor, is_candidate: Tensor) -> np.ndarray:
    """Return the values of the candidates of each anchor, shape (n_anchors, N)."""
    return values[is_candidate].view(len(values), -1).numpy()


def _of_classmates(scores: Tensor, labels: np.ndarray, n_views: int) -> Tensor:
    """Return the scores of the other views of the next sample of the class."""
    following = np.empty(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        members = np.flatnonzero(labels == label)
        if len(members) == 1:
            raise ValueError(
                "positives='classmates' needs two samples of each class; one class has one."
            )
        following[members] = np.roll(members, -1)
    columns = [
        [w * len(labels) + following for w in range(n_views) if w != v] for v in range(n_views)
    ]
    return scores.gather(1, torch.from_numpy(np.array(columns)).transpose(1, 2).flatten(0, 1))
