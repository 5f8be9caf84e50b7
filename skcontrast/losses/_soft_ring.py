"""SoftRing: the closest candidates count less, as sharply as the encoder separates classes."""

from __future__ import annotations

from torch import Tensor

from ..schedules._numbers import EstimableNumber, Number, current_value, interval
from ._base import Loss
from ._posterior import false_negative_probability


class SoftRing(Loss):
    r"""Contrastive loss that discounts candidates by their probability of being false negatives.

    If a share u of all candidates scores lower than a candidate, it is a false negative with
    probability

    .. math:: p(\mathrm{FN} \mid u) = f \tau^+ + (1 - f \tau^+)\,
        \sigma\bigl(k\,(\operatorname{logit} u - m)\bigr), \qquad
        \int_0^1 p(\mathrm{FN} \mid u)\, du = \tau^+,

    where the sharpness k is how well ranks separate the classes, the floor f is how many samples
    of a class are nowhere near the anchor, and the condition fixes m. The estimate is

    .. math:: \hat E^- = \frac1N \sum_j w_j e^{s_j}, \qquad
        w_j \propto \bigl(1 - p(\mathrm{FN} \mid u_j)\bigr)\, e^{\beta s_j}.

    At k = 0 ranks carry no information and the loss is :class:`InfoNCE`. For k → ∞ the closest
    share τ⁺ of the candidates is dropped, as by :class:`Ring` with ``outer=1, inner=tau_plus``,
    except that N is not replaced by the size of the ring. Unlike in :class:`BCL`, whose model of
    the scores has an AUC of at most 5/6, k belongs to any AUC between 1/2 and 1, see
    :func:`skcontrast.estimation.sharpness_from_auc`, and nothing has to be inverted: u is the rank
    among unlabeled candidates itself.

    Parameters
    ----------
    sharpness : float, Schedule or "auto", default=2.0
        The sharpness k ≥ 0. A poor encoder needs a small one, which grows as it learns; "auto"
        follows the labeled samples.
    tau_plus : float, Schedule or "auto", default=0.1
        Class prior τ⁺ in [0, 1).
    beta : float or Schedule, default=0.0
        Hardness β ≥ 0, as in :class:`HCL`.
    floor : float, Schedule or "auto", default=0.0
        The least probability f, as a share of τ⁺, in [0, 1]: where classes are made of several
        clusters, part of a class is far away. At 1 ranks carry no information, as at k = 0.
        "auto" follows the labeled samples.
    detach_weights : bool, default=True
        Whether the factor :math:`e^{\beta s}` of the weights carries no gradient. The probability
        never does.

    See Also
    --------
    BCL : A posterior from a model of the scores.
    Ring : Drops the closest candidates altogether.
    skcontrast.estimation.estimate_soft_ring : k and f from labels.

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

    _parameter_constraints: dict = {
        "sharpness": interval(0, None, "left", auto="sharpness"),
        "tau_plus": interval(0, 1, "left", auto="tau_plus"),
        "beta": interval(0, None, "left"),
        "floor": interval(0, 1, "both", auto="floor"),
        "detach_weights": ["boolean"],
    }

    def __init__(
        self,
        sharpness: EstimableNumber = 2.0,
        tau_plus: EstimableNumber = 0.1,
        beta: Number = 0.0,
        floor: EstimableNumber = 0.0,
        detach_weights: bool = True,
    ):
        self.sharpness = sharpness
        self.tau_plus = tau_plus
        self.beta = beta
        self.floor = floor
        self.detach_weights = detach_weights

    def hardness(self) -> float:
        """Return β."""
        return current_value(self.beta)

    def rank_weights(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return p(TN | u) by rank."""
        return self.true_negative_probability(ranks_from_farthest, n_candidates)

    def true_negative_probability(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return p(TN | u) = 1 − p(FN | u) by rank."""
        # The middle of a candidate's step in the empirical cdf: u is inside (0, 1).
        u = (ranks_from_farthest - 0.5).clamp_min(0) / n_candidates
        return 1 - false_negative_probability(
            u,
            current_value(self.sharpness),
            current_value(self.tau_plus),
            current_value(self.floor),
        )
