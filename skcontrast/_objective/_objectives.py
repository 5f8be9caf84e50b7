"""The two objectives: what a loss makes of the scores of a tile.

The contrastive one has φ = exp, and −log(P / (P + N·E)) for each anchor; that of Jensen and
Shannon φ = softplus, and softplus(−s⁺) + E.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from ._base import Expectation, Objective, Sum, or_one
from ._tile import Anchors, Exponentials, Tile, exponentials, log_weights

if TYPE_CHECKING:
    from ..losses import Loss

# e^{score}, also summed over all candidates, stays a normal float32 up to this exponent; beyond,
# the maximum of each row is taken out first.
_LARGEST_EXPONENT = 60.0
# Number of factors between 1 and 2 whose product does not overflow in float32.
_FACTORS = 64


def _is_pairwise(loss: Loss, bounds: tuple[float, float]) -> bool:
    """Return whether no summand needs its rank or the highest score of its row."""
    return not loss.overrides("row_loss") and all(
        one.is_symmetric and not _may_overflow(bounds, one.hardness())
        for one in (loss, *loss.estimators())
    )


def _expectation(tile: Tile, loss: Loss, prior: Tensor | None) -> Expectation:
    r"""Return log mean_j w_j e^{s_j}, the logarithm of a ratio of two sums.

    They are the sums of c_j e^{(1 + β) s_j} and of c_j e^{β s_j}. N takes the place of the
    second where all c are 1 and β is 0, or where the weights are not scaled to mean 1.
    """
    beta, (lowest, _) = loss.hardness(), tile.anchors.bounds
    split = _shifted if _may_overflow(tile.anchors.bounds, beta) else _unshifted
    weighted, weights = split(tile, prior, beta)
    flows = beta > 0 and not loss.detach_weights
    sums = [Sum(weighted.total, weighted.terms, 1 + beta if flows else 1.0)]
    shift: Tensor | float = weighted.top
    if weights is not None and loss.sum_of_weights == "N":
        sums.append(Sum(weights.total, weights.terms if flows else None, beta))
        shift = shift - weights.top
    n = tile.anchors.n_negatives

    def log_mean(sums: Sequence[Tensor]) -> Tensor:
        total, mass = sums if len(sums) == 2 else (sums[0], torch.full_like(sums[0], n))
        # An anchor without any negative has an estimate at the floor, and no gradient from it.
        empty = (total == 0) | (mass == 0)
        total, mass = (part.masked_fill(empty, 1.0) for part in (total, mass))
        return (shift + (total / mass).log()).masked_fill(empty, lowest)

    return Expectation(sums, log_mean)


def _anchor_loss(means: list[Tensor], positives: Tensor, anchors: Anchors, loss: Loss) -> Tensor:
    """Return the loss of each anchor, shape (n,), from log means and positive scores."""
    lowest, highest = anchors.bounds
    top = highest if anchors.self_scores is None else anchors.self_scores
    return loss.anchor_loss(means, positives, anchors.n_negatives, (lowest, top))


CONTRASTIVE = Objective(lambda scores: (scores, None), _expectation, _anchor_loss, _is_pairwise)


def log_expectation(
    scores: Tensor,
    positives: Tensor,
    loss: Loss,
    bounds: tuple[float, float],
    same_class: Tensor | None = None,
) -> Tensor:
    """Return the logarithm of a loss's estimate of the mean of e^s over true negatives.

    Parameters
    ----------
    scores : Tensor of shape (n_anchors, N)
        Scores of the candidates, none of them excluded.
    positives : Tensor of shape (n_anchors, n_positives)
        Scores of the positives.
    loss : Loss
        Without schedules.
    bounds : tuple of float
        The lowest and the highest score there is.
    same_class : Tensor of shape (n_anchors, N), dtype bool, or None
        Which candidates are known to share the anchor's class, for losses that read labels.

    Returns
    -------
    log_expectation : Tensor of shape (n_anchors,)
    """
    none = torch.empty(len(scores), 0, dtype=torch.int64, device=scores.device)
    anchors = Anchors(positives, None, scores.shape[1], bounds)
    tile = Tile(anchors, scores.clone(), none, same_class)
    log_mean = _expectation(tile, loss, tile.prior(loss)).value
    return loss.log_expectation(log_mean, positives, bounds[0])


def _may_overflow(bounds: tuple[float, float], beta: float) -> bool:
    return (1 + beta) * max(-bounds[0], bounds[1]) > _LARGEST_EXPONENT


def _unshifted(
    tile: Tile, prior: Tensor | None, beta: float
) -> tuple[Exponentials, Exponentials | None]:
    """Return c e^{(1 + β) s} and c e^{β s} for every candidate, as they are.

    The second is None where it is 1 for all; only its sums are returned where it does not depend
    on the scores.
    """
    if beta:
        # w = c e^{β s} and v = w e^s take one exponential where β = 1, else two. The scores are
        # overwritten: nobody reads them later.
        w = tile.scores if beta == 1 else torch.mul(tile.scores, beta, out=tile.empty())
        w = w.exp_()
        e = w if beta == 1 else tile.scores.exp_()
        w = (w if prior is None else w * prior).scatter_(1, tile.excluded, 0.0)
        v = torch.mul(w, e, out=tile.empty())
        return Exponentials(0.0, tile.sum(v), v), Exponentials(0.0, tile.sum(w), w)
    # Without hardness the weights c do not depend on the scores: where all are 1, none is held.
    v = tile.scores.exp_()
    if prior is None:
        v.scatter_(1, tile.excluded, 0.0)
        return Exponentials(0.0, tile.sum(v), v), None
    prior = prior.scatter_(1, tile.excluded, 0.0)
    v.mul_(prior)
    return Exponentials(0.0, tile.sum(v), v), Exponentials(0.0, tile.sum(prior), None)


def _shifted(
    tile: Tile, prior: Tensor | None, beta: float
) -> tuple[Exponentials, Exponentials | None]:
    """Return the same two as `_unshifted`, with the maximum of each row taken out."""
    if beta:
        logits = log_weights(tile, prior, beta)
        return exponentials(tile.scores.add_(logits)), exponentials(logits)
    if prior is None:
        return exponentials(tile.scores.scatter_(1, tile.excluded, -torch.inf)), None
    prior = prior.scatter_(1, tile.excluded, 0.0)
    total = prior.sum(1)
    return exponentials(tile.scores.add_(prior.log_())), Exponentials(0.0, total, None)


# The Jensen–Shannon objective


def _softplus_attraction(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return −softplus(−s) and its derivative."""
    return F.logsigmoid(scores), torch.sigmoid(-scores)


def _softplus_expectation(tile: Tile, loss: Loss, prior: Tensor | None) -> Expectation:
    """Return mean_j w_j softplus(s_j), w_j ∝ c_j e^{β s_j}: a sum, over that of the weights.

    N takes the place of the sum of the weights where they are not scaled to mean 1.
    """
    scores, beta, n = tile.scores, loss.hardness(), tile.anchors.n_negatives
    if prior is None and beta == 0:
        total = _softplus_sum(scores, tile.excluded)
        slope = scores.sigmoid_().scatter_(1, tile.excluded, 0.0)
        return Expectation([Sum(total, slope)], lambda sums: sums[0] / n)
    flows = beta > 0 and not loss.detach_weights
    logits = log_weights(tile, prior, beta)
    # N does not occur in this objective: weights whose sum replaces it are scaled as well.
    mass = None if loss.sum_of_weights == "free" else exponentials(logits).total
    weights = logits.exp_() if mass is None else logits  # the exponentials, in place
    phi = F.softplus(scores)
    total = (weights * phi).sum(1)
    slope = torch.sigmoid(scores)
    slope = (slope.add_(phi, alpha=beta) if flows else slope).mul_(weights)
    if mass is None:
        return Expectation([Sum(total, slope)], lambda sums: sums[0] / n)
    sums = [Sum(total, slope), Sum(mass, weights if flows else None, beta)]
    return Expectation(sums, lambda sums: sums[0] / or_one(sums[1]))


def _softplus_anchor_loss(
    means: list[Tensor], positives: Tensor, anchors: Anchors, loss: Loss
) -> Tensor:
    """Return the loss of each anchor, shape (n,)."""
    a, b = loss.coefficients()
    negative = a * means[0]
    if b:
        negative = (negative - b * F.softplus(positives).mean(1)).clamp_min(0.0)
    return F.softplus(-positives).mean(1) + negative


JENSEN_SHANNON = Objective(_softplus_attraction, _softplus_expectation, _softplus_anchor_loss)


def _softplus_sum(scores: Tensor, excluded: Tensor) -> Tensor:
    """Return the sum of softplus(s) over each row without its excluded columns, shape (n,).

    softplus(s) = max(s, 0) + log(1 + e^{−|s|}). The sum of the logarithms of k such columns is the
    logarithm of their product, which is in [1, 2^k].
    """
    positive = scores.clamp_min(0).scatter_(1, excluded, 0.0)
    factors = scores.abs().neg_().exp_().scatter_(1, excluded, 0.0).add_(1)
    products = [part.prod(1) for part in factors.split(_FACTORS, dim=1)]
    return positive.sum(1).add_(torch.stack(products, 1).log_().sum(1))
