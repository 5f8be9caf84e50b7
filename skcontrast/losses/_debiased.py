"""InfoNCE, and the losses that correct it by the expected share of false negatives."""

import math
from typing import Any, Literal, Self

import torch
import torch.nn.functional as F
from torch import Tensor

from .._checks import parameter
from .._checks._arguments import check_component
from .._warnings import warn
from ..schedules._numbers import EstimableNumber, Number, check_hyperparameters, interval
from ._base import Loss
from ._rows import Rows


class InfoNCE(Loss):
    r"""The biased contrastive loss: every candidate counts as a negative.

    .. math:: L = -\log \frac{e^{s^+}}{e^{s^+} + \sum_{j=1}^N e^{s_j}}

    With in-batch candidates (``SimCLR``) and cosine scores it is the NT-Xent loss of [2]_; with a
    queue (``MoCo``) it is InfoNCE as in [1]_. A candidate of the anchor's own class is pushed
    away like any other; :class:`DCL` and :class:`HCL` correct for that.

    See Also
    --------
    DCL : Subtracts the expected share of false negatives.
    HCL : The same, with more weight on hard negatives.

    References
    ----------
    .. [1] A. van den Oord, Y. Li, O. Vinyals, "Representation Learning with Contrastive
       Predictive Coding", 2018.
    .. [2] T. Chen, S. Kornblith, M. Norouzi, G. Hinton, "A Simple Framework for Contrastive
       Learning of Visual Representations", ICML 2020.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.losses import InfoNCE
    >>> z = torch.eye(3)
    >>> contrastive_loss(z, z, loss=InfoNCE()).item()  # log(1 + 4 e^-2) at temperature 0.5
    0.432...
    """

    def true_negative_probability(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return 1: every candidate is treated as a true negative."""
        return torch.ones_like(ranks_from_farthest)


class DCL(Loss):
    r"""Debiased contrastive loss: subtracts the share of false negatives in expectation.

    A random candidate has the anchor's class with probability :math:`\tau^+`. The expectation
    over true negatives follows from the one over all candidates and the one over positives [1]_:

    .. math:: \hat E^- = \max\Big( \frac{1}{1 - \tau^+} \Big( \frac1N \sum_j e^{s_j}
        - \tau^+ \frac1M \sum_m e^{s^+_m} \Big),\; e^{s_{\min}} \Big), \qquad
        L = -\log \frac{e^{s^+}}{e^{s^+} + N \hat E^-}

    where :math:`s_{\min}` is the lowest possible score (−1/temperature for cosine). An anchor
    whose estimate is floored there passes no gradient through it. The :math:`s^+_m` are scores of
    the positives, which are closer than other samples of the class. These replace them with
    `correct_with` of ``contrastive_loss`` and ``same_group="correct"`` of the embedder.

    Parameters
    ----------
    tau_plus : float, Schedule or "auto", default=0.1
        Class prior τ⁺ in [0, 1): the probability that a random sample has the anchor's class,
        about one over the number of classes. At 0 the loss is :class:`InfoNCE`. The default is
        that of the authors' code.

    See Also
    --------
    HCL : The same with candidates weighted by their hardness.
    PUCL : The same where a fraction of each class serves as positives.
    Supervised : The mean over true negatives that this estimates, from labels.

    References
    ----------
    .. [1] C.-Y. Chuang, J. Robinson, L. Yen-Chen, A. Torralba, S. Jegelka, "Debiased Contrastive
       Learning", NeurIPS 2020, arXiv:2007.00224.

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

    tau_plus: EstimableNumber = parameter(interval(0, 1, "left", auto="tau_plus"), default=0.1)

    def coefficients(self) -> tuple[float, float]:
        """Return a = 1/τ⁻ and b = τ⁺/τ⁻."""
        return 1 / (1 - self.tau_plus), self.tau_plus / (1 - self.tau_plus)

    def true_negative_probability(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return 1 − τ⁺ at every rank."""
        return torch.full_like(ranks_from_farthest, 1 - self.tau_plus)


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
        Hardness β ≥ 0. At 0 the loss is :class:`DCL`. The default is that of the authors' code;
        the paper's differs by data set.
    detach_weights : bool, default=False
        Whether the weights carry no gradient. The authors' code differentiates them.

    See Also
    --------
    DCL : The same without weights.
    BCL : Weights by hardness and by the probability of being a true negative.

    References
    ----------
    .. [1] J. Robinson, C.-Y. Chuang, S. Sra, S. Jegelka, "Contrastive Learning with Hard Negative
       Samples", ICLR 2021, arXiv:2010.04592.

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

    beta: Number = parameter(interval(0, None, "left"), default=1.0)
    detach_weights: bool = parameter(["boolean"], default=False)

    def hardness(self) -> float:
        """Return β."""
        return self.beta


class PUCL(Loss):
    r"""Positive-unlabeled contrastive loss: candidates are the rest after positives are taken.

    Negatives are treated as unlabeled data of the single-training-set scenario of PU learning: a
    fraction c of the anchor's class, the label frequency, is selected completely at random (SCAR)
    as positives, and the candidates are the unlabeled rest, with fewer false negatives. Correcting
    for that (equations 11 and 12 of [1]_),

    .. math:: \hat E^- = \max\Big( \frac{1 - \tau^+ c}{1 - \tau^+} \cdot \frac1N \sum_j e^{s_j}
        - \frac{\tau^+ (1 - c)}{1 - \tau^+} \cdot \frac1M \sum_m e^{s^+_m},\; e^{s_{\min}} \Big)

    τ⁺ and c are not separately identifiable: the loss is :class:`DCL`, which assumes the
    case-control scenario, with the prior among the unlabeled, see `effective_tau_plus`. So there
    is no point in searching over both. The paper writes :math:`\alpha` for :math:`\tau^+`. Its
    floor :math:`e^{-1}` is for scores without a temperature.

    Parameters
    ----------
    tau_plus : float, Schedule or "auto", default=0.12
        Class prior τ⁺ in [0, 1) of the full population. The defaults are the paper's on CIFAR-10.
    c : float or Schedule, default=0.1
        Label frequency in [0, 1]: the fraction of a class that serves as positives. At 0 the loss
        is :class:`DCL`, at 1 :class:`InfoNCE`.

    See Also
    --------
    DCL : The same loss with one parameter.

    References
    ----------
    .. [1] L. Wang, C. Du, P. Zhao, C. Luo, Z. Zhu et al., "Contrastive Learning with Negative
       Sampling Correction", arXiv:2401.08690, 2024.

    Examples
    --------
    >>> from skcontrast.losses import PUCL
    >>> round(PUCL(tau_plus=0.1, c=0.01).effective_tau_plus, 4)
    0.0991
    """

    tau_plus: EstimableNumber = parameter(interval(0, 1, "left", auto="tau_plus"), default=0.12)
    c: Number = parameter(interval(0, 1, "both"), default=0.1)

    @property
    def effective_tau_plus(self) -> float:
        """The `tau_plus` of the :class:`DCL` that this loss equals, τ⁺(1 − c)/(1 − τ⁺c)."""
        check_hyperparameters(self)
        tau_plus, c = self.tau_plus, self.c
        return tau_plus * (1 - c) / (1 - tau_plus * c)

    def coefficients(self) -> tuple[float, float]:
        """Return a = (1 − τ⁺c)/(1 − τ⁺) and b = τ⁺(1 − c)/(1 − τ⁺)."""
        tau_plus, c = self.tau_plus, self.c
        rest = 1 - tau_plus
        return (1 - tau_plus * c) / rest, tau_plus * (1 - c) / rest

    def true_negative_probability(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return 1 − `effective_tau_plus`, that of the unlabeled rest, at every rank."""
        return torch.full_like(ranks_from_farthest, 1 - self.effective_tau_plus)


class PositiveDebiased(Loss):
    r"""Contrastive loss with a debiased positive term instead of a debiased negative one.

    An augmented view is closer than a random sample of the anchor's class. With the mean over
    all views of the row, that of the anchor included, instead of the expectation over all
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
        Class prior τ⁺ in (0, 1). The default is the paper's, for the ten classes of CIFAR-10.
    negatives : Loss, default=None
        How the expectation over true negatives is estimated: an object such as ``DCL()`` or
        ``BCL()``, whose :math:`\hat E^-` replaces the factor g of N in the denominator. None is
        ``InfoNCE()``, the loss above.
    form : {"mean", "printed"}, default="mean"
        P as above, which is that of the authors' code, or that of the preprint, whose numerator
        :math:`e^{s^+} + \tau^+ g` needs no floor.

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

    @classmethod
    def paper(cls, **changes: Any) -> Self:
        """Return the loss as the preprint prints it. Other parameters are keywords."""
        return cls(**{"form": "printed"} | changes)

    @property
    def requires_y(self) -> bool:  # type: ignore[override]
        """Whether the estimate over true negatives reads labels."""
        return self.negatives is not None and self.negatives.requires_y

    @property
    def is_corrected(self) -> bool:
        """Whether the estimate of `negatives` is corrected by samples of the anchor's class."""
        return self.negatives is not None and self.negatives.is_corrected

    def validate(self) -> None:
        """Refuse `negatives` that are not an estimate over true negatives."""
        name = type(self).__name__
        negatives = check_component(self.negatives, Loss, name, "negatives", InfoNCE)
        if not negatives.is_estimate:
            raise ValueError(
                "The 'negatives' parameter of PositiveDebiased must be a loss that estimates an "
                f"expectation over true negatives, got {negatives!r}."
            )

    def losses(self, rows: Rows) -> Tensor:
        """Return the loss of each anchor, shape (n_anchors,)."""
        highest = rows.highest
        if math.isinf(rows.lowest) or (isinstance(highest, float) and math.isinf(highest)):
            raise ValueError(
                "PositiveDebiased needs finite bounds of the scores, which 'similarity' lacks."
            )
        log_negative = log_mean = rows.log_mean(InfoNCE())
        if self.negatives is not None:
            log_negative = rows.log_expectation(self.negatives)
        log_scale = math.log(rows.n_candidates * self.tau_plus)
        log_numerator = self._log_numerator(rows, log_mean, highest)
        return -F.logsigmoid(log_numerator - log_scale - log_negative[:, None]).mean(1)

    def _log_numerator(self, rows: Rows, log_mean: Tensor, highest: Tensor | float) -> Tensor:
        """Return log(P − τ⁻ g), floored, shape (n_anchors, n_positives)."""
        positives, n, tau_plus = rows.positives, rows.n_candidates, self.tau_plus
        if self.form == "printed":
            return torch.logaddexp(positives, log_mean[:, None] + math.log(tau_plus))
        if isinstance(highest, Tensor):
            highest = highest[:, None]
        # One for each positive: far below the others, all of its terms would vanish.
        top = torch.maximum(log_mean[:, None], positives).detach().clamp_min(highest)
        g, p = (log_mean[:, None] - top).exp(), (positives - top).exp()
        mean = (n * g + p + (highest - top).exp()) / (n + 2)
        numerator = mean - (1 - tau_plus) * g
        log_floor = math.log(tau_plus) + rows.lowest
        above = ~(numerator.detach().clamp_min(0).log() + top <= log_floor)
        # With more candidates no term can be floored, so there is no wait for a GPU.
        if n + 2 < 2 / tau_plus and not bool(above.all()):
            warn(
                f"PositiveDebiased: with tau_plus={tau_plus} and {n} candidates positive terms "
                "are negative and floored. Raise 'tau_plus' or the batch."
            )
        log_numerator = torch.where(above, numerator, 1.0).log() + top
        return torch.where(above, log_numerator, log_floor)
