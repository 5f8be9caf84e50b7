r"""The scores of a few anchors: sums over their candidates, and gradients.

The loss of an anchor depends on its row of scores only through a few sums,

.. math:: \hat E = \frac{\sum_j c_j\, e^{(1 + \beta) s_j}}{\sum_j c_j\, e^{\beta s_j}}
    \qquad \text{or} \qquad \sum_j c_j s_j.

The derivatives of these sums are written here. Autograd differentiates the rest of a loss, which
has one number for each anchor.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .._checks import check_returned
from ._ranks import Ranking

if TYPE_CHECKING:
    from ._base import Loss

# Up to this exponent, e^score and its sum over all candidates are normal float32 numbers; for
# larger scores, the maximum of each row is subtracted first.
_LARGEST_EXPONENT = 60.0
# A score whose exponential is 0, and whose difference from others is finite.
_VERY_LOW = -1e37
_NO_LABELS = "needs labels: set requires_y = True in the class, and pass y."


class Rows:
    """A few anchors, and the scores of their positives and candidates.

    Attributes
    ----------
    positives : Tensor of shape (n_anchors, n_positives)
        Scores of the other views of each anchor's sample.
    n_candidates : int
        The number N of candidates of each anchor.
    lowest : float
        The lowest score there can be.
    highest : Tensor of shape (n_anchors,) or float
        The score of each anchor with itself, or one number for all.

    See Also
    --------
    Loss.losses : Computes the loss of each anchor from its row.
    """

    def __init__(
        self,
        scores: Tensor,
        positives: Tensor,
        excluded: Tensor,
        *,
        bounds: tuple[float, float],
        highest: Tensor | float | None = None,
        same_class: Tensor | None = None,
        hidden: Tensor | None = None,
        pair_weights: Tensor | None = None,
    ):
        self.positives = positives.detach().requires_grad_(torch.is_grad_enabled())
        self._same_class = same_class
        self.n_candidates = scores.shape[1] - excluded.shape[1]
        self.lowest, self.highest = bounds[0], bounds[1] if highest is None else highest
        # A very low score: exponentials and products with a weight of 0 vanish.
        self._scores = scores.scatter_(1, excluded, _VERY_LOW)
        self._excluded, self._hidden = excluded, hidden
        self._pair_weights = pair_weights
        self._largest = max(-bounds[0], bounds[1])
        # Values that a loss has read, as leaves of its graph, and functions from their gradients
        # to those of the scores.
        self._leaves: list[tuple[Tensor, Callable[[Tensor], Tensor]]] = []
        self._ranking: Ranking | None = None

    @property
    def same_class(self) -> Tensor:
        """Where anchor and candidate are known to share a class, shape (n_anchors, n), dtype bool.

        If groups are positive and the loss pulls them, members of a group share a class, too.
        """
        if self._same_class is None:
            raise ValueError(f"A loss that reads rows.same_class {_NO_LABELS}")
        return self._same_class

    @property
    def scores(self) -> Tensor:
        """Scores of the candidates, differentiable by autograd; excluded ones hold −inf."""
        if self._pair_weights is not None:
            raise ValueError("A loss that reads rows.scores takes no pair_weights of a Contrast.")
        scores = self._finite_scores.scatter(1, self._excluded, -torch.inf)
        return scores if self._hidden is None else scores.masked_fill(self._hidden, -torch.inf)

    @functools.cached_property
    def _finite_scores(self) -> Tensor:
        """Return `scores` with 0 instead of −inf for excluded ones, and without hiding a group."""
        return self._leaf(self._scores.scatter(1, self._excluded, 0.0), Tensor.contiguous)

    def log_expectation(self, loss: Loss, weights: Tensor | None = None) -> Tensor:
        r"""Return the logarithm of a loss's estimate of the mean of e^s over true negatives.

        .. math:: \log \max\Bigl(a \cdot \frac1N \sum_j w_j e^{s_j}
            - b \cdot \frac1M \sum_m e^{s^+_m},\; e^{s_{\min}}\Bigr), \qquad
            w_j \propto c_j e^{\beta s_j}

        Parameters
        ----------
        loss : Loss
            Determines a and b, and the weights of `log_mean`.
        weights : Tensor of shape (n_anchors, n), default=None
            The factors c; None is those of the loss.

        Returns
        -------
        log_expectation : Tensor of shape (n_anchors,)
        """
        log_mean, (a, b) = self.log_mean(loss, weights), loss.coefficients()
        if b == 0:
            return log_mean + math.log(a) if a != 1 else log_mean
        excess = self.positives - log_mean[:, None]
        if 2 * self._largest > _LARGEST_EXPONENT:  # then all is floored
            excess = excess.clamp_max(_LARGEST_EXPONENT)
        relative = torch.rsub(excess.exp().mean(1), a, alpha=b)
        floored = relative <= (self.lowest - log_mean.detach()).exp()  # NaN is not floored
        log_estimate = log_mean + relative.masked_fill(floored, 1.0).log()
        return log_estimate.masked_fill(floored, self.lowest)

    def log_mean(self, loss: Loss, weights: Tensor | None = None) -> Tensor:
        r"""Return the logarithm of the weighted mean of e^s over the candidates.

        .. math:: \log \frac1N \sum_j w_j e^{s_j} =
            \log \sum_j c_j e^{(1 + \beta) s_j} - \log \sum_j c_j e^{\beta s_j}

        N takes the place of the second sum where the loss does not scale its weights to mean 1.

        Parameters
        ----------
        loss : Loss
            Determines β, c, and whether the weights are scaled and have a gradient.
        weights : Tensor of shape (n_anchors, n), default=None
            The factors c; None is those of the loss.

        Returns
        -------
        log_mean : Tensor of shape (n_anchors,)
            The lowest score for an anchor without negatives.
        """
        c = self._factors(loss) if weights is None else self._of_candidates(self._copy(weights))
        beta, is_scaled = loss.hardness(), loss.sum_of_weights == "N"
        slope = 0.0 if loss.detach_weights else beta
        scores, top = self._scores, None
        if (1 + beta) * self._largest > _LARGEST_EXPONENT:
            if c is not None:
                scores = scores.masked_fill(c == 0, _VERY_LOW)
            top = scores.amax(1)
            scores = scores - top[:, None]
        # c e^(βs), None where all are 1, and e^s.
        w: Any = c
        terms = scores.exp()
        if beta > 0:
            w = terms if beta == 1 else (scores * beta).exp_()
            w = w if c is None else c.mul_(w)
        terms = terms * w if w is terms else terms if w is None else terms.mul_(w)
        total: Tensor = terms.sum(1)
        mass = self.n_candidates if w is None or not is_scaled else w.sum(1)
        if c is not None:
            is_empty = total == 0
            total, mass = total + is_empty, mass + is_empty
        log_mean = (total / mass).log()
        if top is not None:
            log_mean += top if is_scaled else (1 + beta) * top

        def pull_back(d: Tensor) -> Tensor:
            d_scores = terms.mul_((d * (1 + slope) / total)[:, None])
            if slope == 0 or not is_scaled:
                return d_scores
            return d_scores.sub_(w.mul_((d * slope / mass)[:, None]))

        log_mean = self._leaf(log_mean, pull_back)
        # An anchor without negatives has its estimate at the floor, without gradient.
        return log_mean if c is None else log_mean.masked_fill(is_empty, self.lowest)

    def weighted_sum(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Return a weighted sum of the scores of the candidates, and the sum of the weights.

        Parameters
        ----------
        weights : Tensor of shape (n_anchors, n)
            Weights ≥ 0; those of excluded candidates are ignored.

        Returns
        -------
        total, mass : Tensor of shape (n_anchors,)
            The second is without gradient.
        """
        return self._weighted_sum(self._of_candidates(self._copy(weights)))

    def rank_weights(self, loss: Loss) -> Tensor:
        """Return the factors of a loss by rank, shape (n_anchors, n); ties share their mean."""
        device = "cpu" if self._scores.is_mps else self._scores.device  # MPS has no float64
        if self._ranking is None:
            self._ranking = Ranking(self._scores.to(device), self._excluded.to(device))
        ranks = torch.arange(1.0, self.n_candidates + 1, dtype=torch.float64, device=device)
        by_rank = loss.rank_weights(ranks, self.n_candidates)
        check_returned(f"{type(loss).__name__}.rank_weights", by_rank, ranks.shape)
        return self._ranking.assign(by_rank).to(self._scores.device)

    def _weights(self, loss: Loss, is_scaled: bool) -> Tensor:
        """Return c e^(βs), shape (n_anchors, n), scaled to mean 1 or not, by autograd."""
        scores, c = self._finite_scores, self._factors(loss)
        c = self._of_candidates(torch.ones_like(scores)) if c is None else c
        logits = c.log() + loss.hardness() * (scores.detach() if loss.detach_weights else scores)
        if not is_scaled:
            return logits.exp()
        # Without any weight all are 0, and their gradients, too.
        return self.n_candidates * (c > 0) * logits.clamp_min(_VERY_LOW).softmax(1)

    def _factors(self, loss: Loss) -> Tensor | None:
        """Return the factors c of the candidates, shape (n_anchors, n), or None where all are 1.

        They are the loss's factors by rank and by class, times the weights of the pairs, and 0 for
        excluded candidates and those of the anchor's group.
        """
        name, beta = type(loss).__name__, loss.hardness()
        if beta < 0:
            raise ValueError(f"{name}.hardness must return a number β ≥ 0, got {beta!r}.")
        c = self.rank_weights(loss) if loss._overrides("rank_weights") else None
        if loss._overrides("class_weights"):
            by_class = loss.class_weights(self.same_class)
            check_returned(f"{name}.class_weights", by_class, self._scores.shape)
            c = self._copy(by_class) if c is None else c * by_class
        if c is None and self._hidden is None and self._pair_weights is None:
            return None
        return self._of_candidates(torch.ones_like(self._scores) if c is None else c)

    def _gradients(self, value: Tensor, *inputs: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Return the gradient of a value.

        Parameters
        ----------
        value : Tensor of shape ()
            Computed from `positives`, `highest`, `scores`, and the methods above.
        *inputs : Tensor
            Other tensors that it was computed from.

        Returns
        -------
        d_scores : Tensor of shape (n_anchors, n)
            0 where excluded.
        d_positives : Tensor of shape (n_anchors, n_positives)
        d_inputs : list of Tensor
        """
        leaves = [self.positives, *inputs, *(leaf for leaf, _ in self._leaves)]
        d_positives, *gradients = torch.autograd.grad(value, leaves, materialize_grads=True)
        pairs = zip(self._leaves, gradients[len(inputs) :], strict=True)
        d_leaves = [pull_back(gradient) for (_, pull_back), gradient in pairs]
        d_scores = functools.reduce(Tensor.add_, d_leaves or [torch.zeros_like(self._scores)])
        return d_scores, d_positives, gradients[: len(inputs)]

    def _weighted_sum(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Return a sum with weights that are 0 where excluded, and the sum of the weights."""
        total = (weights * self._scores).sum(1)
        return self._leaf(total, lambda d: weights.mul_(d[:, None])), weights.sum(1)

    def _of_pairs(self, weights: Tensor) -> Tensor:
        """Multiply weights by those of the pairs, and by 0 where excluded."""
        if self._pair_weights is not None:
            weights.mul_(self._pair_weights)
        return weights.scatter_(1, self._excluded, 0.0)

    def _of_candidates(self, weights: Tensor) -> Tensor:
        """Multiply weights as `_of_pairs` does, and those of a hidden group by 0."""
        weights = self._of_pairs(weights)
        return weights if self._hidden is None else weights.masked_fill_(self._hidden, 0.0)

    def _copy(self, weights: Tensor) -> Tensor:
        """Return a copy of weights in the dtype of the scores."""
        if weights.dtype == torch.bool:  # torch converts the same bytes several times as fast
            weights = weights.view(torch.uint8)
        return weights.to(self._scores.dtype, copy=True)

    def _leaf(self, value: Tensor, pull_back: Callable[[Tensor], Tensor]) -> Tensor:
        if torch.is_grad_enabled():
            self._leaves.append((value.requires_grad_(), pull_back))
        return value
