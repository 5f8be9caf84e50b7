"""NonparametricBCL: weights from ranks alone."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from .._checks import StrOptions
from ..schedules._numbers import EstimableNumber, Number, current_value, interval
from ._base import Loss
from ._posterior import phi_by_rank, ratio, true_negative_probability


class NonparametricBCL(Loss):
    r"""Bayesian contrastive loss with rank-only weights, as in the authors' rebuttal.

    The wanted density of negatives mixes easy true negatives and hard ones by β [1]_; candidates
    are weighted by its ratio to the density of unlabeled scores,

    .. math:: \omega = \psi / \varphi_{\mathrm{UN}}, \qquad \psi = \frac{(1 - \beta)\alpha
        \varphi_{(1)} + \beta (1 - \alpha) \varphi_{(2)}}{(1 - \beta)\alpha + \beta(1 - \alpha)},
        \qquad \varphi_{(1)} = 2\varphi(1 - \Phi),\; \varphi_{(2)} = 2\varphi\Phi

    The weight grows with similarity, and the loss mines hard negatives, where
    :math:`\beta / (1 - \beta) > \alpha (1 + a) / ((1 - \alpha)(1 - a))` with
    :math:`a = (1 - 2\alpha)(1 - 2\tau^+)`; below that it debiases. At β = .5 the estimate equals
    the one of :class:`BCL` at its β = 0.

    Parameters
    ----------
    alpha : float, Schedule or "auto", default=0.7
        Location parameter α in [.5, 1], as in :class:`BCL`.
    beta : float or Schedule, default=0.5
        Share of hard negatives, in [0, 1]. Not the β of :class:`BCL`. α = β = 1 is refused: no
        density is left.
    tau_plus : float, Schedule or "auto", default=0.1
        Class prior τ⁺ in [0, 1).
    normalize_weights : bool, default=False
        Whether the weights are scaled to mean 1. The authors' code does not. They are a ratio of
        densities and have mean 1 in expectation, so that the estimate is one of an expectation
        either way, under the Jensen–Shannon objective too.
    form : {"inverted", "printed"}, default="inverted"
        Whether Φ is obtained from the empirical cdf by inversion, or the loss is that of the
        printed rebuttal: Φ is the empirical cdf itself, and ``alpha="auto"`` takes from labels the
        macro-AUC A itself instead of (6A − 1)/4.
        The mean of the weights is then not 1. The authors' code inverts.

    See Also
    --------
    BCL : Weights by the posterior probability of being a true negative.

    Notes
    -----
    With α = 1 or β = 0 the closest candidate has the weight 0. A single candidate then leaves the
    estimate at its floor, where the printed loss is 0.

    References
    ----------
    .. [1] B. Liu, B. Wang, "Bayesian Self-Supervised Contrastive Learning", rebuttal, 2023.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.losses import InfoNCE, NonparametricBCL
    >>> z = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
    >>> flat = contrastive_loss(z, z, loss=NonparametricBCL(alpha=0.5, beta=0.5))
    >>> torch.allclose(flat, contrastive_loss(z, z, loss=InfoNCE()))
    True
    """

    _parameter_constraints: dict = {
        "alpha": interval(0.5, 1, "both", auto="alpha"),
        "beta": interval(0, 1, "both"),
        "tau_plus": interval(0, 1, "left", auto="tau_plus"),
        "normalize_weights": ["boolean"],
        "form": [StrOptions({"inverted", "printed"})],
    }

    def __init__(
        self,
        alpha: EstimableNumber = 0.7,
        beta: Number = 0.5,
        tau_plus: EstimableNumber = 0.1,
        normalize_weights: bool = False,
        form: Literal["inverted", "printed"] = "inverted",
    ):
        self.alpha = alpha
        self.beta = beta
        self.tau_plus = tau_plus
        self.normalize_weights = normalize_weights
        self.form = form

    @property
    def sum_of_weights(self) -> Literal["N", "free"]:  # type: ignore[override]
        """Whether the weights are scaled to mean 1: by `normalize_weights`."""
        return "N" if self.normalize_weights else "free"

    def validate(self) -> None:
        """Refuse α = β = 1."""
        if self.alpha == 1 and self.beta == 1:
            raise ValueError(
                "The 'alpha' and 'beta' parameters of NonparametricBCL must not both be 1: no "
                "density of negatives is left."
            )

    def rank_weights(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return ω by rank."""
        alpha, beta, tau_plus = map(current_value, (self.alpha, self.beta, self.tau_plus))
        phi = phi_by_rank(ranks_from_farthest, n_candidates, alpha, tau_plus, self.form)
        wanted = 2 * (alpha * (1 - beta) * (1 - phi) + (1 - alpha) * beta * phi)
        wanted = wanted / (alpha * (1 - beta) + (1 - alpha) * beta)
        true = 2 * (alpha * (1 - phi) + (1 - alpha) * phi)
        false = 2 * ((1 - alpha) * (1 - phi) + alpha * phi)
        return ratio(wanted, (1 - tau_plus) * true + tau_plus * false)

    def true_negative_probability(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return p(TN | s) by rank: that of :class:`BCL`, whatever is wanted of the negatives."""
        alpha, tau_plus = current_value(self.alpha), current_value(self.tau_plus)
        phi = phi_by_rank(ranks_from_farthest, n_candidates, alpha, tau_plus, self.form)
        return true_negative_probability(phi, alpha, tau_plus)
