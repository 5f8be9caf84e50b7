"""DCL and HCL: the debiased contrastive loss, and its hardness-weighted form."""

from __future__ import annotations

import torch
from torch import Tensor

from ..schedules._numbers import EstimableNumber, Number, current_value, interval
from ._base import Loss


class DCL(Loss):
    r"""Debiased contrastive loss: subtracts the share of false negatives in expectation.

    A random candidate has the anchor's class with probability :math:`\tau^+`. The expectation
    over true negatives follows from the one over all candidates and the one over positives [1]_:

    .. math:: \hat E^- = \max\Big( \frac{1}{1 - \tau^+} \Big( \frac1N \sum_j e^{s_j}
        - \tau^+ \frac1M \sum_m e^{s^+_m} \Big),\; e^{s_{\min}} \Big), \qquad
        L = -\log \frac{e^{s^+}}{e^{s^+} + N \hat E^-}

    where :math:`s_{\min}` is the lowest possible score (−1/temperature for cosine). An anchor
    whose estimate is floored there passes no gradient through it.

    Parameters
    ----------
    tau_plus : float, Schedule or "auto", default=0.1
        Class prior τ⁺ in [0, 1): the probability that a random sample has the anchor's class,
        about one over the number of classes. At 0 the loss is :class:`InfoNCE`.

    See Also
    --------
    HCL : The same with candidates weighted by their hardness.
    PUCL : The same where a fraction of each class serves as positives.
    Supervised : The mean over true negatives that this estimates, from labels.

    References
    ----------
    .. [1] C.-Y. Chuang, J. Robinson, L. Yen-Chen, A. Torralba, S. Jegelka, "Debiased Contrastive
       Learning", NeurIPS 2020.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.losses import DCL, InfoNCE
    >>> z = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
    >>> same = contrastive_loss(z, z, loss=DCL(tau_plus=0)), contrastive_loss(z, z, loss=InfoNCE())
    >>> torch.allclose(*same)
    True
    """

    _parameter_constraints: dict = {"tau_plus": interval(0, 1, "left", auto="tau_plus")}

    def __init__(self, tau_plus: EstimableNumber = 0.1):
        self.tau_plus = tau_plus

    def coefficients(self) -> tuple[float, float]:
        """Return a = 1/τ⁻ and b = τ⁺/τ⁻."""
        tau_plus = current_value(self.tau_plus)
        return 1 / (1 - tau_plus), tau_plus / (1 - tau_plus)

    def true_negative_probability(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return 1 − τ⁺ at every rank."""
        return torch.full_like(ranks_from_farthest, 1 - current_value(self.tau_plus))


class HCL(DCL):
    r"""Hard contrastive loss: :class:`DCL` with candidates weighted by their hardness.

    The mean over candidates becomes a weighted one, candidates close to the anchor counting
    more [1]_:

    .. math:: \hat E^- = \max\Big( \frac{1}{1 - \tau^+} \Big( \frac1N \sum_j w_j e^{s_j}
        - \tau^+ \frac1M \sum_m e^{s^+_m} \Big),\; e^{s_{\min}} \Big), \qquad
        w_j = \frac{e^{\beta s_j}}{\frac1N \sum_k e^{\beta s_k}}

    Parameters
    ----------
    tau_plus : float, Schedule or "auto", default=0.1
        Class prior τ⁺ in [0, 1).
    beta : float or Schedule, default=1.0
        Hardness β ≥ 0. At 0 the loss is :class:`DCL`.
    detach_weights : bool, default=False
        Whether the weights carry no gradient. The authors' code differentiates them.

    See Also
    --------
    DCL : The same without weights.
    BCL : Weights by hardness and by the probability of being a true negative.

    References
    ----------
    .. [1] J. Robinson, C.-Y. Chuang, S. Sra, S. Jegelka, "Contrastive Learning with Hard Negative
       Samples", ICLR 2021.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.losses import DCL, HCL
    >>> z = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
    >>> same = contrastive_loss(z, z, loss=HCL(beta=0)), contrastive_loss(z, z, loss=DCL())
    >>> torch.allclose(*same)
    True
    """

    _parameter_constraints: dict = {
        **DCL._parameter_constraints,
        "beta": interval(0, None, "left"),
        "detach_weights": ["boolean"],
    }

    def __init__(
        self, tau_plus: EstimableNumber = 0.1, beta: Number = 1.0, detach_weights: bool = False
    ):
        super().__init__(tau_plus=tau_plus)
        self.beta = beta
        self.detach_weights = detach_weights

    def hardness(self) -> float:
        """Return β."""
        return current_value(self.beta)
