"""The contrastive objective: φ = exp, and −log(P / (P + N·E)) of each anchor."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import torch
from torch import Tensor

from ._base import (
    Expectation,
    Exponentials,
    Objective,
    ScaledMatrix,
    Tile,
    column,
    exponentials,
    log_weights,
)

if TYPE_CHECKING:
    from ..losses import Loss

# e^{score}, also summed over all candidates, stays a normal float32 up to this exponent; beyond,
# the maximum of each row is taken out first.
_LARGEST_EXPONENT = 60.0


class Contrastive(Objective):
    """φ = exp, −log(P / (P + N·E)). The mean over the candidates is held as its logarithm."""

    @staticmethod
    def attraction(scores: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return s."""
        return scores, None

    @staticmethod
    def expectation(tile: Tile, loss: Loss, prior: Tensor | None) -> Expectation:
        r"""Return log mean_j w_j e^{s_j}.

        With V_j ∝ c_j e^{(1 + β) s_j} and W_j ∝ c_j e^{β s_j}, both of sum 1 over j, the
        derivative with respect to s_j is

        - V_j where the weights are detached,
        - (1 + β) V_j − β W_j where they are differentiated and scaled to mean 1,
        - (1 + β) V_j where they are differentiated and not scaled.
        """
        beta = loss.hardness()
        split = _shifted if _may_overflow(tile.bounds, beta) else _unshifted
        weighted, weights = split(tile, prior, beta)
        if not loss.normalize_weights:
            n = torch.full_like(weighted.total, tile.n_negatives)
            weights = Exponentials(0.0, n, None)
        # An anchor without any negative has an estimate at the floor, and no gradient from it.
        empty = (weights.total == 0) | (weighted.total == 0)
        mass_v, mass_w = (part.total.masked_fill(empty, 1.0) for part in (weighted, weights))
        mean = weighted.top - weights.top + (mass_v / mass_w).log_()
        mean = mean.masked_fill_(empty, tile.bounds[0])
        v, w = cast(Tensor, weighted.terms), weights.terms
        if beta == 0 or loss.detach_weights:
            return Expectation(mean, lambda d_mean: ScaledMatrix(column(d_mean / mass_v), v))
        if not loss.normalize_weights:
            return Expectation(
                mean, lambda d_mean: ScaledMatrix(column(d_mean / mass_v * (1 + beta)), v)
            )
        return Expectation(
            mean,
            lambda d_mean: ScaledMatrix(
                column(d_mean / mass_v * (1 + beta)),
                v.addcmul_(w, column(-beta / (1 + beta) * mass_v / mass_w)),
            ),
        )

    @staticmethod
    def anchor_loss(means: list[Tensor], positives: Tensor, tile: Tile, loss: Loss) -> Tensor:
        """Return the loss of each anchor, shape (n,), from log means and positive scores."""
        lowest, highest = tile.bounds
        if tile.self_scores is not None:
            highest = tile.self_scores
        return loss.anchor_loss(means, positives, tile.n_negatives, (lowest, highest))


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
    tile = Tile(scores.clone(), none, positives, None, same_class, bounds)
    log_mean = Contrastive.expectation(tile, loss, tile.prior(loss)).value
    return loss.log_expectation(log_mean, positives, bounds[0])


def _may_overflow(bounds: tuple[float, float], beta: float) -> bool:
    return (1 + beta) * max(-bounds[0], bounds[1]) > _LARGEST_EXPONENT


def _unshifted(tile: Tile, prior: Tensor | None, beta: float) -> tuple[Exponentials, Exponentials]:
    """Return c e^{(1 + β) s} and c e^{β s} for every candidate, as they are.

    Only the sums of the second are returned where it does not depend on the scores.
    """
    if beta:
        w = tile.scores if beta == 1 else tile.scores * beta
        w = w.exp_()
        e = w if beta == 1 else tile.scores.exp_()
        w = (w if prior is None else w * prior).scatter_(1, tile.excluded, 0.0)
        v = w * e
        return Exponentials(0.0, v.sum(1), v), Exponentials(0.0, w.sum(1), w)
    v = tile.scores.exp_()
    if prior is None:
        v.scatter_(1, tile.excluded, 0.0)
        return Exponentials(0.0, v.sum(1), v), _ones(v, tile.n_negatives)
    prior = prior.scatter_(1, tile.excluded, 0.0)
    v.mul_(prior)
    return Exponentials(0.0, v.sum(1), v), Exponentials(0.0, prior.sum(1), None)


def _shifted(tile: Tile, prior: Tensor | None, beta: float) -> tuple[Exponentials, Exponentials]:
    """Return the same two as `_unshifted`, with the maximum of each row taken out."""
    if beta:
        logits = log_weights(tile, prior, beta)
        return exponentials(tile.scores.add_(logits)), exponentials(logits)
    if prior is None:
        scores = tile.scores.scatter_(1, tile.excluded, -torch.inf)
        return exponentials(scores), _ones(scores, tile.n_negatives)
    prior = prior.scatter_(1, tile.excluded, 0.0)
    total = prior.sum(1)
    return exponentials(tile.scores.add_(prior.log_())), Exponentials(0.0, total, None)


def _ones(like: Tensor, n: int) -> Exponentials:
    """Return the sums of n weights of 1, one for each row."""
    return Exponentials(0.0, like.new_full((len(like),), n), None)
