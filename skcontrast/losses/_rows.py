"""``Rows``: what a loss reads of a few anchors."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from .._checks._arguments import check_returned
from ._ranks import Ranking
from ._tape import LARGEST_EXPONENT, VERY_LOW, Tape

if TYPE_CHECKING:
    from ._base import Loss

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
    has_classes : bool
        Whether there is a `same_class`: from labels, or from positive groups that the loss pulls.

    See Also
    --------
    Loss.losses : Computes the loss of each anchor from its row.
    """

    def __init__(self, tape: Tape, same_class: Tensor | None = None):
        self.positives, self.n_candidates = tape.positives, tape.n_candidates
        self.lowest, self.highest = tape.lowest, tape.highest
        self.has_classes = same_class is not None
        self._tape, self._same_class = tape, same_class
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
        tape = self._tape
        if tape.pair_weights is not None:
            raise ValueError("A loss that reads rows.scores takes no pair_weights of a Contrast.")
        scores = tape.finite_scores.scatter(1, tape.excluded, -torch.inf)
        return scores if tape.hidden is None else scores.masked_fill(tape.hidden, -torch.inf)

    def log_expectation(self, loss: Loss, weights: Tensor | None = None) -> Tensor:
        r"""Return the logarithm of a loss's estimate of the mean of e^s over true negatives.

        .. math:: \log \max\Bigl(a \cdot \frac1N \sum_j w_j e^{s_j}
            - b \cdot \frac1M \sum_m e^{s^+_m},\; e^{s_{\min}}\Bigr), \qquad
            w_j \propto c_j e^{\beta s_j}

        The :math:`s^+_m` are the scores of the positives or, if samples of the anchor's class
        correct in their place, of these.

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
        excess = self._correcting - log_mean[:, None]
        if 2 * self._tape.largest > LARGEST_EXPONENT:  # then all is floored
            excess = excess.clamp_max(LARGEST_EXPONENT)
        relative = torch.rsub(excess.exp().mean(1), a, alpha=b)
        floored = relative <= (self.lowest - log_mean.detach()).exp()  # NaN is not floored
        log_estimate = log_mean + relative.masked_fill(floored, 1.0).log()
        return log_estimate.masked_fill(floored, self.lowest)

    @property
    def _correcting(self) -> Tensor:
        """Scores of the samples that correct each anchor, or one logarithm of their mean e^s."""
        tape, positives = self._tape, self.positives
        if tape.correcting is not None:
            return tape.correcting
        if tape.mates is None:
            return positives
        weights = tape.of_pairs(tape.copy(tape.mates))
        has_mates = weights.sum(1) > 0
        log_mean = tape.log_mean(weights, 0.0, 0.0, True)
        own = positives.logsumexp(1) - math.log(positives.shape[1])
        return torch.where(has_mates, log_mean, own)[:, None]

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
        c = self._factors(loss) if weights is None else self._weights(weights)
        beta, is_scaled = loss.hardness(), loss.sum_of_weights == "N"
        return self._tape.log_mean(c, beta, 0.0 if loss.detach_weights else beta, is_scaled)

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
        return self._tape.weighted_sum(self._weights(weights))

    def rank_weights(self, loss: Loss) -> Tensor:
        """Return the factors of a loss by rank, shape (n_anchors, n); ties share their mean."""
        scores, excluded = self._tape.scores, self._tape.excluded
        device = "cpu" if scores.is_mps else scores.device  # MPS has no float64
        if self._ranking is None:
            self._ranking = Ranking(scores.to(device), excluded.to(device))
        ranks = torch.arange(1.0, self.n_candidates + 1, dtype=torch.float64, device=device)
        by_rank = loss.rank_weights(ranks, self.n_candidates)
        check_returned(f"{type(loss).__name__}.rank_weights", by_rank, ranks.shape)
        return self._ranking.assign(by_rank).to(scores.device)

    def _weights(self, weights: Tensor) -> Tensor:
        """Return a copy of a loss's weights that the tape may overwrite, 0 where excluded."""
        return self._tape.of_candidates(self._tape.copy(weights))

    def _factors(self, loss: Loss) -> Tensor | None:
        """Return the factors c of the candidates, shape (n_anchors, n), or None where all are 1.

        They are the loss's factors by rank and by class, times the weights of the pairs, and 0 for
        excluded candidates and those of the anchor's group.
        """
        tape, name, beta = self._tape, type(loss).__name__, loss.hardness()
        if beta < 0:
            raise ValueError(f"{name}.hardness must return a number β ≥ 0, got {beta!r}.")
        c = self.rank_weights(loss) if loss.overrides("rank_weights") else None
        if loss.overrides("class_weights"):
            by_class = loss.class_weights(self.same_class)
            check_returned(f"{name}.class_weights", by_class, tape.scores.shape)
            c = tape.copy(by_class) if c is None else c * by_class
        if c is None and tape.hidden is None and tape.pair_weights is None:
            return None
        return tape.of_candidates(torch.ones_like(tape.scores) if c is None else c)


def weights_of(loss: Loss, rows: Rows, is_scaled: bool) -> Tensor:
    """Return c e^(βs), shape (n_anchors, n), scaled to mean 1 or not, by autograd."""
    tape, c = rows._tape, rows._factors(loss)
    scores = tape.finite_scores
    c = tape.of_candidates(torch.ones_like(scores)) if c is None else c
    logits = c.log() + loss.hardness() * (scores.detach() if loss.detach_weights else scores)
    if not is_scaled:
        return logits.exp()
    # Without any weight all are 0, and their gradients, too.
    return rows.n_candidates * (c > 0) * logits.clamp_min(VERY_LOW).softmax(1)
