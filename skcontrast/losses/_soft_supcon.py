"""SoftSupCon: the closest candidates are pulled as well, as likely as they are of the class."""

from __future__ import annotations

import torch
from torch import Tensor

from .._checks import FRACTION
from ..schedules._numbers import EstimableNumber, current_value, interval
from ._base import Loss
from ._posterior import false_negative_probability


class SoftSupCon(Loss):
    r"""Contrastive loss that pulls candidates by their probability of sharing the anchor's class.

    As in :class:`SoftRing`, the share u of the candidates that score lower tells how likely a
    candidate is of the anchor's class, :math:`p_j = p(\mathrm{FN} \mid u_j)` with sharpness k and
    prior τ⁺. Such candidates push less, and part of the pull is theirs:

    .. math:: L_i = -(1 - \lambda)\, s_i^+ - \lambda \sum_j \frac{p_j}{\sum_l p_l}\, s_{ij}
        + \log\Bigl(e^{s_i^+} + \sum_j w_j e^{s_{ij}}\Bigr), \qquad
        w_j = N \frac{1 - p_j}{\sum_l (1 - p_l)}.

    It is to :class:`SupCon` what :class:`SoftRing` is to :class:`Supervised`: an expectation over
    the classes in the place of the classes. With λ = 0 it is :class:`SoftRing`. The probabilities
    carry no gradient. The mean over several positives is outside the logarithm.

    Parameters
    ----------
    sharpness : float, Schedule or "auto", default=20.0
        The sharpness k ≥ 0. With 20, nearly all of the pull goes to the closest share τ⁺.
    tau_plus : float, Schedule or "auto", default=0.1
        Class prior τ⁺ in (0, 1).
    pull : float, default=0.3
        Share λ of the pull that is for candidates, in [0, 1].

    See Also
    --------
    SoftRing : Only lowers the weight of likely false negatives.
    SemiSupCon : Spreads a few labels instead.

    Notes
    -----
    Where most of the closest candidates are not of the anchor's class, this loss makes an
    embedding worse. The loss has no Jensen–Shannon form.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.losses import SoftRing, SoftSupCon
    >>> z = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
    >>> value = contrastive_loss(z, z, loss=SoftSupCon(sharpness=2.0, pull=0.0))
    >>> torch.allclose(value, contrastive_loss(z, z, loss=SoftRing(sharpness=2.0)))
    True
    """

    _parameter_constraints: dict = {
        "sharpness": interval(0, None, "left", auto="sharpness"),
        "tau_plus": interval(0, 1, "neither", auto="tau_plus"),
        "pull": FRACTION,
    }

    def __init__(
        self, sharpness: EstimableNumber = 20.0, tau_plus: EstimableNumber = 0.1, pull: float = 0.3
    ):
        self.sharpness = sharpness
        self.tau_plus = tau_plus
        self.pull = pull

    def rank_weights(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return p(FN | u) by rank."""
        # The middle of a candidate's step in the empirical cdf: u is inside (0, 1).
        u = (ranks_from_farthest - 0.5).clamp_min(0) / n_candidates
        return false_negative_probability(
            u, current_value(self.sharpness), current_value(self.tau_plus)
        )

    def push_and_pull(self, weights: Tensor) -> tuple[Tensor, Tensor]:
        """Push by p(TN | u), and pull by p(FN | u)."""
        return 1 - weights, weights

    def pull_share(self, total: Tensor, n_positives: int) -> Tensor:
        """Return λ."""
        return torch.full_like(total, self.pull)

    def true_negative_probability(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return p(TN | u) = 1 − p(FN | u) by rank."""
        return 1 - self.rank_weights(ranks_from_farthest, n_candidates)
