"""The Jensen–Shannon objective: φ = softplus, and softplus(−s⁺) + E of each anchor."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from ._base import (
    Expectation,
    Objective,
    ScaledMatrix,
    Tile,
    column,
    exponentials,
    log_weights,
)

if TYPE_CHECKING:
    from ..losses import Loss

# Number of factors between 1 and 2 whose product does not overflow in float32.
_FACTORS = 64


class JensenShannon(Objective):
    """φ = softplus, L = softplus(−s⁺) + E."""

    @staticmethod
    def check(loss: Loss) -> None:
        """Refuse a loss that is more than an estimate over true negatives."""
        if not loss.is_estimate:
            raise ValueError(
                f"{type(loss).__name__} is more than an estimate over negatives and has no "
                "Jensen–Shannon form: pass framework=InfoGraph(objective='contrastive')."
            )

    @staticmethod
    def attraction(scores: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return −softplus(−s) and its derivative."""
        return F.logsigmoid(scores), torch.sigmoid(-scores)

    @staticmethod
    def expectation(tile: Tile, loss: Loss, prior: Tensor | None) -> Expectation:
        """Return mean_j w_j softplus(s_j).

        With W_j = w_j / N and E the weighted mean, the derivative with respect to s_j is

        - W_j φ′(s_j) where the weights are detached,
        - W_j (φ′(s_j) + β (φ(s_j) − E)) where they are differentiated and scaled to mean 1,
        - W_j (φ′(s_j) + β φ(s_j)) where they are differentiated and not scaled.
        """
        scores, beta = tile.scores, loss.hardness()
        if prior is None and beta == 0:
            return _plain_mean(tile)
        # N does not occur in this objective: weights whose sum stands for N are scaled as well.
        is_normalized = loss.normalize_weights or loss.sum_stands_for_n
        logits = log_weights(tile, prior, beta)
        if is_normalized:
            parts = exponentials(logits)
            weights = parts.terms
            weights /= column(parts.total.masked_fill(parts.total == 0, 1.0))
        else:
            weights = logits.exp_().div_(tile.n_negatives)
        phi = F.softplus(scores)
        mean = (weights * phi).sum(1)

        def pull(d_mean: Tensor) -> ScaledMatrix:
            slope = torch.sigmoid(scores)
            if beta and not loss.detach_weights:
                slope += beta * (phi - column(mean) if is_normalized else phi)
            return ScaledMatrix(column(d_mean), weights * slope)

        return Expectation(mean, pull)

    @staticmethod
    def anchor_loss(means: list[Tensor], positives: Tensor, tile: Tile, loss: Loss) -> Tensor:
        """Return the loss of each anchor, shape (n,)."""
        a, b = loss.coefficients()
        negative = a * means[0]
        if b:
            floor = _softplus(loss.lowest_score(-math.inf))
            negative = (negative - b * F.softplus(positives).mean(1)).clamp_min(floor)
        return F.softplus(-positives).mean(1) + negative


def _plain_mean(tile: Tile) -> Expectation:
    """Return the mean of softplus(s) over all candidates that are not excluded."""
    scores, n = tile.scores, tile.n_negatives
    total = _softplus_sum(scores, tile.excluded)
    slope = scores.sigmoid_().scatter_(1, tile.excluded, 0.0)
    return Expectation(total / n, lambda d_mean: ScaledMatrix(column(d_mean / n), slope))


def _softplus_sum(scores: Tensor, excluded: Tensor) -> Tensor:
    """Return the sum of softplus(s) over each row without its excluded columns, shape (n,).

    softplus(s) = max(s, 0) + log(1 + e^{−|s|}). The sum of the logarithms of k such columns is the
    logarithm of their product, which lies in [1, 2^k].
    """
    positive = scores.clamp_min(0).scatter_(1, excluded, 0.0)
    factors = scores.abs().neg_().exp_().scatter_(1, excluded, 0.0).add_(1)
    products = [part.prod(1) for part in factors.split(_FACTORS, dim=1)]
    return positive.sum(1).add_(torch.stack(products, 1).log_().sum(1))


def _softplus(score: float) -> float:
    return max(score, 0.0) + math.log1p(math.exp(-abs(score)))
