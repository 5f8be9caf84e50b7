"""Weights by rank: from a function of the rank to a weight for each candidate of each anchor.

The rank of a candidate is the number of candidates that score at most as high as it does. The
function of the rank is evaluated once for each of the N ranks, and each candidate looks its weight
up in that table. Finding the ranks takes most of the time. There are four ways:

- counting scores in bins (`_by_bin`), for many candidates on a CPU: fastest, not exact;
- one sort of keys that hold score and column (`_by_packed_sort`), for float32 on a CPU;
- a sort, and a binary search for each score, elsewhere;
- where equal scores do not share a rank (`_by_position`), two thresholds if the weights are 1 in a
  window of ranks and 0 outside (`_window`), else a sort. The thresholds are found among the few
  scores of their bins, or by partition.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from torch import Tensor

from .._checks import belongs_to_package
from ..losses._checks import check_result
from ._buffers import Arena

if TYPE_CHECKING:
    from ..losses import Loss

# From this many columns on, counting scores in bins is faster than sorting them.
_COUNTED_FROM = 1500
_BINS = 512
# Bins are numbered in float32, which has two bits left for their parts up to this number.
_MOST_BINS = 2**22
# A bin that holds a larger share of the candidates says too little about their ranks.
_CROWDED = 0.1
# Scores that spread by less than this, relative to their size, are sorted and not counted.
_NARROW = 1e-2
# float64 has 29 bits more than float32; the number of the column must fit into 20 of them.
_COLUMN_BITS = 20
# Scores of which a thread finds the ranks at a time: what that needs stays in its cache.
_BLOCK_ELEMENTS = 2**19


def weights_by_rank(
    scores: Tensor,
    excluded: Tensor,
    loss: Loss,
    buffers: Arena | None = None,
    tables: dict[int, RankTable] | None = None,
) -> Tensor:
    """Return the weights of all candidates, shape (n_anchors, n).

    Parameters
    ----------
    scores : Tensor of shape (n_anchors, n)
        Finite scores. Those of excluded candidates may be overwritten.
    excluded : Tensor of shape (n_anchors, n_excluded), dtype int64
        Columns that are left out; their weights are meaningless.
    loss : Loss
        Its ``rank_weights`` gives the weights at ranks 1 to N. By its ``shares_ties``, equal
        scores all have the rank of the last of them or are ordered by column.
    buffers : Arena, default=None
        Where the weights, and what is needed to find them, are held; None is fresh memory.
    tables : dict, default=None
        The tables of earlier calls with the same N, by the ids of their losses; filled in.
    """
    buffers = Arena(scores.device) if buffers is None else buffers
    weights = buffers.empty(scores.shape, scores.dtype)
    tables = {} if tables is None else tables
    if id(loss) not in tables:
        tables[id(loss)] = RankTable(loss, scores.shape[1] - excluded.shape[1], scores)
    n_rows = len(scores)
    if scores.device.type == "cpu":
        n_rows = _BLOCK_ELEMENTS * torch.get_num_threads() // max(1, scores.shape[1])
        n_rows = min(n_rows, _MOST_BINS // _BINS)
    write = _by_rank if loss.shares_ties else _by_position
    parts = [array.split(max(1, n_rows)) for array in (scores, excluded, weights)]
    for subset, excluded_of_subset, out in zip(*parts, strict=True):
        with buffers.released():
            write(_Block(subset, excluded_of_subset, tables[id(loss)], buffers), out)
    return weights


class RankTable:
    """The weights that a loss gives to ranks, computed when they are first asked for."""

    def __init__(self, loss: Loss, n_candidates: int, like: Tensor):
        self.loss, self.n_candidates, self._like = loss, n_candidates, like

    @functools.cached_property
    def by_rank(self) -> Tensor:
        """The weights at ranks 1, 2, …, N."""
        return self._rounded(self._exact)

    @functools.cached_property
    def by_half_rank(self) -> Tensor:
        """The weights at ranks 1/2, 1, …, N: between two ranks, the mean of their weights."""
        exact = self._exact
        between = torch.cat([exact[:1], (exact[:-1] + exact[1:]) / 2])
        return self._rounded(torch.stack([between, exact], 1).view(-1))

    @functools.cached_property
    def window(self) -> tuple[int, int] | None:
        """The first, counted from 0, and the number of the ranks with weight 1.

        None if they are not one window of ranks, or other weights than 0 and 1 occur.
        """
        inside = torch.nonzero(self.by_rank).view(-1)
        if not len(inside) or not (self.by_rank[inside] == 1).all():
            return None
        first, last = int(inside[0]), int(inside[-1])
        return (first, len(inside)) if last - first + 1 == len(inside) else None

    @functools.cached_property
    def _exact(self) -> Tensor:
        ranks = torch.arange(
            1, self.n_candidates + 1, dtype=torch.float64, device=self._like.device
        )
        weights = self.loss.rank_weights(ranks, self.n_candidates)
        return check_result(self.loss, "rank_weights", weights, ranks.shape).double()

    def _rounded(self, weights: Tensor) -> Tensor:
        """Return weights in the dtype of the scores."""
        # Subnormal numbers would slow each product down.
        vanishing = weights < weights.max() * torch.finfo(self._like.dtype).tiny
        weights = weights.masked_fill(vanishing, 0.0).to(self._like.dtype)
        is_ours = belongs_to_package(type(self.loss).rank_weights)
        if is_ours or self.loss.overrides("push_and_pull"):
            return weights
        if not 0 < weights.sum() < torch.inf:
            raise ValueError(
                f"{type(self.loss).__name__}.rank_weights must return numbers whose sum is > 0 "
                f"and finite in {weights.dtype}."
            )
        return weights


class _Block(NamedTuple):
    """Anchors whose ranks are found together, with the scores of all candidates."""

    scores: Tensor
    excluded: Tensor
    table: RankTable
    buffers: Arena

    def empty(self, dtype: torch.dtype | None = None) -> Tensor:
        """Return an uninitialised array of the shape of the scores."""
        return self.buffers.empty(self.scores.shape, self.scores.dtype if dtype is None else dtype)

    def lowered(self) -> Tensor:
        """Return the scores with −∞ in the place of those of excluded candidates."""
        return self.scores.scatter(1, self.excluded, -torch.inf)


def _by_rank(block: _Block, out: Tensor) -> None:
    """Write the weight of each candidate at its rank, which equal scores share."""
    table = block.table
    if _are_counted(block.scores):
        fullest = _by_bin(block, _BINS, out)
        if fullest is not None and fullest <= _CROWDED * table.n_candidates:
            return
    if _packs(block.scores):
        _by_packed_sort(block, out)
        return
    ordered = block.lowered().sort(1).values
    ranks = torch.searchsorted(ordered, block.scores.contiguous(), right=True)
    ranks -= block.excluded.shape[1]
    out.copy_(table.by_rank[(ranks - 1).clamp_(0, table.n_candidates - 1)])


def _are_counted(scores: Tensor) -> bool:
    """Return whether scores are counted in bins, if bins help."""
    is_large = scores.device.type == "cpu" and scores.shape[1] >= _COUNTED_FROM
    return is_large and scores.dtype == torch.float32


def _packs(scores: Tensor) -> bool:
    """Return whether a score and its column fit into a float64, and numpy can sort it."""
    is_float32_on_cpu = scores.device.type == "cpu" and scores.dtype == torch.float32
    return is_float32_on_cpu and scores.shape[1] < 2**_COLUMN_BITS


def _by_packed_sort(block: _Block, out: Tensor) -> None:
    """Find ranks by one sort of float64 numbers that hold the column in their spare bits."""
    n, excluded = block.scores.shape[1], block.excluded
    order, ordered = _sorted_columns(block.scores, excluded)
    by_rank = block.table.by_rank
    by_position = torch.cat([by_rank.new_zeros(excluded.shape[1]), by_rank])
    in_order = np.flatnonzero(ordered.numpy().ravel()[1:] == ordered.numpy().ravel()[:-1])
    out.scatter_(1, order, by_position.expand_as(out))
    # A run of equal scores must not continue from the end of one row into the next.
    tied = torch.from_numpy(in_order[in_order % n != n - 1])
    if len(tied):
        ends = torch.ones(len(tied), dtype=torch.bool)
        ends[:-1] = tied[1:] != tied[:-1] + 1
        own_end = torch.searchsorted(torch.nonzero(ends).view(-1), torch.arange(len(tied)))
        last = tied[ends][own_end] + 1
        out[tied // n, order.view(-1)[tied]] = by_position[last % n]


def _sorted_columns(scores: Tensor, excluded: Tensor) -> tuple[Tensor, Tensor]:
    """Return the columns by score, and the sorted scores."""
    lowest = -(2.0**100) * torch.arange(1, excluded.shape[1] + 1, dtype=torch.float64)
    keys = scores.double().scatter_(1, excluded, lowest.expand_as(excluded))
    bits = keys.view(torch.int64).bitwise_or_(torch.arange(scores.shape[1]))
    keys.numpy().sort(axis=1)
    ordered = keys.float()  # the cast drops the bits that hold the columns
    return bits.bitwise_and_(2**_COLUMN_BITS - 1), ordered


def _by_position(block: _Block, out: Tensor) -> None:
    """Write the weight of each candidate by its place in the order, which no two share."""
    window = block.table.window if block.scores.device.type == "cpu" else None
    rows: slice | Tensor = slice(None)
    if window is not None:
        rows = _in_window(block, *window, out)
        if not rows.any():
            return
    order = block.lowered()[rows].sort(dim=1, stable=True).indices
    by_rank = block.table.by_rank
    by_position = torch.cat([by_rank.new_zeros(block.excluded.shape[1]), by_rank])
    out[rows] = torch.empty_like(out[rows]).scatter_(1, order, by_position.expand(order.shape))


def _in_window(block: _Block, first: int, length: int, out: Tensor) -> Tensor:
    """Write 1 for scores in a window of ranks and 0 for all others.

    Two thresholds on the scores are enough for that, and no sort is needed. Returns the anchors,
    shape (n_anchors,), dtype bool, for which they are not, as scores tie at one.
    """
    n = block.table.n_candidates
    places = [first] if first + length == n else [first, first + length]
    thresholds = _at_places_by_bin(block, places) or _at_places(block, places)
    tied = torch.zeros(len(out), dtype=torch.bool)
    for place, threshold, above in zip(places, thresholds, (out, block.empty()), strict=False):
        torch.ge(block.scores, threshold[:, None], out=above).scatter_(1, block.excluded, 0.0)
        tied |= above.sum(1) != n - place
    if len(places) == 2:
        out -= above
    return tied


def _at_places(block: _Block, places: list[int]) -> list[Tensor]:
    """Return the scores at the given places, counted from the lowest, of each anchor."""
    ordered, n_excluded, done = block.lowered().numpy(), block.excluded.shape[1], 0
    found = []
    for place in places:
        ordered[:, done:].partition(place + n_excluded - done, axis=1)
        done = place + n_excluded
        found.append(torch.from_numpy(ordered[:, done].copy()))
    return found


def _at_places_by_bin(block: _Block, places: list[int]) -> list[Tensor] | None:
    """Return the same as `_at_places`, or None where bins do not help to find them."""
    binned = _binned(block, _BINS) if _are_counted(block.scores) else None
    if binned is None or binned.counts.max() > _CROWDED * block.scores.shape[1]:
        return None
    bins, counts = binned
    n_rows, n_bins = counts.shape
    upto = torch.cumsum(counts, 1, out=block.buffers.empty(counts.shape, torch.int64))
    found = []
    for place in places:
        own = torch.searchsorted(upto, upto.new_full((n_rows, 1), place), right=True)
        among = place - upto.gather(1, own) + counts.gather(1, own)
        own += torch.arange(0, n_rows * n_bins, n_bins)[:, None]
        members = block.empty(torch.bool)
        # numpy compares integers three times as fast.
        np.equal(bins.numpy(), own.numpy().astype(np.int32), out=members.numpy())
        found.append(_lowest(block.scores, members.scatter_(1, block.excluded, False), among))
    return found


def _lowest(scores: Tensor, members: Tensor, n: Tensor) -> Tensor:
    """Return the n-th lowest (from 0) of the member scores of each row; n has shape (rows, 1)."""
    where = np.flatnonzero(members.numpy())
    rows = where // scores.shape[1]
    sizes = np.bincount(rows, minlength=len(scores))
    columns = np.arange(len(rows)) - np.repeat(sizes.cumsum() - sizes, sizes)
    few = np.full((len(scores), sizes.max()), np.inf, dtype=np.float32)
    few[rows, columns] = scores.numpy().reshape(-1)[where]
    few.sort(axis=1)
    return torch.from_numpy(few).gather(1, n).view(-1)


class _Binned(NamedTuple):
    """Scores counted in bins of equal width, from the lowest to the highest of all.

    Attributes
    ----------
    bins : Tensor of shape (n_anchors, n), dtype int32
        The bin of each score; each anchor has its own.
    counts : Tensor of shape (n_anchors, n_bins), dtype int64
        Number of candidates in each, without excluded ones, whose scores are in the first.
    """

    bins: Tensor
    counts: Tensor


def _binned(block: _Block, n_bins: int) -> _Binned | None:
    """Count scores in bins; None where they are too close to each other to be separated."""
    scores, excluded = block.scores, block.excluded
    low = float(scores.scatter_(1, excluded, torch.inf).amin())
    high = float(scores.scatter_(1, excluded, low).amax())
    if not high - low > _NARROW * max(abs(low), abs(high)):
        return None  # bins as narrow as rounding, or NaN
    step = (n_bins - 1) / (high - low)
    # The whole part of a place is the bin; with half a bin to spare, rounding leaves no row.
    starts = torch.arange(len(scores), dtype=torch.float64).mul_(n_bins).add_(0.5 - low * step)
    places = torch.add(starts[:, None].float(), scores, alpha=step, out=block.empty())
    bins = block.empty(torch.int32).copy_(places)
    counts = torch.bincount(bins.view(-1), minlength=len(scores) * n_bins)
    counts = counts.view(len(scores), n_bins)
    counts[:, 0] -= excluded.shape[1]
    return _Binned(bins, counts)


def _by_bin(block: _Block, n_bins: int, out: Tensor) -> int | None:
    """Write the weight of each candidate at the mean rank of its bin.

    The empirical cdf is off by at most the share of the candidates in one bin.

    Returns
    -------
    fullest : int or None
        Number of candidates in the fullest bin. None, and nothing is written, where scores are too
        close to each other for bins to separate them.
    """
    binned = _binned(block, n_bins)
    if binned is None:
        return None
    bins, counts = binned
    by_half_rank = block.table.by_half_rank
    # The members of a bin have ranks from the count below it, plus one, to the count with it.
    twice_mean = torch.cumsum(counts, 1, out=block.buffers.empty(counts.shape, torch.int64))
    twice_mean.mul_(2).sub_(counts).clamp_(0, len(by_half_rank) - 1)
    weights = block.buffers.empty((counts.numel(),), out.dtype)
    torch.index_select(by_half_rank, 0, twice_mean.view(-1), out=weights)
    torch.index_select(weights, 0, bins.view(-1), out=out.view(-1))
    return int(counts.max())
