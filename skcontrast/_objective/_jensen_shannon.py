"""The Jensen–Shannon objective: φ = softplus, and softplus(−s⁺) + E of each anchor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor

from ._base import Expectation, Objective, Sum, or_one
from ._tile import Anchors, Tile, exponentials, log_weights

if TYPE_CHECKING:
    from ..losses import Loss

# Number of factors between 1 and 2 whose product does not overflow in float32.
_FACTORS = 64


def _attraction(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Return −softplus(−s) and its derivative."""
    return F.logsigmoid(scores), torch.sigmoid(-scores)


def _expectation(tile: Tile, loss: Loss, prior: Tensor | None) -> Expectation:
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


def _anchor_loss(means: list[Tensor], positives: Tensor, anchors: Anchors, loss: Loss) -> Tensor:
    """Return the loss of each anchor, shape (n,)."""
    a, b = loss.coefficients()
    negative = a * means[0]
    if b:
        negative = (negative - b * F.softplus(positives).mean(1)).clamp_min(0.0)
    return F.softplus(-positives).mean(1) + negative


JENSEN_SHANNON = Objective(_attraction, _expectation, _anchor_loss)


def _softplus_sum(scores: Tensor, excluded: Tensor) -> Tensor:
    """Return the sum of softplus(s) over each row without its excluded columns, shape (n,).

    softplus(s) = max(s, 0) + log(1 + e^{−|s|}). The sum of the logarithms of k such columns is the
    logarithm of their product, which is in [1, 2^k].
    """
    positive = scores.clamp_min(0).scatter_(1, excluded, 0.0)
    factors = scores.abs().neg_().exp_().scatter_(1, excluded, 0.0).add_(1)
    products = [part.prod(1) for part in factors.split(_FACTORS, dim=1)]
    return positive.sum(1).add_(torch.stack(products, 1).log_().sum(1))
