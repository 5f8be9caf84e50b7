"""SoftSupCon: the closest candidates are pulled as well, as likely as they are of the class."""

from __future__ import annotations

from numbers import Real

import torch
from torch import Tensor

from .._parameters import EstimableNumber, Interval, interval, number
from ._base import Loss
from ._posterior import false_negative_probability

__all__ = ["SoftSupCon"]


class SoftSupCon(Loss):
    r"""Contrastive loss that pulls candidates by the probability to share the anchor's class.

    As in :class:`SoftRing`, the share u of the candidates that score lower says how likely a
    candidate is of the anchor's class, :math:`p_j = p(\mathrm{FN} \mid u_j)` with sharpness k and
    prior τ⁺. Such candidates push less, and part of the pull is theirs:

    .. math:: L_i = -(1 - \lambda)\, s_i^+ - \lambda \sum_j \frac{p_j}{\sum_l p_l}\, s_{ij}
        + \log\Bigl(e^{s_i^+} + \sum_j w_j e^{s_{ij}}\Bigr), \qquad
        w_j = N \frac{1 - p_j}{\sum_l (1 - p_l)}.

    It is to :class:`SupCon` what :class:`SoftRing` is to :class:`Supervised`: an expectation over
    the classes in the place of the classes. With λ = 0 it is :class:`SoftRing`. The probabilities
    carry no gradient. The mean over several positives stands outside the logarithm.

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
    Where the closest candidates are mostly not of the anchor's class, this makes an embedding
    worse. The loss has no Jensen–Shannon form, and is computed by autograd from all scores of a
    tile: on a CPU it takes 5 to 10 times as long as :class:`BCL`, without the network.

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
        "pull": [Interval(Real, 0, 1, closed="both")],
    }

    def __init__(
        self,
        sharpness: EstimableNumber = 20.0,
        tau_plus: EstimableNumber = 0.1,
        pull: float = 0.3,
    ):
        self.sharpness = sharpness
        self.tau_plus = tau_plus
        self.pull = pull

    def row_loss(self, scores: Tensor, positives: Tensor, same_class: Tensor | None) -> Tensor:
        """Return the loss of each anchor, shape (n_anchors,)."""
        is_candidate = scores.isfinite()
        n = is_candidate.sum(1, keepdim=True)
        p = self._probabilities(scores.detach(), n) * is_candidate
        push = (1 - p) * is_candidate
        push = push * (n / push.sum(1, keepdim=True))
        pushed = torch.where(push > 0, scores + push.log(), -torch.inf)
        excess = torch.logaddexp(torch.logsumexp(pushed, 1)[:, None], positives)
        pulled = (p * torch.where(is_candidate, scores, 0.0)).sum(1) / p.sum(1)
        own = (excess - (1 - self.pull) * positives).mean(1)
        return own - self.pull * pulled

    def true_negative_probability(self, ranks: Tensor, n_candidates: int) -> Tensor:
        """Return p(TN | u) = 1 − p(FN | u) by rank."""
        return 1 - self._false_negative_probability((ranks - 0.5).clamp_min(0) / n_candidates)

    def _false_negative_probability(self, u: Tensor) -> Tensor:
        return false_negative_probability(u, number(self.sharpness), number(self.tau_plus))

    def _probabilities(self, scores: Tensor, n: Tensor) -> Tensor:
        """Return p(FN | u) of each candidate, shape (n_anchors, n); ties have the same u."""
        ordered = scores.sort(1).values.contiguous()
        at_most = torch.searchsorted(ordered, scores.contiguous(), right=True)
        # Excluded candidates, at −inf, lie below all others and are not among the n.
        ranks = at_most.double() - (scores.shape[1] - n)
        u = (ranks - 0.5).clamp_min(0.5) / n
        return self._false_negative_probability(u).to(scores.dtype)
