"""PUCL: positive-unlabeled contrastive learning."""

from __future__ import annotations

import torch
from torch import Tensor

from ..schedules._numbers import EstimableNumber, Number, check_numbers, current_value, interval
from ._base import Loss


class PUCL(Loss):
    r"""Positive-unlabeled contrastive loss: candidates are the rest after positives are taken.

    Where a fraction c of the samples of the anchor's class serves as positives, the candidates are
    not a sample of all data but of the unlabeled rest, with fewer false negatives. Correcting for
    that [1]_,

    .. math:: \hat E^- = \max\Big( \frac{1 - \tau^+ c}{1 - \tau^+} \cdot \frac1N \sum_j e^{s_j}
        - \frac{\tau^+ (1 - c)}{1 - \tau^+} \cdot \frac1M \sum_m e^{s^+_m},\; e^{s_{\min}} \Big)

    The two parameters have one effective degree of freedom: the loss is :class:`DCL` with the
    prior among the unlabeled, see `effective_tau_plus`, so there is no point in searching over
    both. The paper writes :math:`\alpha` for :math:`\tau^+`, and its floor :math:`e^{-1}` forgets
    the temperature.

    Parameters
    ----------
    tau_plus : float, Schedule or "auto", default=0.1
        Class prior τ⁺ in [0, 1) of the full population.
    c : float or Schedule, default=0.1
        Label frequency in [0, 1]: the fraction of a class that serves as positives. At 0 the loss
        is :class:`DCL`, at 1 :class:`InfoNCE`.

    See Also
    --------
    DCL : The same loss with one parameter.

    References
    ----------
    .. [1] L. Wang, C. Du, P. Zhao, C. Luo, Z. Zhu et al., "Contrastive Learning with Negative
       Sampling Correction", 2024.

    Examples
    --------
    >>> from skcontrast.losses import PUCL
    >>> round(PUCL(tau_plus=0.1, c=0.01).effective_tau_plus, 4)
    0.0991
    """

    _parameter_constraints: dict = {
        "tau_plus": interval(0, 1, "left", auto="tau_plus"),
        "c": interval(0, 1, "both"),
    }

    def __init__(self, tau_plus: EstimableNumber = 0.1, c: Number = 0.1):
        self.tau_plus = tau_plus
        self.c = c

    @property
    def effective_tau_plus(self) -> float:
        """The `tau_plus` of the :class:`DCL` that this loss equals, τ⁺(1 − c)/(1 − τ⁺c)."""
        check_numbers(self)
        tau_plus, c = current_value(self.tau_plus), current_value(self.c)
        return tau_plus * (1 - c) / (1 - tau_plus * c)

    def coefficients(self) -> tuple[float, float]:
        """Return a = (1 − τ⁺c)/(1 − τ⁺) and b = τ⁺(1 − c)/(1 − τ⁺)."""
        tau_plus, c = current_value(self.tau_plus), current_value(self.c)
        rest = 1 - tau_plus
        return (1 - tau_plus * c) / rest, tau_plus * (1 - c) / rest

    def true_negative_probability(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return 1 − `effective_tau_plus`, that of the unlabeled rest, at every rank."""
        return torch.full_like(ranks_from_farthest, 1 - self.effective_tau_plus)
