"""PositiveDebiased: a correction of the positive term."""

from __future__ import annotations

import math
from typing import Literal

import torch
from torch import Tensor

from .._checks import check_component, parameter
from .._warnings import warn
from ..schedules._numbers import EstimableNumber, current_value, interval
from ._base import Loss
from ._debiased import InfoNCE


class PositiveDebiased(Loss):
    r"""Contrastive loss with a debiased positive term instead of a debiased negative one.

    An augmented view is closer than a random sample of the anchor's class. With the mean over
    all views of the row, that of the anchor included, in the place of the expectation over all
    data [1]_,

    .. math:: P = \frac{\sum_j e^{s_j} + e^{s^+} + e^{s_{\max}}}{N + 2}, \qquad
        g = \frac1N \sum_j e^{s_j}, \qquad
        L = -\log \frac{P - \tau^- g}{P + (N \tau^+ - \tau^-)\, g}

    where :math:`s_{\max}` is the score of an anchor with itself (1/temperature for cosine). The
    preprint writes :math:`e^{s^+} + g` for P, which is a sum and not a mean. With the consistent
    :math:`P = \tau^+ e^{s^+} + \tau^- g` the loss would be exactly InfoNCE; the authors' P pulls
    positives with a weight of about 1/(N + 2). The numerator can only be negative where
    N + 2 < 2/τ⁺; it is floored at :math:`\tau^+ e^{s_{\min}}`, with a warning. At low temperatures
    the constant :math:`e^{s_{\max}}` is most of P, and little is learned: take .5 rather than .2,
    or the printed form.

    Parameters
    ----------
    tau_plus : float, Schedule or "auto", default=0.1
        Class prior τ⁺ in (0, 1).
    negatives : Loss, default=None
        How the expectation over true negatives is estimated: an object such as ``DCL()`` or
        ``BCL()``, whose :math:`\hat E^-` replaces the factor g of N in the denominator. None is
        ``InfoNCE()``, the loss above.
    form : {"mean", "printed"}, default="mean"
        P as above, or that of the preprint, whose numerator :math:`e^{s^+} + \tau^+ g` needs no
        floor.

    See Also
    --------
    DCL : Corrects the expectation over negatives instead of the positive term.
    PUCL : Corrects the negatives where a fraction of each class serves as positives.

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

    tau_plus: EstimableNumber = parameter(interval(0, 1, "neither", auto="tau_plus"), default=0.1)
    # checked in validate, which has the better message
    negatives: Loss | None = parameter(default=None)
    form: Literal["mean", "printed"] = parameter({"mean", "printed"}, default="mean")

    @property
    def requires_y(self) -> bool:
        """Whether the estimate over true negatives reads labels."""
        return self.negatives is not None and self.negatives.requires_y

    def validate(self) -> None:
        """Refuse `negatives` that are not an estimate over true negatives."""
        negatives = check_component(
            self.negatives, Loss, owner="PositiveDebiased", parameter="negatives", default=InfoNCE
        )
        if not negatives.is_estimate:
            raise ValueError(
                "The 'negatives' parameter of PositiveDebiased must be a loss that estimates an "
                f"expectation over true negatives, got {negatives!r}."
            )

    def estimators(self) -> tuple[Loss, ...]:
        """Return the plain mean, and the estimate over true negatives if it is a different one."""
        return (InfoNCE(),) if self.negatives is None else (InfoNCE(), self.negatives)

    def anchor_loss(
        self,
        log_means: list[Tensor],
        positives: Tensor,
        n_candidates: int,
        bounds: tuple[float, Tensor | float],
    ) -> Tensor:
        """Return the loss of each anchor, shape (n_anchors,)."""
        if not all(isinstance(b, Tensor) or math.isfinite(b) for b in bounds):
            raise ValueError(
                "PositiveDebiased needs finite bounds of the scores, which this 'similarity' "
                "does not have."
            )
        log_mean, log_negative = log_means[0], log_means[0]
        if self.negatives is not None:
            log_negative = self.negatives.log_expectation(log_means[1], positives, bounds[0])
        log_numerator = self._log_numerator(log_mean, positives, n_candidates, bounds)
        log_scale = math.log(n_candidates * current_value(self.tau_plus))
        excess = log_scale + log_negative[:, None] - log_numerator
        return torch.logaddexp(excess, torch.zeros_like(excess)).mean(1)

    def _log_numerator(
        self,
        log_mean: Tensor,
        positives: Tensor,
        n_candidates: int,
        bounds: tuple[float, Tensor | float],
    ) -> Tensor:
        """Return log(P − τ⁻ g), floored, shape (n_anchors, n_positives)."""
        (lowest, highest), tau_plus = bounds, current_value(self.tau_plus)
        if self.form == "printed":
            return torch.logaddexp(positives, log_mean[:, None] + math.log(tau_plus))
        if isinstance(highest, Tensor):
            highest = highest[:, None]
        # One for each positive: far below the others, all of its terms would vanish.
        top = torch.maximum(log_mean[:, None], positives).detach().clamp_min(highest)
        g, p = (log_mean[:, None] - top).exp(), (positives - top).exp()
        itself = (highest - top).exp()
        mean = (n_candidates * g + p + itself) / (n_candidates + 2)
        numerator = mean - (1 - tau_plus) * g
        log_floor = math.log(tau_plus) + lowest
        above = ~(numerator.detach().clamp_min(0).log() + top <= log_floor)
        if n_candidates + 2 < 2 / tau_plus and not bool(above.all()):
            warn(
                f"PositiveDebiased: with tau_plus={tau_plus} and {n_candidates} candidates "
                "positive terms are negative and floored. Raise 'tau_plus' or the batch."
            )
        log_numerator = torch.where(above, numerator, 1.0).log() + top
        return torch.where(above, log_numerator, log_floor)
