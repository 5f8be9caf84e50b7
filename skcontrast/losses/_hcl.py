"""HCL: debiased and hardness-weighted negatives."""

from __future__ import annotations

from ..schedules import EstimableNumber, Number, interval, number
from ._dcl import DCL


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
    BCL : Weights by hardness and by the probability to be a true negative.

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
        self,
        tau_plus: EstimableNumber = 0.1,
        beta: Number = 1.0,
        detach_weights: bool = False,
    ):
        super().__init__(tau_plus=tau_plus)
        self.beta = beta
        self.detach_weights = detach_weights

    def hardness(self) -> float:
        """Return β."""
        return number(self.beta)
