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
    tau_plus : float or Schedule, default=0.1
        Class prior τ⁺ in (0, 1).
    positive_mean : {"rows", "printed"}, default="rows"
        P as above, or as in the preprint.
    aggregate : {"loss", "scores"}, default="loss"
        With several positives: the mean of their losses, or the loss of their mean
        :math:`e^{s^+}`.

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
        "tau_plus": interval(0, 1, "neither"),
        "positive_mean": [StrOptions({"rows", "printed"})],
        "aggregate": [StrOptions({"loss", "scores"})],
    }

    def __init__(self, tau_plus=0.1, positive_mean="rows", aggregate="loss"):
        self.tau_plus = tau_plus
        self.positive_mean = positive_mean
        self.aggregate = aggregate

    def anchor_loss(self, log_mean, positives, n_candidates, bounds):
        """Return the loss of each anchor, shape (n_anchors,)."""
        lowest, highest = bounds
        if self.aggregate == "scores":
            count = math.log(positives.shape[1])
            positives = (torch.logsumexp(positives, 1) - count)[:, None]
        top = torch.maximum(log_mean, positives.amax(1)).detach()
        if self.positive_mean == "rows":
            top = top.clamp_min(highest)
        g = (log_mean - top).exp()[:, None]
        p = (positives - top[:, None]).exp()
        if self.positive_mean == "printed":
            mean = p + g
        else:
            itself = (highest - top).exp()[:, None]
            mean = (n_candidates * g + p + itself) / (n_candidates + 2)
        rest = 1 - self.tau_plus
        floor = self.tau_plus * (lowest - top).exp()[:, None].clamp_min(1e-30)
        numerator = torch.maximum(mean - rest * g, floor)
        denominator = numerator + n_candidates * self.tau_plus * g
        return (denominator.log() - numerator.log()).mean(1)
