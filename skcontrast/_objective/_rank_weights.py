"""Weights by rank: from a function of the rank to a weight for each candidate of each anchor.

The rank of a candidate is the number of candidates that score at most as high as it does. The
function of the rank is evaluated once for each of the N ranks, and each candidate looks its weight
up in that table. Finding the ranks takes most of the time. There are four ways:

- counting scores in bins (`_by_bin`), for many candidates on a CPU: fastest, not exact;
- one sort of keys that hold score and column (`_by_packed_sort`), for float32 on a CPU;
- a sort, and a binary search for each score, elsewhere;
- where equal scores do not share a rank (`_by_position`), two thresholds if the weights are 1 in a
  window of ranks and 0 outside (`_window`), else a sort.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from ..losses import Loss

# From this many columns on, counting scores in bins is faster than sorting them.
_COUNTED_FROM = 1500
_BINS = 512
# A bin that holds a larger share of the candidates says too little about their ranks.
_CROWDED = 0.1
# Scores that spread by less than this, relative to their size, are sorted and not counted.
_NARROW = 1e-4
# float64 has 29 bits more than float32; the number of the column must fit into 20 of them.
_COLUMN_BITS = 20


def weights_by_rank(scores: Tensor, excluded: Tensor, loss: Loss) -> Tensor:
    """Return the weights of all candidates, shape (n_anchors, n).

    Parameters
    ----------
    scores : Tensor of shape (n_anchors, n)
        Finite scores. Those of excluded candidates may be overwritten.
    excluded : Tensor of shape (n_anchors, n_excluded), dtype int64
        Columns that are left out; their weights are meaningless.
    loss : Loss
        Its ``rank_weights`` gives the weights at ranks 1 to N. Its ``shares_ties`` says whether
        equal scores all have the rank of the last of them or are ordered by column, and its
        ``cdf_bins`` whether ranks are exact (None), counted in bins, or either ("auto").
    """
    n_candidates = scores.shape[1] - excluded.shape[1]
    if not loss.shares_ties:
        return _by_position(scores, excluded, _table(loss, 1.0, n_candidates, scores))
    n_bins = _number_of_bins(loss.cdf_bins, scores)
    if n_bins is not None:
        by_half_rank = _table(loss, 0.5, n_candidates, scores)
        weights, fullest = _by_bin(scores, excluded, by_half_rank, n_bins)
        if weights is not None and (loss.cdf_bins != "auto" or fullest <= _CROWDED * n_candidates):
            return weights
    by_rank = _table(loss, 1.0, n_candidates, scores)
    if _packs(scores):
        return _by_packed_sort(scores, excluded, by_rank)
    ordered = scores.scatter(1, excluded, -torch.inf).sort(1).values
    ranks = torch.searchsorted(ordered, scores.contiguous(), right=True) - excluded.shape[1]
    return by_rank[(ranks - 1).clamp_(0, n_candidates - 1)]


def _table(loss: Loss, step: float, n_candidates: int, like: Tensor) -> Tensor:
    """Return the weights at ranks step, 2·step, …, N, computed in float64."""
    ranks = torch.arange(1, int(n_candidates / step) + 1, dtype=torch.float64, device=like.device)
    weights = loss.rank_weights(ranks * step, n_candidates)
    # Subnormal numbers would slow each product down.
    vanishing = weights < weights.max() * torch.finfo(like.dtype).tiny
    return weights.masked_fill(vanishing, 0.0).to(like.dtype)


def _number_of_bins(cdf_bins: int | Literal["auto"] | None, scores: Tensor) -> int | None:
    if cdf_bins != "auto":
        return cdf_bins
    is_large = scores.device.type == "cpu" and scores.shape[1] >= _COUNTED_FROM
    return _BINS if is_large and scores.dtype == torch.float32 else None


def _packs(scores: Tensor) -> bool:
    """Return whether a score and its column fit into a float64, and numpy can sort it."""
    is_float32_on_cpu = scores.device.type == "cpu" and scores.dtype == torch.float32
    return is_float32_on_cpu and scores.shape[1] < 2**_COLUMN_BITS


def _by_packed_sort(scores: Tensor, excluded: Tensor, by_rank: Tensor) -> Tensor:
    """Find ranks by one sort of float64 numbers that hold the column in their spare bits."""
    n = scores.shape[1]
    weights, order, ordered = _sorted_columns(scores, excluded)
    by_position = torch.cat([by_rank.new_zeros(excluded.shape[1]), by_rank])
    tied = np.flatnonzero(ordered.numpy().ravel()[1:] == ordered.numpy().ravel()[:-1])
    weights.scatter_(1, order, by_position.expand_as(scores))
    # A run of equal scores must not continue from the end of one row into the next.
    tied = torch.from_numpy(tied[tied % n != n - 1])
    if len(tied):
        ends = torch.ones(len(tied), dtype=torch.bool)
        ends[:-1] = tied[1:] != tied[:-1] + 1
        own_end = torch.searchsorted(torch.nonzero(ends).view(-1), torch.arange(len(tied)))
        last = tied[ends][own_end] + 1
        weights[tied // n, order.view(-1)[tied]] = by_position[last % n]
    return weights


def _sorted_columns(scores: Tensor, excluded: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Return an empty tensor for the weights, the columns by score, and the sorted scores."""
    lowest = -(2.0**100) * torch.arange(1, excluded.shape[1] + 1, dtype=torch.float64)
    keys = scores.double().scatter_(1, excluded, lowest.expand_as(excluded))
    bits = keys.view(torch.int64).bitwise_or_(torch.arange(scores.shape[1]))
    keys.numpy().sort(axis=1)
    ordered = keys.float()  # the cast drops the bits that hold the columns
    return torch.empty_like(scores), bits.bitwise_and_(2**_COLUMN_BITS - 1), ordered


def _by_position(scores: Tensor, excluded: Tensor, by_rank: Tensor) -> Tensor:
    """Give each candidate the weight of its place in the order; no two candidates share one."""
    kept = scores.scatter(1, excluded, -torch.inf)
    if scores.device.type == "cpu":
        weights = _window(kept, by_rank, excluded.shape[1])
        if weights is not None:
            return weights
    order = kept.sort(dim=1, stable=True).indices
    by_position = torch.cat([by_rank.new_zeros(excluded.shape[1]), by_rank])
    return torch.empty_like(scores).scatter_(1, order, by_position.expand_as(scores))


def _window(kept: Tensor, by_rank: Tensor, n_excluded: int) -> Tensor | None:
    """Return weights by position where they are 1 in a window of ranks and 0 outside of it.

    Two thresholds on the scores are enough then, and no sort is needed. Returns None if the
    weights are different, or if scores tie at a threshold.
    """
    places = torch.nonzero(by_rank).view(-1)
    first, length = int(places[0]) + n_excluded, len(places)
    if not (by_rank[places] == 1).all() or int(places[-1]) - int(places[0]) + 1 != length:
        return None
    ordered = kept.numpy().copy()
    ordered.partition(first, axis=1)
    lowest = torch.from_numpy(ordered[:, first].copy())
    weights = torch.ge(kept, lowest[:, None], out=torch.empty_like(kept))
    if first + length < kept.shape[1]:
        rest = ordered[:, first + 1 :]
        rest.partition(length - 1, axis=1)
        above = torch.from_numpy(rest[:, length - 1].copy())
        weights -= torch.ge(kept, above[:, None], out=kept.clone())
    return weights if bool((weights.sum(1) == length).all()) else None


def _by_bin(
    scores: Tensor, excluded: Tensor, by_half_rank: Tensor, n_bins: int
) -> tuple[Tensor | None, int]:
    """Give each candidate the weight at the mean rank of its bin.

    The empirical cdf is off by at most the share of the candidates in one bin.

    Returns
    -------
    weights : Tensor of shape (n_anchors, n) or None
        None where scores are too close to each other for bins to separate them.
    fullest : int
        Number of candidates in the fullest bin.
    """
    low = float(scores.scatter_(1, excluded, torch.inf).amin())
    high = float(scores.scatter_(1, excluded, low).amax())
    if not high - low > _NARROW * max(abs(low), abs(high)):
        return None, scores.shape[1]  # bins as narrow as rounding, or NaN
    bins = torch.sub(scores, low).mul_((n_bins - 1) / (high - low)).add_(0.5).int()
    bins += torch.arange(len(scores), dtype=torch.int32, device=scores.device)[:, None] * n_bins
    bins = bins.view(-1)
    counts = torch.bincount(bins, minlength=len(scores) * n_bins).view(len(scores), n_bins)
    counts[:, 0] -= excluded.shape[1]
    # The members of a bin have ranks from the count below it, plus one, to the count with it.
    twice_mean = counts.cumsum(1).mul_(2).sub_(counts).add_(1)
    places = twice_mean.sub_(1).clamp_(0, len(by_half_rank) - 1).view(-1)
    weights = by_half_rank.index_select(0, places).index_select(0, bins).view_as(scores)
    return weights, int(counts.max())
