"""What a loss is: a row of weights and two coefficients."""

from __future__ import annotations

import math

import torch

from .._sklearn_compat import ParameterObject

__all__ = ["Loss"]


class Loss(ParameterObject):
    r"""Base class of the losses: an estimate of an expectation over true negatives.

    For any function :math:`\varphi` of the score, and N candidates of which some may share the
    anchor's class, every loss of this package estimates

    .. math:: \hat E^-[\varphi] = a \cdot \frac1N \sum_j w_j\, \varphi(s_j)
        - b \cdot \frac1M \sum_m \varphi(s^+_m), \qquad w_j \propto e^{c_j + \beta s_j},

    floored at the lowest value that :math:`\varphi` can take. A loss is (c, β, a, b); a new one
    overrides what differs from plain InfoNCE below and takes its hyperparameters in ``__init__``.

    Attributes
    ----------
    requires_y : bool
        Whether the loss reads labels.
    needs_whole_rows : bool
        Whether the loss is more than such an estimate and implements ``row_loss``.
    detach_weights : bool
        Whether the weights carry no gradient. Only matters where β > 0: the log-prior c never
        carries any.
    normalize_weights : bool
        Whether the weights are scaled to mean 1.
    """

    requires_y = False
    needs_whole_rows = False
    detach_weights = False
    normalize_weights = True

    def coefficients(self):
        """Return (a, b)."""
        return 1.0, 0.0

    def hardness(self):
        """Return β ≥ 0."""
        return 0.0

    def log_prior(self, scores, n_candidates, same_class=None):
        """Return c, the log-prior of each candidate to be a true negative, or None for c = 0.

        Parameters
        ----------
        scores : Tensor of shape (n_anchors, n)
            Scores without gradient; the n − N excluded ones hold −inf.
        n_candidates : int
            N.
        same_class : Tensor of shape (n_anchors, n), dtype bool, or None
            Where anchor and candidate are known to share a class; where `requires_y`.

        Returns
        -------
        c : Tensor of shape (n_anchors, n) or None
        """
        return None

    def anchor_loss(self, log_mean, positives, n_candidates, bounds):
        """Return the loss of each anchor; the mean over its positives stands outside the log.

        Parameters
        ----------
        log_mean : Tensor of shape (n_anchors,)
            Logarithm of the weighted mean of e^s over the candidates.
        positives : Tensor of shape (n_anchors, n_positives)
            Scores of the positives.
        n_candidates : int
            N.
        bounds : tuple of float
            The lowest and the highest score there is.

        Returns
        -------
        loss : Tensor of shape (n_anchors,)
        """
        log_negative = self.log_expectation(log_mean, positives, bounds[0])
        excess = math.log(n_candidates) + log_negative[:, None] - positives
        return torch.logaddexp(excess, torch.zeros_like(excess)).mean(1)

    def row_loss(self, scores, positives, same_class, n_candidates, bounds):
        """Return the loss of each anchor from all its scores, differentiable by autograd.

        Parameters
        ----------
        scores : Tensor of shape (n_anchors, n)
            Scores of the candidates; excluded ones hold −inf.
        positives : Tensor of shape (n_anchors, n_positives)
            Scores of the anchor's own other views.
        same_class : Tensor of shape (n_anchors, n), dtype bool, or None
            As in `log_prior`.
        n_candidates, bounds : int, tuple of float
            As in `anchor_loss`.

        Returns
        -------
        loss : Tensor of shape (n_anchors,)
        """
        raise NotImplementedError

    def log_mean(self, scores, n_candidates, same_class=None, lower_bound=0.0):
        """Return the logarithm of the weighted mean of e^s, differentiable by autograd.

        The engine has the same with its gradient written by hand; this is for a ``row_loss`` that
        builds on another loss's estimate.

        Parameters
        ----------
        scores, n_candidates, same_class : Tensor, int, Tensor or None
            As in `row_loss`.
        lower_bound : float, default=0.0
            Returned for anchors without any negative.

        Returns
        -------
        log_mean : Tensor of shape (n_anchors,)
        """
        excluded = scores == -torch.inf
        finite = scores.masked_fill(excluded, 0.0)
        prior = self.log_prior(scores.detach(), n_candidates, same_class)
        tilt = self.hardness() * (finite.detach() if self.detach_weights else finite)
        tilt = (tilt if prior is None else tilt + prior).masked_fill(excluded, -torch.inf)
        empty = (tilt == -torch.inf).all(1)
        tilt = tilt.masked_fill(empty[:, None], 0.0)
        total = torch.logsumexp(tilt + finite, 1)
        count = math.log(n_candidates)
        log_mean = total - (torch.logsumexp(tilt, 1) if self.normalize_weights else count)
        return log_mean.masked_fill(empty, lower_bound)

    def log_expectation(self, log_mean, positives, lower_bound):
        """Return log max(a · mean − b · mean_m e^{s⁺_m}, e^{lower bound}), shape (n_anchors,)."""
        a, b = self.coefficients()
        if b == 0:
            return log_mean + math.log(a)
        top = torch.maximum(log_mean, positives.amax(1)).detach()
        mean_positive = (positives - top[:, None]).exp().mean(1)
        estimate = a * (log_mean - top).exp() - b * mean_positive
        above = estimate > (lower_bound - top).exp()
        log_estimate = torch.where(above, estimate, torch.ones_like(estimate)).log() + top
        return torch.where(above, log_estimate, torch.full_like(log_estimate, lower_bound))
