"""Weights by rank: a weight for each candidate, by the place of its score in its row."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

# Scores closer than this share of the largest one tie: equal samples do in spite of rounding.
_ROUNDING = 2.0**-44
_LEAST = 1e-280
# Numbers that a CPU keeps in its cache.
_IN_CACHE = 2**15


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
        # The columns in the last bits change a score by less than this share of it.
        share = 2.0 ** (bits - 51)
        largest = torch.maximum(keys[:, 0].abs(), keys[:, -1].abs()).clamp_min(_LEAST)
        tied = torch.arange(len(scores), device=scores.device)
        # Rows without ties are left alone on a CPU; on a GPU, to ask for them would mean to wait.
        if scores.device.type == "cpu" and keys.shape[1] > 1:
            parts = keys.split(max(1, _IN_CACHE // keys.shape[1]))
            least = torch.cat([(part[:, 1:] - part[:, :-1]).amin(1) for part in parts])
            tied = tied[least < largest * (_ROUNDING + share)]
        chosen, rounding = keys[tied], largest[tied, None] * _ROUNDING
        gaps = (chosen[:, 1:] - chosen[:, :-1]).sub_(chosen[:, 1:].abs(), alpha=share)
        self._is_new = F.pad(gaps >= rounding, (1, 0), value=True)
        self._like, self._tied = scores, tied
        self._order = keys.view(torch.int64).bitwise_and_(2**bits - 1)

    def place(self, weights: Tensor) -> Tensor:
        """Return weights at ranks 1 (the farthest) to N, shape (N,), as those of the candidates.

        They have the shape and the dtype of the scores; tied candidates share the mean of theirs.
        """
        like, tied, order = self._like, self._tied, self._order
        placed, weights = torch.zeros_like(like), weights.double()
        if len(tied) < len(like):
            placed.scatter_(1, order, weights.to(like.dtype).expand_as(order))
        if len(tied):
            means = _means_of_runs(weights, self._is_new).to(like.dtype)
            placed[tied] = placed[tied].scatter_(1, order[tied], means)
        return placed


def _sorted_keys(scores: Tensor, excluded: Tensor) -> tuple[Tensor, int]:
    """Return the sorted scores of the candidates, float64, with their columns in the last bits."""
    bits = (scores.shape[1] - 1).bit_length()
    keys = scores.to(torch.float64, copy=True)
    if scores.dtype == torch.float64:  # of others, the last bits are 0
        keys.view(torch.int64).bitwise_and_(-(2**bits))
    keys.view(torch.int64).bitwise_or_(torch.arange(scores.shape[1], device=scores.device))
    keys.scatter_(1, excluded, -torch.inf)  # below all others
    if scores.device.type == "cpu":
        keys.numpy().sort(1)  # several times as fast as torch's
    else:
        keys = keys.sort(1).values
    return keys[:, excluded.shape[1] :], bits


def _means_of_runs(by_place: Tensor, is_new: Tensor) -> Tensor:
    """Return the mean weight of the run that each place is in; a run begins where `is_new`."""
    run = is_new.cumsum(1) - 1
    parts = (part.expand(run.shape) for part in (by_place, torch.ones_like(by_place)))
    total, number = (by_place.new_zeros(run.shape).scatter_add_(1, run, part) for part in parts)
    return (total / number).gather(1, run)
