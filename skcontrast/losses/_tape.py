r"""Sums over the candidates of a few anchors, and the gradients of these sums.

The loss of an anchor depends on its row of scores only through a few sums,

.. math:: \hat E = \frac{\sum_j c_j\, e^{(1 + \beta) s_j}}{\sum_j c_j\, e^{\beta s_j}}
    \qquad \text{or} \qquad \sum_j c_j s_j.

The derivatives of these sums are written here. Autograd differentiates the rest of a loss, which
has one number for each anchor.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

# Up to this exponent, e^score and its sum over all candidates are normal float32 numbers; for
# larger scores, the maximum of each row is subtracted first.
LARGEST_EXPONENT = 60.0
# A score whose exponential is 0, and whose difference from others is finite.
VERY_LOW = -1e37


class Tape:
    """Record of the sums that a loss takes over the scores of a few anchors.

    The loss reads them through :class:`Rows`. `gradients` then returns the gradient, once: to save
    memory, the tape overwrites the scores that it is given, and `gradients` its sums.

    Attributes
    ----------
    scores : Tensor of shape (n_anchors, n)
        Very low where excluded: exponentials and products with a weight of 0 vanish.
    positives : Tensor of shape (n_anchors, n_positives)
    excluded : Tensor of shape (n_anchors, n_excluded), dtype int64
        Columns of the scores.
    n_candidates : int
    lowest, largest : float
        The lowest score, and the largest absolute value.
    highest : Tensor of shape (n_anchors,) or float
    hidden : Tensor of shape (n_anchors, n), dtype bool, or None
        Members of the anchor's group, which are no candidates of the loss.
    pair_weights : Tensor of shape (n_anchors, n) or None
    correcting : Tensor of shape (n_anchors, M) or None
        Scores of samples of the anchor's class that correct in place of the positives.
    mates : Tensor of shape (n_anchors, n), dtype bool, or None
        Candidates of the anchor's class that correct in place of the positives, where there are
        some.
    """

    def __init__(
        self,
        scores: Tensor,
        positives: Tensor,
        excluded: Tensor,
        *,
        bounds: tuple[float, float],
        highest: Tensor | float | None = None,
        hidden: Tensor | None = None,
        pair_weights: Tensor | None = None,
        correcting: Tensor | None = None,
        mates: Tensor | None = None,
    ):
        has_grad = torch.is_grad_enabled()
        self.positives = positives.detach().requires_grad_(has_grad)
        self.correcting, self.mates = correcting, mates
        if correcting is not None:
            self.correcting = correcting.detach().requires_grad_(has_grad)
        self.n_candidates = scores.shape[1] - excluded.shape[1]
        self.lowest, self.highest = bounds[0], bounds[1] if highest is None else highest
        self.largest = max(-bounds[0], bounds[1])
        self.scores = scores.scatter_(1, excluded, VERY_LOW)
        self.excluded, self.hidden, self.pair_weights = excluded, hidden, pair_weights
        # Values that a loss has read, as leaves of its graph, and functions from their gradients
        # to those of the scores.
        self._leaves: list[tuple[Tensor, Callable[[Tensor], Tensor]]] = []
        self._is_used = False

    @functools.cached_property
    def finite_scores(self) -> Tensor:
        """The scores, differentiable by autograd; excluded ones are 0, and no group is hidden."""
        return self._leaf(self.scores.scatter(1, self.excluded, 0.0), Tensor.contiguous)

    def log_mean(self, c: Tensor | None, beta: float, slope: float, is_scaled: bool) -> Tensor:
        r"""Return :math:`\log \sum_j c_j e^{(1 + \beta) s_j} - \log \sum_j c_j e^{\beta s_j}`.

        Unless `is_scaled`, N takes the place of the second sum. None as `c` stands for ones; a
        tensor is overwritten. The slope is β, or 0 where the weights have no gradient.
        """
        # If the largest exponential may overflow, s is s − top. In the ratio of the two sums
        # e^top remains; if the second is N, e^((1 + β) top).
        scores, top = self.scores, None
        if (1 + beta) * self.largest > LARGEST_EXPONENT:
            if c is not None:
                scores = scores.masked_fill(c == 0, VERY_LOW)
            top = scores.amax(1)
            scores = scores - top[:, None]
        # The weights w = c e^(βs), None where all are 1, and the terms c e^((1 + β) s) = w e^s.
        w: Any = c
        terms = scores.exp()
        if beta > 0:
            w = terms if beta == 1 else (scores * beta).exp_()
            w = w if c is None else c.mul_(w)
        terms = terms * w if w is terms else terms if w is None else terms.mul_(w)
        # The first sum is the total; the second, or N, is the mass.
        total: Tensor = terms.sum(1)
        mass = self.n_candidates if w is None or not is_scaled else w.sum(1)
        if c is not None:
            is_empty = total == 0
            total, mass = total + is_empty, mass + is_empty
        log_mean = (total / mass).log()
        if top is not None:
            log_mean += top if is_scaled else (1 + beta) * top

        def pull_back(d: Tensor) -> Tensor:
            # The derivative is (1 + slope) terms / total − slope w / mass. It may overwrite terms
            # and w: nothing else still reads them, and `gradients` calls this once.
            d_scores = terms.mul_((d * (1 + slope) / total)[:, None])
            if slope == 0 or not is_scaled:
                return d_scores
            return d_scores.sub_(w.mul_((d * slope / mass)[:, None]))

        log_mean = self._leaf(log_mean, pull_back)
        # An anchor without negatives has its estimate at the floor, without gradient.
        return log_mean if c is None else log_mean.masked_fill(is_empty, self.lowest)

    def weighted_sum(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Return a weighted sum of the scores, and the sum of the weights, which are overwritten.

        The weights are 0 where excluded.
        """
        total = (weights * self.scores).sum(1)
        return self._leaf(total, lambda d: weights.mul_(d[:, None])), weights.sum(1)

    def gradients(self, value: Tensor, *inputs: Tensor) -> tuple[Tensor, Tensor, list[Tensor]]:
        """Return the gradient of a value, once.

        Parameters
        ----------
        value : Tensor of shape ()
            Computed from `positives`, `highest`, `finite_scores`, and the sums above.
        *inputs : Tensor
            Other tensors that it was computed from.

        Returns
        -------
        d_scores : Tensor of shape (n_anchors, n)
            0 where excluded.
        d_positives : Tensor of shape (n_anchors, n_positives)
        d_inputs : list of Tensor
        """
        if self._is_used:
            raise RuntimeError(
                "Tape.gradients was called twice, and the first call overwrote the sums. Compute "
                "the value again from a new Tape."
            )
        self._is_used = True
        leaves = [self.positives, *inputs, *(leaf for leaf, _ in self._leaves)]
        d_positives, *gradients = torch.autograd.grad(value, leaves, materialize_grads=True)
        pairs = zip(self._leaves, gradients[len(inputs) :], strict=True)
        d_leaves = [pull_back(gradient) for (_, pull_back), gradient in pairs]
        d_scores = functools.reduce(Tensor.add_, d_leaves or [torch.zeros_like(self.scores)])
        return d_scores, d_positives, gradients[: len(inputs)]

    def copy(self, weights: Tensor) -> Tensor:
        """Return a copy of weights in the dtype of the scores."""
        if weights.dtype == torch.bool:  # torch converts the same bytes several times as fast
            weights = weights.view(torch.uint8)
        return weights.to(self.scores.dtype, copy=True)

    def of_pairs(self, weights: Tensor) -> Tensor:
        """Multiply weights by those of the pairs, and by 0 where excluded, in place."""
        if self.pair_weights is not None:
            weights.mul_(self.pair_weights)
        return weights.scatter_(1, self.excluded, 0.0)

    def of_candidates(self, weights: Tensor) -> Tensor:
        """Multiply weights as `of_pairs` does, and those of a hidden group by 0."""
        weights = self.of_pairs(weights)
        return weights if self.hidden is None else weights.masked_fill_(self.hidden, 0.0)

    def _leaf(self, value: Tensor, pull_back: Callable[[Tensor], Tensor]) -> Tensor:
        if torch.is_grad_enabled():
            self._leaves.append((value.requires_grad_(), pull_back))
        return value
