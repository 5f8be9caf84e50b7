"""Estimated numbers, and statistics of scores: ranks of positives, AUCs of classes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._checks import check_component, numbers
from .._objective._contrast import Contrast, embed_views, in_batch
from .._objective._mean_loss import scores_by_tile
from ..schedules._numbers import check_numbers
from ..similarity import Cosine, Similarity
from ..similarity._base import check_views, mapped


class Estimate(NamedTuple):
    """A number estimated from the data.

    Attributes
    ----------
    value : float
        The estimate.
    standard_error : float
        Its standard error as if the observations were independent; infinite where the data do not
        determine it, NaN where that of what it is computed from is not known.
    """

    value: float
    standard_error: float


def count_outscored(contrast: Contrast, similarity: Similarity) -> Tensor:
    """Return how many candidates score at most as high as each positive.

    Returns
    -------
    counts : Tensor of shape (n_anchors, n_positives), dtype int64
        From 0 to N.
    """
    counts = torch.empty_like(contrast.positives, dtype=torch.int64)
    for tile, scores in _scores(contrast, similarity):
        for m, positive in enumerate(contrast.positives[tile].unbind(1)):
            counts[tile, m] = (scores <= positive[:, None]).sum(1)
    return counts.sub_(contrast.excluded.shape[1])


def class_aucs(contrast: Contrast, similarity: Similarity) -> Tensor:
    """Return for each anchor how often its own class scores above the others.

    The contrast must have labels.

    Returns
    -------
    aucs : Tensor of shape (n_anchors,)
        Over all pairs of a candidate of the anchor's class and a candidate of a different class,
        the share in which the first scores higher; a tie counts half. NaN for anchors of unknown
        class or without such pairs.
    """
    aucs = torch.empty_like(contrast.anchors[:, 0])
    for tile, scores in _scores(contrast, similarity):
        same = contrast.same_class(tile)
        other = _are_known(contrast, tile) & ~same
        ordered, order = scores.sort(1)
        counts = other.gather(1, order).cumsum(1)
        counts = torch.cat([counts.new_zeros(len(counts), 1), counts], 1)
        sides = (torch.searchsorted(ordered, scores, right=right) for right in (False, True))
        below = sum(counts.gather(1, side) for side in sides) * same
        aucs[tile] = below.sum(1) / (2 * same.sum(1) * other.sum(1))
    return aucs


def _are_known(contrast: Contrast, rows: slice) -> Tensor:
    """Return where the classes of anchor and candidate are known, except excluded candidates."""
    if contrast.anchor_labels is None or contrast.candidate_labels is None:
        raise ValueError("The contrast has no labels.")
    known = (contrast.anchor_labels[rows, None] >= 0) & (contrast.candidate_labels >= 0)
    return known.scatter_(1, contrast.excluded[rows], False)


@torch.no_grad()
def _scores(contrast: Contrast, similarity: Similarity) -> Iterator[tuple[slice, Tensor]]:
    """Yield slices of the anchors and their scores; those of excluded candidates are −inf."""
    for tile, scores in scores_by_tile(contrast, similarity):
        yield tile, scores.scatter_(1, contrast.excluded[tile], -torch.inf)


def contrast_of(
    views: Sequence[Any], similarity: Similarity | None, labels: Tensor | None, least: int
) -> tuple[Contrast, Similarity]:
    """Return the contrast of views within their batch, and the similarity.

    Parameters
    ----------
    views : tuple
        Arrays or tensors (n, d), or tuples of mean directions and concentrations.
    similarity : Similarity or None
        None is ``Cosine()``.
    labels : Tensor of shape (n,), dtype int64, or None
        Classes of the samples.
    least : int
        The fewest views.
    """
    similarity = check_component(
        similarity, Similarity, owner="estimation", parameter="similarity", default=Cosine
    )
    check_numbers(similarity)
    views = [mapped(_in_double, view) for view in views]
    check_views(views, None, similarity, least)
    n = len(views[0][0] if isinstance(views[0], tuple) else views[0])
    if labels is not None and len(labels) != n:
        raise ValueError(f"y must have one entry per sample, {n}, got {len(labels)}.")
    return in_batch(embed_views(views, similarity), similarity, labels), similarity


def _in_double(view: Any) -> Tensor:
    return torch.as_tensor(
        numbers(view, "views", dtype=np.float64, ensure_2d=False, allow_nd=True)
    )
