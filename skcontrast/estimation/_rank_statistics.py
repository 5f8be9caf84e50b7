"""What scores say of positives and of classes: ranks and areas under the ROC curve."""

from __future__ import annotations

import torch

from .._objective._tiles import same_class, tiles


def count_outscored(contrast, similarity):
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


def class_aucs(contrast, similarity):
    """Return for each anchor how often its own class scores above the others.

    Returns
    -------
    aucs : Tensor of shape (n_anchors,)
        Share, among all pairs of a candidate of the anchor's class and one of another, of those
        in which the first scores higher; a tie counts half. NaN for anchors of unknown class or
        without such pairs.
    """
    aucs = torch.empty_like(contrast.anchors[:, 0])
    known = contrast.candidate_labels >= 0
    for tile, scores in _scores(contrast, similarity):
        same = same_class(contrast, tile)
        other = (contrast.anchor_labels[tile] >= 0)[:, None] & known & ~same
        other.scatter_(1, contrast.excluded[tile], False)
        ordered, order = scores.sort(1)
        counts = other.gather(1, order).cumsum(1)
        counts = torch.cat([counts.new_zeros(len(counts), 1), counts], 1)
        sides = (torch.searchsorted(ordered, scores, right=right) for right in (False, True))
        below = sum(counts.gather(1, side) for side in sides) * same
        aucs[tile] = below.sum(1) / (2 * same.sum(1) * other.sum(1))
    return aucs


@torch.no_grad()
def _scores(contrast, similarity):
    """Yield slices of the anchors and their scores, excluded ones at −inf."""
    for tile, pairwise in tiles(contrast, similarity, False):
        yield tile, pairwise.values.scatter_(1, contrast.excluded[tile], -torch.inf)
