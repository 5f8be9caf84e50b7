"""Losses that exclude, discount or pull the closest candidates, likely false negatives."""

import math

from torch import Tensor

from .._checks import FRACTION, parameter
from ..schedules._numbers import EstimableNumber, Number, interval
from ._base import Loss
from ._posterior import false_negative_probability
from ._rows import Rows


class Ring(Loss):
    r"""Contrastive loss whose negatives form a ring around the anchor.

    The closest n = ⌊outer · N⌋ of the N candidates are kept. Of these, the closest ⌊inner · n⌋ are
    excluded as likely false negatives [1]_:

    .. math:: L = -\log \frac{e^{s^+}}{e^{s^+} + \sum_{j \in \mathrm{ring}} e^{s_j}}

    The sum is not rescaled: the size of the ring replaces N. Under the Jensen–Shannon objective,
    which has no N, the estimate is the mean over the ring.

    Parameters
    ----------
    outer : float or Schedule, default=0.5
        Share of the candidates within the outer radius, in (0, 1].
    inner : float or Schedule, default=0.1
        Share of these candidates within the inner radius, in [0, 1). With
        ``outer=1, inner=0`` the loss is :class:`InfoNCE`. The defaults are those of PUCL's tables.

    See Also
    --------
    BCL : Lower weights of the closest candidates instead of excluding them.

    References
    ----------
    .. [1] M. Wu, M. Mosse, C. Zhuang, D. Yamins, N. Goodman, "Conditional Negative Sampling for
       Contrastive Learning of Visual Representations", ICLR 2021.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.losses import InfoNCE, Ring
    >>> z = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
    >>> whole = contrastive_loss(z, z, loss=Ring(outer=1.0, inner=0.0))
    >>> torch.allclose(whole, contrastive_loss(z, z, loss=InfoNCE()))
    True
    """

    outer: Number = parameter(interval(0, 1, "right"), default=0.5)
    inner: Number = parameter(interval(0, 1, "left"), default=0.1)
    sum_of_weights = "replaces N"

    def rank_weights(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return 1[in ring] by rank."""
        within = _floor(self.outer * n_candidates)
        dropped = _floor(self.inner * within)
        if within == 0:
            raise ValueError(
                f"The ring is empty: outer={self.outer} times {n_candidates} candidates is less "
                "than 1. Increase 'outer' of Ring or the batch size."
            )
        ranks = ranks_from_farthest
        inside = (ranks > n_candidates - within) & (ranks <= n_candidates - dropped)
        return inside.to(ranks.dtype)

    def true_negative_probability(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return 1 in the ring and 0 outside of it."""
        return self.rank_weights(ranks_from_farthest, n_candidates)


def _floor(share: float) -> int:
    """Return the integer part, with a tolerance for rounding errors."""
    return math.floor(share * (1 + 1e-12))


class SoftRing(Loss):
    r"""Contrastive loss that discounts candidates by their probability of being false negatives.

    If a share u of all candidates scores lower than a candidate, it is a false negative with
    probability

    .. math:: p(\mathrm{FN} \mid u) = f \tau^+ + (1 - f \tau^+)\,
        \sigma\bigl(k\,(\operatorname{logit} u - m)\bigr), \qquad
        \int_0^1 p(\mathrm{FN} \mid u)\, du = \tau^+.

    The sharpness k is how well ranks separate the classes. The floor f is the share of samples of
    the anchor's class that are far from it. The condition determines m. The estimate is

    .. math:: \hat E^- = \frac1N \sum_j w_j e^{s_j}, \qquad
        w_j \propto \bigl(1 - p(\mathrm{FN} \mid u_j)\bigr)\, e^{\beta s_j}.

    At k = 0, ranks have no effect and the loss is :class:`InfoNCE`. For k → ∞ the closest share τ⁺
    of the candidates is excluded, as by :class:`Ring` with ``outer=1, inner=tau_plus``, except
    that N is not replaced by the size of the ring. There is a k for any AUC between 1/2 and 1; in
    the model of :class:`BCL` the AUC is at most 5/6. No cdf is inverted: u is the rank among
    unlabeled candidates itself.

    Parameters
    ----------
    sharpness : float or Schedule, default=2.0
        The sharpness k ≥ 0. A poor encoder needs a small one, a better encoder a larger one.
    tau_plus : float, Schedule or "auto", default=0.1
        Class prior τ⁺ in [0, 1).
    beta : float or Schedule, default=0.0
        Hardness β ≥ 0, as in :class:`HCL`.
    floor : float or Schedule, default=0.0
        The smallest probability, as a share f of τ⁺, in [0, 1]. It is above 0 if classes consist
        of several clusters. At 1, ranks have no effect, as at k = 0.
    detach_weights : bool, default=True
        Whether the factor :math:`e^{\beta s}` of the weights is detached from the gradient. The
        probability always is.

    See Also
    --------
    BCL : Posterior from a model of the scores.
    Ring : Exclusion of the closest candidates.
    skcontrast.estimation.estimate_soft_ring : Estimates of k and f from labels.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.losses import InfoNCE, SoftRing
    >>> z = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
    >>> flat = contrastive_loss(z, z, loss=SoftRing(sharpness=0.0))
    >>> torch.allclose(flat, contrastive_loss(z, z, loss=InfoNCE()))
    True
    """

    sharpness: Number = parameter(interval(0, None, "left"), default=2.0)
    tau_plus: EstimableNumber = parameter(interval(0, 1, "left", auto="tau_plus"), default=0.1)
    beta: Number = parameter(interval(0, None, "left"), default=0.0)
    floor: Number = parameter(interval(0, 1, "both"), default=0.0)
    detach_weights: bool = parameter(["boolean"], default=True)

    def hardness(self) -> float:
        """Return β."""
        return self.beta

    def rank_weights(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return p(TN | u) by rank."""
        return self.true_negative_probability(ranks_from_farthest, n_candidates)

    def true_negative_probability(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return p(TN | u) = 1 − p(FN | u) by rank."""
        p = _by_rank(ranks_from_farthest, n_candidates, self.sharpness, self.tau_plus, self.floor)
        return 1 - p


class SoftSupCon(Loss):
    r"""Contrastive loss that pulls candidates by their probability of sharing the anchor's class.

    As in :class:`SoftRing`, the share u of the candidates that score lower determines how likely a
    candidate is of the anchor's class: :math:`p_j = p(\mathrm{FN} \mid u_j)` with sharpness k and
    prior τ⁺. Likely samples of this class are pushed away less, and pulled:

    .. math:: L_i = -(1 - \lambda)\, s_i^+ - \lambda \sum_j \frac{p_j}{\sum_l p_l}\, s_{ij}
        + \log\Bigl(e^{s_i^+} + \sum_j w_j e^{s_{ij}}\Bigr), \qquad
        w_j = N \frac{1 - p_j}{\sum_l (1 - p_l)}.

    It replaces the classes of :class:`SupCon` by probabilities, as :class:`SoftRing` does with
    those of :class:`Supervised`. With λ = 0 it is :class:`SoftRing`. The probabilities are
    detached from the gradient. The mean over several positives is outside the logarithm.

    Parameters
    ----------
    sharpness : float or Schedule, default=20.0
        The sharpness k ≥ 0. With 20, nearly all of the pull acts on the closest share τ⁺.
    tau_plus : float, Schedule or "auto", default=0.1
        Class prior τ⁺ in (0, 1).
    pull : float, default=0.3
        Share λ of the pull that acts on candidates, in [0, 1].

    See Also
    --------
    SoftRing : Lower weights of likely false negatives, without a pull.
    SemiSupCon : Pseudo-labels from a few labels.

    Notes
    -----
    If most of the closest candidates are of other classes, this loss makes the embedding worse.
    It has no Jensen–Shannon form.

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

    sharpness: Number = parameter(interval(0, None, "left"), default=20.0)
    tau_plus: EstimableNumber = parameter(interval(0, 1, "neither", auto="tau_plus"), default=0.1)
    pull: float = parameter(FRACTION, default=0.3)
    pulls = True

    def rank_weights(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return p(FN | u) by rank."""
        p = _by_rank(ranks_from_farthest, n_candidates, self.sharpness, self.tau_plus)
        # Smaller values have no effect, and denormal numbers are slow on a CPU.
        return p.masked_fill(p < 1e-30 * p.max(), 0.0)

    def losses(self, rows: Rows) -> Tensor:
        """Return the losses: candidates are pushed by p(TN | u) and pulled by p(FN | u).

        Members of a positive group have the anchor's class with probability 1.
        """
        # 1 − p by rank: computed from p in float32, it would be 0 for the closest candidates.
        ring = SoftRing(sharpness=self.sharpness, tau_plus=self.tau_plus)
        p, push = rows.rank_weights(self), rows.rank_weights(ring)
        if rows.has_classes:
            p, push = p.masked_fill(rows.same_class, 1.0), push.masked_fill(rows.same_class, 0.0)
        pushed = self._from_estimate(rows, rows.log_expectation(ring, push))
        total, mass = rows.weighted_sum(p)
        pulled = total / mass.masked_fill(mass == 0, 1.0)
        share = self.pull * (mass > 0).to(mass.dtype)
        return pushed + share * (rows.positives.mean(1) - pulled)

    def true_negative_probability(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return p(TN | u) = 1 − p(FN | u) by rank."""
        return 1 - self.rank_weights(ranks_from_farthest, n_candidates)


def _by_rank(ranks_from_farthest: Tensor, n: int, *parameters: float) -> Tensor:
    """Return p(FN | u) by rank among n candidates, from sharpness, prior, optional floor."""
    # The middle of each step of the empirical cdf, so that 0 < u < 1.
    u = (ranks_from_farthest - 0.5).clamp_min(0) / n
    return false_negative_probability(u, *parameters)
