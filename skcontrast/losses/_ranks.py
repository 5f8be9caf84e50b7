"""Weights by rank: each candidate gets a weight by the rank of its score in its row."""

import torch
import torch.nn.functional as F
from torch import Tensor

# Scores closer than this share of the largest one are ties, in spite of rounding.
_ROUNDING = 2.0**-44
_TINY = 1e-280
# Numbers that fit in the cache of a CPU.
_IN_CACHE = 2**15


class Ranking:
    """The order of the candidates of each anchor, by which weights can be assigned repeatedly.

    Parameters
    ----------
    scores : Tensor of shape (n, m)
        Scores; those of excluded candidates are ignored.
    excluded : Tensor of shape (n, n_excluded), dtype int64
        Columns that have no rank; they get the weight 0.
    """

    def __init__(self, scores: Tensor, excluded: Tensor):
        keys, bits = _sorted_keys(scores, excluded)
        # The columns in the last bits change a score by less than this share of it.
        share = 2.0 ** (bits - 51)
        largest = torch.maximum(keys[:, 0].abs(), keys[:, -1].abs()).clamp_min(_TINY)
        tied = torch.arange(len(scores), device=scores.device)
        # On a CPU, rows without ties are skipped; on a GPU, finding them would wait for the GPU.
        if scores.device.type == "cpu" and keys.shape[1] > 1:
            blocks = keys.split(max(1, _IN_CACHE // keys.shape[1]))
            least = torch.cat([(block[:, 1:] - block[:, :-1]).amin(1) for block in blocks])
            tied = tied[least < largest * (_ROUNDING + share)]
        tied_keys, rounding = keys[tied], largest[tied, None] * _ROUNDING
        gaps = (tied_keys[:, 1:] - tied_keys[:, :-1]).sub_(tied_keys[:, 1:].abs(), alpha=share)
        self._is_new = F.pad(gaps >= rounding, (1, 0), value=True)
        self._like, self._tied = scores, tied
        self._order = keys.view(torch.int64).bitwise_and_(2**bits - 1)

    def assign(self, weights: Tensor) -> Tensor:
        """Assign weights at ranks 1 (the farthest) to N, shape (N,), to the candidates.

        The result has the shape and the dtype of the scores. Tied candidates share the mean of
        their weights.
        """
        scores, tied, order = self._like, self._tied, self._order
        result, weights = torch.zeros_like(scores), weights.double()
        if len(tied) < len(scores):
            result.scatter_(1, order, weights.to(scores.dtype).expand_as(order))
        if len(tied):
            means = _means_of_runs(weights, self._is_new).to(scores.dtype)
            result[tied] = result[tied].scatter_(1, order[tied], means)
        return result


def _sorted_keys(scores: Tensor, excluded: Tensor) -> tuple[Tensor, int]:
    """Return the sorted scores of the candidates, float64, with their columns in the last bits."""
    bits = (scores.shape[1] - 1).bit_length()
    keys = scores.to(torch.float64, copy=True)
    if scores.dtype == torch.float64:  # in other dtypes, the last bits are 0
        keys.view(torch.int64).bitwise_and_(-(2**bits))
    keys.view(torch.int64).bitwise_or_(torch.arange(scores.shape[1], device=scores.device))
    keys.scatter_(1, excluded, -torch.inf)  # below all others
    if scores.device.type == "cpu":
        keys.numpy().sort(1)  # several times as fast as torch's
    else:
        keys = keys.sort(1).values
    return keys[:, excluded.shape[1] :], bits


def _means_of_runs(weights: Tensor, is_new: Tensor) -> Tensor:
    """Return, for each rank, the mean weight of its run; runs begin where `is_new`."""
    run = is_new.cumsum(1) - 1
    tensors = (tensor.expand(run.shape) for tensor in (weights, torch.ones_like(weights)))
    zeros = weights.new_zeros(run.shape)
    total, number = (zeros.scatter_add(1, run, tensor) for tensor in tensors)
    return (total / number).gather(1, run)
