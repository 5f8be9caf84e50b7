"""What a loss is: a row of weights and two coefficients."""

from __future__ import annotations

import math

import torch

from .._parameters import ParameterObject


class Loss(ParameterObject):
    r"""Base class of the losses: an estimate of an expectation over true negatives.

    For any function :math:`\varphi` of the score, and N candidates of which some may share the
    anchor's class, every loss of this package estimates

    .. math:: \hat E^-[\varphi] = a \cdot \frac1N \sum_j w_j\, \varphi(s_j)
        - b \cdot \frac1M \sum_m \varphi(s^+_m), \qquad w_j \propto c_j\, e^{\beta s_j},

    floored at the lowest value that :math:`\varphi` can take. A loss is (c, β, a, b); a new one
    overrides what differs from plain InfoNCE below and takes its hyperparameters in ``__init__``.

    Attributes
    ----------
    requires_y : bool
        Whether the loss reads labels.
    needs_whole_rows : bool
        Whether the loss is more than such an estimate and implements ``row_loss``.
    corrects_positives : bool
        Whether it overrides ``anchor_loss``, and so has no Jensen–Shannon form.
    weighs_ranks : bool
        Whether it implements ``rank_weights``.
    shares_ties : bool
        Whether equal scores share the rank of their last, or each has its own.
    cdf_bins : int, None or "auto"
        Into how many bins scores are counted for their ranks, which is faster than sorting for
        many candidates; None sorts, "auto" chooses.
    detach_weights : bool
        Whether the weights carry no gradient. Only matters where β > 0: c never carries any.
    normalize_weights : bool
        Whether the weights are scaled to mean 1.
    """

    requires_y = False
    needs_whole_rows = False
    corrects_positives = False
    weighs_ranks = False
    shares_ties = True
    cdf_bins: int | str | None = "auto"
    detach_weights = False
    normalize_weights = True

    def coefficients(self):
        """Return (a, b)."""
        return 1.0, 0.0

    def hardness(self):
        """Return β ≥ 0."""
        return 0.0

    def rank_weights(self, ranks, n_candidates):
        """Return the weight c of a candidate by its rank; where `weighs_ranks`.

        Parameters
        ----------
        ranks : Tensor of shape (k,), dtype float64
            Numbers of candidates that score at most as high, in (0, N]; halves too.
        n_candidates : int
            N.

        Returns
        -------
        c : Tensor of shape (k,)
            Weights ≥ 0.
        """
        raise NotImplementedError

    def class_weights(self, same_class):
        """Return the weight c of each candidate by its class, or None for 1; where `requires_y`.

        Parameters
        ----------
        same_class : Tensor of shape (n_anchors, n), dtype bool
            Where anchor and candidate are known to share a class.

        Returns
        -------
        c : Tensor of shape (n_anchors, n), or None
        """
        return None

    def estimators(self):
        """Return the losses whose weighted means `anchor_loss` needs, itself by default."""
        return (self,)

    def anchor_loss(self, log_means, positives, n_candidates, bounds):
        """Return the loss of each anchor; the mean over its positives stands outside the log.

        Parameters
        ----------
        log_means : list of Tensor of shape (n_anchors,)
            Logarithm of the weighted mean of e^s over the candidates, by each of `estimators`.
        positives : Tensor of shape (n_anchors, n_positives)
            Scores of the positives.
        n_candidates : int
            N.
        bounds : tuple
            The lowest score there is, a float, and the highest; where `corrects_positives`, that
            of each anchor with itself: a Tensor of shape (n_anchors,) or a float.

        Returns
        -------
        loss : Tensor of shape (n_anchors,)
        """
        log_negative = self.log_expectation(log_means[0], positives, bounds[0])
        excess = math.log(n_candidates) + log_negative[:, None] - positives
        return torch.logaddexp(excess, torch.zeros_like(excess)).mean(1)

    def row_loss(self, scores, positives, same_class):
        """Return the loss of each anchor from all its scores, differentiable by autograd.

        Parameters
        ----------
        scores : Tensor of shape (n_anchors, n)
            Scores of the candidates; excluded ones hold −inf.
        positives : Tensor of shape (n_anchors, n_positives)
            Scores of the anchor's own other views.
        same_class : Tensor of shape (n_anchors, n), dtype bool, or None
            As in `class_weights`.

        Returns
        -------
        loss : Tensor of shape (n_anchors,)
        """
        raise NotImplementedError

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
