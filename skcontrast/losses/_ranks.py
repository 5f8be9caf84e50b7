"""Weights by rank: a weight for each candidate, by the place of its score in its row."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

# Bits of a sorted integer that hold a score, if the columns leave enough: more than float32 has
# digits, and fewer than float64 has, so that equal samples tie in spite of rounding.
_SCORE_BITS = 46


class Ranking:
    """The order of the candidates of each anchor, in which several weights can be placed.

    Parameters
    ----------
    scores : Tensor of shape (n, m)
        Scores; those of excluded candidates may be anything.
    excluded : Tensor of shape (n, n_excluded), dtype int64
        Columns that have no rank; they get the weight 0.
    """

    def __init__(self, scores: Tensor, excluded: Tensor):
        keys, bits = _sorted_keys(scores, excluded)
        self._like, self._n_excluded = scores, excluded.shape[1]  # those come first
        separate = 2 ** (bits + 1)
        gaps = F.pad(keys[:, 1:] - keys[:, :-1], (1, 0))
        gaps[:, : self._n_excluded + 1] = separate
        # Rows without ties are left alone on a CPU; on a GPU, to ask for them would mean to wait.
        all_rows, has_ties = (
            torch.arange(len(scores), device=scores.device),
            gaps.amin(1) < separate,
        )
        self._tied = all_rows if scores.is_cuda else all_rows[has_ties]
        self._is_new = gaps[self._tied] >= separate
        self._order = keys.bitwise_and_(2**bits - 1)

    def place(self, weights: Tensor) -> Tensor:
        """Return weights at ranks 1 (the farthest) to N, shape (N,), as those of the candidates.

        They have the shape and the dtype of the scores; tied candidates share the mean of theirs.
        """
        by_place = F.pad(weights.double(), (self._n_excluded, 0))
        placed = by_place.to(self._like.dtype).expand_as(self._like)
        if len(self._tied):
            placed = placed.clone()
            placed[self._tied] = _means_of_runs(by_place, self._is_new).to(placed.dtype)
        return torch.empty_like(self._like).scatter_(1, self._order, placed)


def _sorted_keys(scores: Tensor, excluded: Tensor) -> tuple[Tensor, int]:
    """Return sorted integers with a score in the upper bits and its column in the lower ones."""
    columns = torch.arange(scores.shape[1], device=scores.device)
    bits = (len(columns) - 1).bit_length()
    high = scores.scatter(1, excluded, -torch.inf).amax(1, keepdim=True)
    scores = scores.scatter(1, excluded, high.expand_as(excluded))
    low, high = scores.amin(1, keepdim=True).double(), high.double()
    top = 2.0 ** min(_SCORE_BITS, 62 - bits)
    scale = top / (high - low).clamp_min(torch.finfo(high.dtype).tiny * top)
    levels = scores.double().sub_(low).mul_(scale).to(torch.int64)
    keys = torch.add(columns, levels, alpha=2**bits)
    keys.scatter_(1, excluded, excluded - 2**bits)  # below all others
    if scores.device.type == "cpu":
        keys.numpy().sort(1)  # several times as fast as torch's
        return keys, bits
    return keys.sort(1).values, bits


def _means_of_runs(by_place: Tensor, is_new: Tensor) -> Tensor:
    """Return the mean weight of the run that each place is in; a run begins where `is_new`."""
    n = len(by_place)
    place = torch.arange(n, device=by_place.device)
    start = torch.where(is_new, place, 0).cummax(1).values
    last = F.pad(is_new[:, 1:], (0, 1), value=True)
    stop = torch.where(last, place + 1, n).flip(1).cummin(1).values.flip(1)
    total = F.pad(by_place.cumsum(0), (1, 0))
    return (total[stop] - total[start]) / (stop - start)
