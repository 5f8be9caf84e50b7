"""Anchors, positives and candidate negatives of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from torch import Tensor

from .._data._batches import Metadata
from ..similarity import Similarity


@dataclass(frozen=True, kw_only=True, eq=False)
class Contrast:
    """Anchors, positives and candidate negatives of a batch.

    Attributes
    ----------
    anchors : Tensor of shape (n_anchors, k)
        Vectors as ``similarity.embed`` returns them.
    candidates : Tensor of shape (n_candidates, k)
        The same for the candidate negatives.
    positives : Tensor of shape (n_anchors, n_positives) or (n_anchors,)
        Scores of each anchor's positives; or, as int64, their indices among the candidates, all of
        which must then be excluded.
    excluded : Tensor of shape (n_anchors, n_excluded) or (n_anchors,), dtype int64
        For each anchor, the different candidates that are not its negatives: itself, other views
        of its sample. At least one candidate must be left.
    weights : Tensor of shape (n_anchors,) or None
        Factors ≥ 0 on the losses of the anchors, without gradient.
    anchor_labels, candidate_labels : Tensor of shape (n_anchors,) and (n_candidates,) or None
        Classes, integers; negative where unknown.
    anchor_groups, candidate_groups : Tensor of shape (n_anchors,) and (n_candidates,) or None
        Groups of samples that are known to belong together, integers; negative where there is
        none.
    correcting : Tensor of shape (n_anchors, M) or (n_anchors,), or None
        Scores of samples of the anchor's class that correct the estimate of a loss such as DCL, in
        place of the positives. They attract nothing.
    pair_weights : Tensor of shape (n_anchors, n_candidates) or None
        Factors ≥ 0 on the contribution of each candidate to the loss of each anchor, without
        gradient; 0 leaves a candidate out, such as a known false negative. Like weights by rank,
        they change the estimate, not its N.

    See Also
    --------
    Framework : Returns a contrast for each batch.
    in_batch : The contrast of views within their batch.
    """

    anchors: Tensor
    candidates: Tensor
    positives: Tensor
    excluded: Tensor
    weights: Tensor | None = None
    anchor_labels: Tensor | None = None
    candidate_labels: Tensor | None = None
    anchor_groups: Tensor | None = None
    candidate_groups: Tensor | None = None
    correcting: Tensor | None = None
    pair_weights: Tensor | None = None

    def __post_init__(self) -> None:
        for name in ("positives", "excluded", "correcting"):
            value = getattr(self, name)
            if isinstance(value, Tensor) and value.ndim == 1:  # a single one for each anchor
                object.__setattr__(self, name, value[:, None])

    def same_class(self, rows: slice) -> Tensor:
        """Return where anchor and candidate are known to share a class, dtype bool."""
        if self.anchor_labels is None or self.candidate_labels is None:
            raise ValueError("The contrast has no labels.")
        return _share_value(self.anchor_labels[rows], self.candidate_labels, self.excluded[rows])

    def same_group(self, rows: slice) -> Tensor | None:
        """Return where anchor and candidate are of one group, None without groups."""
        if self.anchor_groups is None or self.candidate_groups is None:
            return None
        return _share_value(self.anchor_groups[rows], self.candidate_groups, self.excluded[rows])

    def scores_of_positives(self, rows: slice, scores: Tensor) -> Tensor:
        """Return the scores of the positives, (n, n_positives), of anchors with these scores."""
        positives = self.positives[rows]
        return positives if positives.is_floating_point() else scores.gather(1, positives)

    def take(self, rows: slice | Tensor) -> Contrast:
        """Return the contrast of a subset of the anchors with all candidates."""
        names = [field.name for field in fields(self) if not field.name.startswith("candidate")]
        tensors = {name: getattr(self, name) for name in names}
        return replace(self, **{k: t[rows] for k, t in tensors.items() if t is not None})


def _share_value(anchors: Tensor, candidates: Tensor, excluded: Tensor) -> Tensor:
    # Unknown values differ from all others. On a CPU, ^ is several times as fast as ==.
    differences = anchors.clamp_min(-1)[:, None] ^ candidates.masked_fill(candidates < 0, -2)
    return differences.bool().logical_not_().scatter_(1, excluded, False)


def in_batch(
    views: Tensor,
    labels: Tensor | None = None,
    weights: Tensor | None = None,
    groups: Tensor | None = None,
) -> Contrast:
    """Contrast every view of a batch with all views of the other samples.

    Parameters
    ----------
    views : Tensor of shape (n_views, n, k)
        Embedded views; ``views[v, i]`` is view v of sample i.
    labels : Tensor of shape (n,), dtype int64, default=None
        Classes of the samples; negative where unknown.
    weights : Tensor of shape (n_views, n), default=None
        Factors on the losses of the views as anchors.
    groups : Tensor of shape (n,), dtype int64, default=None
        Groups of the samples; negative where there is none.

    Returns
    -------
    contrast : Contrast
        With n_views · n anchors, n_views − 1 positives each, N = n_views · (n − 1).
    """
    n = views.shape[1]
    flat = views.flatten(0, 1)
    # Row i + v·n is view v of sample i; indices are modulo the number of rows.
    rows, steps = (torch.arange(0, len(flat), step, device=views.device) for step in (1, n))
    same_sample = (rows[:, None] + steps) % len(flat)
    weights = None if weights is None else weights.flatten()
    metadata = Metadata(labels, groups).take(rows % n)._replace(weights=weights)
    return Contrast(
        anchors=flat,
        candidates=flat,
        positives=same_sample[:, 1:],
        excluded=same_sample,
        **metadata.of_anchors(metadata),
    )


def pairs_with(u: Tensor, others: Iterable[Tensor], similarity: Similarity) -> Tensor:
    """Return the scores (n, n_others) of vectors (n, k) with the same rows of other tensors."""
    return torch.stack([similarity.pairs(u, other) for other in others], 1)


def embed_views(views: Sequence[Any], similarity: Similarity) -> Tensor:
    """Apply a similarity's ``embed`` to views, tensors or tuples; shape (n_views, n, k)."""
    if isinstance(views[0], tuple):
        return torch.stack([similarity.embed(view) for view in views])
    return similarity.embed(torch.stack(list(views)))
