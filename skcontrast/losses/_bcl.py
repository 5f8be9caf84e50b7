"""BCL and NonparametricBCL: weights by the probability of being a true negative."""

from typing import Any, Literal, Self

from torch import Tensor

from .._checks import parameter
from ..schedules._numbers import EstimableNumber, Linear, Number, Steps, interval
from ._base import Loss
from ._posterior import invert_unlabeled_cdf, ratio, true_negative_probability


class _ByAlpha(Loss):
    """The parameters of both losses, and the posterior that they have in common."""

    alpha: EstimableNumber = parameter(interval(0.5, 1, "both", auto="alpha"), default=0.7)
    beta: Number = parameter(interval(0, None, "left"), default=0.0)
    tau_plus: EstimableNumber = parameter(interval(0, 1, "left", auto="tau_plus"), default=0.1)
    form: Literal["inverted", "printed"] = parameter({"inverted", "printed"}, default="inverted")

    def _phi(self, ranks: Tensor, n: int) -> Tensor:
        """Return Φ at ranks 1 to n: from Φ_UN = rank/n by inversion, or Φ_UN itself as printed."""
        cdf = ranks / n
        if self.form == "printed":
            return cdf
        return invert_unlabeled_cdf(cdf, self.alpha, self.tau_plus)

    def true_negative_probability(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return p(TN | s) by rank."""
        phi = self._phi(ranks_from_farthest, n_candidates)
        return true_negative_probability(phi, self.alpha, self.tau_plus)


class BCL(_ByAlpha):
    r"""Bayesian contrastive loss: weights by the probability of being a true negative.

    Equations 1 to 3 and 24 to 26 of [1]_: importance weights ω. A candidate's rank determines how
    likely it is to share the anchor's class: false negatives score high. With Φ the cdf of the
    score density from which true and false negatives are drawn as the lower and the upper of two,
    mixed by α,

    .. math:: \hat E^- = \frac1N \sum_j w_j e^{s_j}, \qquad
        w_j \propto p(\mathrm{TN} \mid s_j)\, e^{\beta s_j}

    with :math:`p(\mathrm{TN} \mid s) \propto \tau^- (\alpha + (1 - 2\alpha)\Phi)` and
    :math:`p(\mathrm{FN} \mid s) \propto \tau^+ (1 - \alpha + (2\alpha - 1)\Phi)`.
    The empirical cdf of the candidates estimates the cdf of *unlabeled* scores, Φ_UN, from which
    Φ follows by solving a quadratic equation. The text of the paper has Φ_UN instead of Φ;
    that estimate stays biased, however many candidates there are.

    The default values are those of the last epochs of the paper; :meth:`paper` has its schedules.
    The authors' repository calls BCL what is :class:`NonparametricBCL` here.

    Parameters
    ----------
    alpha : float, Schedule or "auto", default=0.7
        Location parameter α in [.5, 1]: how well the encoder separates the classes. It is
        (6A − 1)/4 for a macro-AUC of A. At .5 ranks carry no information; at 1 the closest
        candidate has the weight 0, if τ⁺ > 0, so that a single one leaves only the floor.
    beta : float or Schedule, default=0.0
        Hardness β ≥ 0, as in :class:`HCL`.
    tau_plus : float, Schedule or "auto", default=0.1
        Class prior τ⁺ in [0, 1).
    form : {"inverted", "printed"}, default="inverted"
        Whether Φ is obtained from the empirical cdf by inversion, or the loss is that of the
        printed paper: Φ is the empirical cdf itself, and ``alpha="auto"`` takes from labels the
        macro-AUC A itself instead of (6A − 1)/4.
    detach_weights : bool, default=True
        Whether the factor :math:`e^{\beta s}` of the weights carries no gradient. The posterior
        never does.

    See Also
    --------
    NonparametricBCL : Weights from ranks alone, as in the authors' rebuttal.
    skcontrast.estimation.importance_weights : The weights ω of the candidates of a batch.
    skcontrast.estimation.estimate_alpha_and_tau_plus : α and τ⁺ from the ranks of positives.

    Notes
    -----
    Candidates of equal score share the mean of the posteriors at their ranks. The paper gives all
    of them the highest of their ranks, which in float32, where rounding makes scores equal, moves
    the loss of tight classes by up to 3 %.

    References
    ----------
    .. [1] B. Liu, B. Wang, "Bayesian Self-Supervised Contrastive Learning", arXiv:2301.11673v1,
       2023.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.losses import BCL, InfoNCE
    >>> z = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
    >>> same = contrastive_loss(z, z, loss=BCL(alpha=0.5)), contrastive_loss(z, z, loss=InfoNCE())
    >>> torch.allclose(*same)
    True
    """

    detach_weights: bool = parameter(["boolean"], default=True)

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the loss with the schedules of its paper, for a fit of any length.

        α is .5, and .7 in the last quarter of the epochs; β falls from 2 to 0 in 20 steps.
        Other parameters are keywords, such as ``tau_plus=1 / 6`` for six classes.
        """
        alpha, beta = Steps([0.5, 0.7], milestones=[0.75]), Linear(2, 0, n_steps=20)
        return cls(**{"alpha": alpha, "beta": beta} | changes)

    def hardness(self) -> float:
        """Return β."""
        return self.beta

    def rank_weights(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return p(TN | s) by rank."""
        return self.true_negative_probability(ranks_from_farthest, n_candidates)


class NonparametricBCL(_ByAlpha):
    r"""Bayesian contrastive loss with rank-only weights, as in the authors' rebuttal.

    Equations 37 to 43 of the rebuttal [1]_. The wanted density of negatives mixes easy true
    negatives and hard ones by β; the importance weight of a candidate is its ratio to the density
    of unlabeled scores,

    .. math:: \omega = \psi / \varphi_{\mathrm{UN}}, \qquad \psi = \frac{(1 - \beta)\alpha
        \varphi_{(1)} + \beta (1 - \alpha) \varphi_{(2)}}{(1 - \beta)\alpha + \beta(1 - \alpha)},
        \qquad \varphi_{(1)} = 2\varphi(1 - \Phi),\; \varphi_{(2)} = 2\varphi\Phi

    The weight grows with similarity, and the loss mines hard negatives, where
    :math:`\beta / (1 - \beta) > \alpha (1 + a) / ((1 - \alpha)(1 - a))` with
    :math:`a = (1 - 2\alpha)(1 - 2\tau^+)`; below that it debiases. At β = .5 the estimate is
    nearly that of :class:`BCL` at its β = 0, whose weights are rescaled. The default β is that of
    the rebuttal; :meth:`paper` has its schedule of α. The authors' repository has this loss alone,
    under the name BCL.

    Parameters
    ----------
    alpha : float, Schedule or "auto", default=0.7
        Location parameter α in [.5, 1], as in :class:`BCL`.
    beta : float or Schedule, default=1.0
        Share of hard negatives, in [0, 1]. Not the β of :class:`BCL`. α = β = 1 is refused: no
        density is left.
    tau_plus : float, Schedule or "auto", default=0.1
        Class prior τ⁺ in [0, 1).
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
    .. [1] B. Liu, B. Wang, "Bayesian Self-Supervised Contrastive Learning", rebuttal, 2023;
       B. Liu, B. Wang, T. Li, arXiv:2301.11673v4.

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

    beta: Number = parameter(interval(0, 1, "both"), default=1.0)

    # A ratio of densities has mean 1 in expectation; as in the authors' code, it is not scaled.
    sum_of_weights = "free"

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the loss as the rebuttal trains it: α rises from .5 to .85 during the fit.

        Other parameters are keywords, such as ``tau_plus=1 / 6`` for six classes.
        """
        return cls(**{"alpha": Linear(0.5, 0.85)} | changes)

    def validate(self) -> None:
        """Refuse α = β = 1."""
        if self.alpha == 1 and self.beta == 1:
            raise ValueError(
                "The 'alpha' and 'beta' parameters of NonparametricBCL must not both be 1, where "
                "the weights are 0/0: lower one of them."
            )

    def rank_weights(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return ω by rank."""
        alpha, beta, tau_plus = self.alpha, self.beta, self.tau_plus
        phi = self._phi(ranks_from_farthest, n_candidates)
        wanted = 2 * (alpha * (1 - beta) * (1 - phi) + (1 - alpha) * beta * phi)
        wanted = wanted / (alpha * (1 - beta) + (1 - alpha) * beta)
        true = 2 * (alpha * (1 - phi) + (1 - alpha) * phi)
        false = 2 * ((1 - alpha) * (1 - phi) + alpha * phi)
        return ratio(wanted, (1 - tau_plus) * true + tau_plus * false)
