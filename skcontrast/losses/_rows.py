r"""The scores of a few anchors: sums over their candidates, and the gradient of what follows.

The loss of an anchor depends on its row of scores only through a few sums,

.. math:: \hat E = \frac{\sum_j c_j\, e^{(1 + \beta) s_j}}{\sum_j c_j\, e^{\beta s_j}}
    \qquad \text{or} \qquad \sum_j c_j s_j.

So the slope of each summand is written here, once, and what a loss makes of the sums is left to
autograd, which then only sees vectors with one number for each anchor.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .._checks import check_returned
from ._ranks import Ranking

if TYPE_CHECKING:
    from ._base import Loss

# Up to this exponent, e^score and its sum over all candidates are normal float32 numbers; beyond,
# the maximum of each row is taken out first.
_LARGEST_EXPONENT = 60.0
_NO_LABELS = "needs labels: set requires_y = True in the class, and pass y."


class Rows:
    """A few anchors, and the scores of their positives and candidates.

    Attributes
    ----------
    positives : Tensor of shape (n_anchors, n_positives)
        Scores of the other views of each anchor's sample.
    same_class : Tensor of shape (n_anchors, n), dtype bool
        Where anchor and candidate are known to share a class or, if groups are positive and the
        loss pulls them, a group. None for a loss that reads no labels, without such groups.
    n_candidates : int
        The number N of candidates of each anchor.
    lowest : float
        The lowest score there can be.

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
        self_scores: Callable[[], Tensor | float] | None = None,
        same_class: Tensor | None = None,
        hidden: Tensor | None = None,
        pair_weights: Tensor | None = None,
    ):
        self.positives = positives.detach().requires_grad_(torch.is_grad_enabled())
        self.same_class: Any = same_class
        self.n_candidates = scores.shape[1] - excluded.shape[1]
        self.lowest = bounds[0]
        self._scores, self._excluded, self._bounds = scores, excluded, bounds
        self._self_scores = self_scores
        self._hidden, self._pair_weights = hidden, pair_weights
        # The sums that were taken, each a leaf of the graph, with the slopes of its summands.
        self._sums: list[tuple[Tensor, Tensor, float]] = []
        self._leaf: Tensor | None = None
        self._ranking: Ranking | None = None

    @property
    def scores(self) -> Tensor:
        """Scores of the candidates, differentiable by autograd; excluded ones hold −inf."""
        if self._pair_weights is not None:
            raise ValueError("A loss that reads rows.scores takes no pair_weights of a Contrast.")
        return self.finite_scores().masked_fill(~self.is_candidate(), -torch.inf)

    def finite_scores(self) -> Tensor:
        """Return `scores` with 0 instead of −inf, and those of a hidden group as they are."""
        if self._leaf is None:
            leaf = self._scores.scatter(1, self._excluded, 0.0)
            self._leaf = leaf.requires_grad_(torch.is_grad_enabled())
        return self._leaf

    def is_candidate(self) -> Tensor:
        """Return where a column is a candidate, shape (n_anchors, n), dtype bool."""
        kept = torch.ones_like(self._scores, dtype=torch.bool).scatter_(1, self._excluded, False)
        return kept if self._hidden is None else kept & ~self._hidden

    @property
    def highest(self) -> Tensor | float:
        """The score of each anchor with itself, shape (n_anchors,), or one number for all."""
        return self._bounds[1] if self._self_scores is None else self._self_scores()

    def log_expectation(self, loss: Loss, weights: Tensor | None = None) -> Tensor:
        r"""Return the logarithm of a loss's estimate of the mean of e^s over true negatives.

        .. math:: \log \max\Bigl(a \cdot \frac1N \sum_j w_j e^{s_j}
            - b \cdot \frac1M \sum_m e^{s^+_m},\; e^{s_{\min}}\Bigr), \qquad
            w_j \propto c_j e^{\beta s_j}

        Parameters
        ----------
        loss : Loss
            Gives a and b, and what `log_mean` needs.
        weights : Tensor of shape (n_anchors, n), default=None
            The factors c; None is those of the loss.

        Returns
        -------
        log_expectation : Tensor of shape (n_anchors,)
        """
        log_mean, (a, b) = self.log_mean(loss, weights), loss.coefficients()
        if b == 0:
            return log_mean + math.log(a) if a != 1 else log_mean
        top = torch.maximum(log_mean, self.positives.amax(1)).detach()
        mean_positive = (self.positives - top[:, None]).exp().mean(1)
        estimate = a * (log_mean - top).exp() - b * mean_positive
        above = ~(estimate <= (self.lowest - top).exp())  # NaN is not floored
        log_estimate = torch.where(above, estimate, 1.0).log() + top
        return torch.where(above, log_estimate, self.lowest)

    def log_mean(self, loss: Loss, weights: Tensor | None = None) -> Tensor:
        r"""Return the logarithm of the weighted mean of e^s over the candidates.

        .. math:: \log \frac1N \sum_j w_j e^{s_j} =
            \log \sum_j c_j e^{(1 + \beta) s_j} - \log \sum_j c_j e^{\beta s_j}

        N takes the place of the second sum where the loss does not scale its weights to mean 1.

        Parameters
        ----------
        loss : Loss
            Gives β, c, and whether the weights are scaled and carry a gradient.
        weights : Tensor of shape (n_anchors, n), default=None
            The factors c; None is those of the loss.

        Returns
        -------
        log_mean : Tensor of shape (n_anchors,)
            The lowest score for an anchor without negatives.
        """
        c = self.weights(loss) if weights is None else self._of_candidates(weights)
        beta, scaled = loss.hardness(), loss.sum_of_weights == "N"
        flows = beta > 0 and not loss.detach_weights
        terms, top = self._exponentials(1 + beta, c)
        total = self._sum(terms, 1 + beta if flows else 1.0)
        mass: Tensor | None = None  # N
        if scaled and beta > 0:
            terms, top_of_mass = self._exponentials(beta, c)
            mass, top = self._sum(terms, beta if flows else 0.0), top - top_of_mass
        elif scaled and c is not None:
            mass = c.scatter(1, self._excluded, 0.0).sum(1)
        # An anchor without any negative has an estimate at the floor, and no gradient from it.
        empty = total == 0
        log_mean = top + total.masked_fill(empty, 1.0).log()
        if mass is None:
            log_mean = log_mean - math.log(self.n_candidates)
        else:
            log_mean = log_mean - mass.masked_fill(mass == 0, 1.0).log()
        return log_mean.masked_fill(empty, self.lowest)

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
        if weights is None:
            raise ValueError(f"A loss that reads rows.same_class {_NO_LABELS}")
        return self._weighted_sum(self._of_candidates(weights))

    def weighted_sum_of_group(self, group: Tensor) -> tuple[Tensor, Tensor]:
        """Return the same of the members of a group, which is hidden from the loss."""
        return self._weighted_sum(self.of_pairs(group))

    def of_pairs(self, weights: Tensor) -> Tensor:
        """Return weights of the candidates times those of the pairs, in the dtype of scores."""
        weights = weights.to(self._scores.dtype)
        return weights if self._pair_weights is None else weights * self._pair_weights

    def weights(self, loss: Loss) -> Tensor | None:
        """Return the factors c of the candidates, shape (n_anchors, n), or None where all are 1.

        They are those of the loss by rank and by class, times those of the pairs; 0 for
        candidates of the anchor's group.
        """
        c = None
        if loss.overrides("rank_weights"):
            c = self.rank_weights(loss)
        if loss.overrides("class_weights"):
            if self.same_class is None:
                raise ValueError(f"{type(loss).__name__} {_NO_LABELS}")
            by_class = loss.class_weights(self.same_class)
            check_returned(f"{type(loss).__name__}.class_weights", by_class, self._scores.shape)
            c = by_class.to(self._scores.dtype) if c is None else c * by_class
        if c is None and self._hidden is None:
            return self._pair_weights
        return self._of_candidates(torch.ones_like(self._scores) if c is None else c)

    def rank_weights(self, loss: Loss) -> Tensor:
        """Return the factors of a loss by rank, shape (n_anchors, n); ties share their mean."""
        device = "cpu" if self._scores.is_mps else self._scores.device  # MPS has no float64
        if self._ranking is None:
            self._ranking = Ranking(self._scores.to(device), self._excluded.to(device))
        ranks = torch.arange(1.0, self.n_candidates + 1, dtype=torch.float64, device=device)
        found = loss.rank_weights(ranks, self.n_candidates)
        check_returned(f"{type(loss).__name__}.rank_weights", found, ranks.shape)
        return self._ranking.place(found).to(self._scores.device)

    def gradients(
        self, total: Tensor, further: list[Tensor]
    ) -> tuple[Tensor, Tensor, list[Tensor | None]]:
        """Return the gradient of a function of these rows.

        Parameters
        ----------
        total : Tensor of shape ()
            Computed from `positives`, `scores`, and the methods above.
        further : list of Tensor
            Other tensors that it was computed from.

        Returns
        -------
        d_scores : Tensor of shape (n_anchors, n)
            0 where excluded.
        d_positives : Tensor of shape (n_anchors, n_positives)
        d_further : list of Tensor, or None where the function does not depend on it
        """
        of_scores = [] if self._leaf is None else [self._leaf]
        leaves = [self.positives, *further, *of_scores, *(leaf for leaf, _, _ in self._sums)]
        found = list(torch.autograd.grad(total, leaves, allow_unused=True))
        d_positives, n = found.pop(0), len(further)
        d_further: list[Tensor | None] = [*found[:n]]
        found = found[n:]
        d_scores = found.pop(0) if of_scores else None
        for (_, slopes, factor), d_sum in zip(self._sums, found, strict=True):
            if d_sum is not None:
                part = slopes.mul_((d_sum * factor)[:, None])
                d_scores = part if d_scores is None else d_scores.add_(part)
        d_scores = torch.zeros_like(self._scores) if d_scores is None else d_scores
        d_positives = torch.zeros_like(self.positives) if d_positives is None else d_positives
        return d_scores, d_positives, d_further

    def _weighted_sum(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        weights = weights.scatter(1, self._excluded, 0.0)
        scores = self._scores.scatter(1, self._excluded, 0.0)
        return self._sum(weights, 1.0, (weights * scores).sum(1)), weights.sum(1)

    def _of_candidates(self, weights: Tensor) -> Tensor:
        """Return weights times those of the pairs, and 0 for candidates of the anchor's group."""
        weights = self.of_pairs(weights)
        return weights if self._hidden is None else weights.masked_fill(self._hidden, 0.0)

    def _exponentials(self, factor: float, c: Tensor | None) -> tuple[Tensor, Tensor | float]:
        """Return c e^(factor s), over e^top, and top; 0 where excluded."""
        logits = (self._scores * factor).scatter_(1, self._excluded, -torch.inf)
        top: Tensor | float = 0.0
        if factor * max(-self._bounds[0], self._bounds[1]) > _LARGEST_EXPONENT:
            if c is not None:
                logits.masked_fill_(c == 0, -torch.inf)
            top = logits.amax(1).clamp_min(torch.finfo(logits.dtype).min / 4)
            logits.sub_(top[:, None])
        terms = logits.exp_()
        return terms if c is None else terms.mul_(c), top

    def _sum(self, slopes: Tensor, factor: float, value: Tensor | None = None) -> Tensor:
        """Return a sum over candidates as a leaf; the slope of a summand is factor · slopes."""
        leaf = (slopes.sum(1) if value is None else value).requires_grad_(torch.is_grad_enabled())
        if torch.is_grad_enabled() and factor:
            self._sums.append((leaf, slopes, factor))
        return leaf
