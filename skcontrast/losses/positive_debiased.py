"""PositiveDebiased: a correction of the positive term."""

from __future__ import annotations

import math

import torch

from .._sklearn_compat import StrOptions
from ..schedules import interval
from ._base import Loss

__all__ = ["PositiveDebiased"]


class PositiveDebiased(Loss):
    r"""Contrastive loss with a debiased positive term instead of a debiased negative one.

    An augmented view is closer than a random sample of the anchor's class. With the mean over
    all views of the row, the anchor's own included, in the place of the expectation over all
    data [1]_,

    .. math:: P = \frac{\sum_j e^{s_j} + e^{s^+} + e^{s_{\max}}}{N + 2}, \qquad
        g = \frac1N \sum_j e^{s_j}, \qquad
        L = -\log \frac{P - \tau^- g}{P + (N \tau^+ - \tau^-)\, g}

    where :math:`s_{\max}` is the score of an anchor with itself (1/temperature for cosine). The
    preprint writes :math:`e^{s^+} + g` for P, which is no mean. With the consistent
    :math:`P = \tau^+ e^{s^+} + \tau^- g` the loss would be exactly InfoNCE; the authors' P pulls
    positives with a weight of about 1/(N + 2). The numerator can only be negative where
    N + 2 < 1/τ⁺ or so; it is floored at :math:`\tau^+ e^{s_{\min}}`.

    Parameters
    ----------
    tau_plus : float, Schedule or "auto", default=0.1
        Class prior τ⁺ in (0, 1).
    positive_mean : {"rows", "printed"}, default="rows"
        P as above, or as in the preprint.
    aggregate : {"loss", "scores"}, default="loss"
        With several positives: the mean of their losses, or the loss of their mean
        :math:`e^{s^+}`.
    negatives : Loss, default=None
        How the expectation over true negatives is estimated: an object such as ``DCL()`` or
        ``BCL()``, whose :math:`\hat E^-` stands for the factor g of N in the denominator. None is
        ``InfoNCE()``, the loss above.

    References
    ----------
    .. [1] L. Troeshestova, R. Isachenko, "Mitigating Distributional Biases in Contrastive
       Learning", 2023.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.losses import PositiveDebiased
    >>> z = torch.eye(8)
    >>> contrastive_loss(z, z, loss=PositiveDebiased(tau_plus=0.1)).isfinite().item()
    True
    """

    _parameter_constraints: dict = {
        "tau_plus": interval(0, 1, "neither", auto=True),
        "positive_mean": [StrOptions({"rows", "printed"})],
        "aggregate": [StrOptions({"loss", "scores"})],
        "negatives": [Loss, None],
    }

    def __init__(self, tau_plus=0.1, positive_mean="rows", aggregate="loss", negatives=None):
        self.tau_plus = tau_plus
        self.positive_mean = positive_mean
        self.aggregate = aggregate
        self.negatives = negatives

    @property
    def requires_y(self):
        """Whether the estimate over true negatives reads labels."""
        return self.negatives is not None and self.negatives.requires_y

    @property
    def needs_whole_rows(self):
        """Whether there is another estimate than the mean over the candidates."""
        return self.negatives is not None

    def validate(self):
        """Refuse as `negatives` what estimates nothing over true negatives."""
        if self.negatives is not None and self.negatives.needs_whole_rows:
            raise ValueError(self._no_estimate())
        if isinstance(self.negatives, PositiveDebiased):
            raise ValueError(self._no_estimate())

    def _no_estimate(self):
        return (
            "The 'negatives' parameter of PositiveDebiased must be a loss that estimates an "
            f"expectation over true negatives, got {self.negatives!r}."
        )

    def anchor_loss(self, log_mean, positives, n_candidates, bounds):
        """Return the loss of each anchor, shape (n_anchors,)."""
        positives = self._aggregated(positives)
        return self._loss(log_mean, log_mean, positives, n_candidates, bounds)

    def row_loss(self, scores, positives, same_class, n_candidates, bounds):
        """Return the loss of each anchor, shape (n_anchors,), with the estimate of `negatives`."""
        positives, lowest = self._aggregated(positives), bounds[0]
        log_mean = torch.logsumexp(scores, 1) - math.log(n_candidates)
        weighted = self.negatives.log_mean(scores, n_candidates, same_class, lowest)
        log_negative = self.negatives.log_expectation(weighted, positives, lowest)
        return self._loss(log_mean, log_negative, positives, n_candidates, bounds)

    def _aggregated(self, positives):
        if self.aggregate == "loss":
            return positives
        return (torch.logsumexp(positives, 1) - math.log(positives.shape[1]))[:, None]

    def _loss(self, log_mean, log_negative, positives, n_candidates, bounds):
        lowest, highest = bounds
        top = torch.maximum(torch.maximum(log_mean, log_negative), positives.amax(1)).detach()
        if self.positive_mean == "rows":
            top = top.clamp_min(highest)
        g, negative = ((value - top).exp()[:, None] for value in (log_mean, log_negative))
        p = (positives - top[:, None]).exp()
        if self.positive_mean == "printed":
            mean = p + g
        else:
            itself = (highest - top).exp()[:, None]
            mean = (n_candidates * g + p + itself) / (n_candidates + 2)
        floor = self.tau_plus * (lowest - top).exp()[:, None].clamp_min(1e-30)
        numerator = torch.maximum(mean - (1 - self.tau_plus) * g, floor)
        denominator = numerator + n_candidates * self.tau_plus * negative
        return (denominator.log() - numerator.log()).mean(1)
