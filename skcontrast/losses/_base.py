"""The base class of the losses: a row of weights and two coefficients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeVar

import torch
from torch import Tensor

from .._parameters import ParameterObject

Method = TypeVar("Method", bound=Callable[..., Any])


def elementwise(method: Method) -> Method:
    """Mark a method that computes each entry of its result from that entry of its argument."""
    method.is_elementwise = True  # type: ignore[attr-defined]
    return method


def is_elementwise(method: Callable[..., Any]) -> bool:
    """Return whether a method is marked as `elementwise`."""
    return getattr(method, "is_elementwise", False)


class LabelSpreading(NamedTuple):
    """How a fit guesses the classes of unlabeled samples from those of labeled ones.

    Attributes
    ----------
    every : int
        Epochs between two guesses.
    share : float
        Share of the guesses, the surest of each class, that are taken for true.
    labeled_share : float
        Share of each batch that is drawn from the labeled samples at least, in [0, 1).
    n_neighbors : int
        Neighbours of each sample in the graph along which labels spread.
    """

    every: int
    share: float
    labeled_share: float
    n_neighbors: int


class Loss(ParameterObject):
    r"""Base class of the losses: an estimate of an expectation over true negatives.

    For any function :math:`\varphi` of the score, and N candidates of which some may share the
    anchor's class, every loss of this package estimates

    .. math:: \hat E^-[\varphi] = a \cdot \frac1N \sum_j w_j\, \varphi(s_j)
        - b \cdot \frac1M \sum_m \varphi(s^+_m), \qquad w_j \propto c_j\, e^{\beta s_j},

    floored at the lowest value that :math:`\varphi` can take. So a loss is (c, β, a, b). A new
    loss takes its hyperparameters in ``__init__``, says in ``_parameter_constraints`` which values
    they may have, and overrides the methods below in which it differs from :class:`InfoNCE`.
    Which methods are overridden is found out; it need not be declared.

    Attributes
    ----------
    shares_ties : bool
        Whether equal scores share the rank of their last, or each has its own.
    cdf_bins : int, None or "auto"
        Into how many bins scores are counted for their ranks, which is faster than sorting for
        many candidates; None sorts, "auto" chooses.
    detach_weights : bool
        Whether the weights carry no gradient. Only matters where β > 0: c never carries any.
    normalize_weights : bool
        Whether the weights are scaled to mean 1.
    sum_stands_for_n : bool
        Whether weights are left unscaled because their sum takes the place of N, as the size of a
        ring does. Under the Jensen–Shannon objective, in which N does not occur, such weights are
        scaled to mean 1.

    See Also
    --------
    skcontrast.contrastive_loss : Computes a loss of given embeddings.
    skcontrast.schedules.Schedule : May stand for a number among the hyperparameters.

    Examples
    --------
    A loss that leaves out the closest candidates, which are the likeliest false negatives:

    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.schedules import interval
    >>> from skcontrast.losses import InfoNCE, Loss
    >>> class WithoutClosest(Loss):
    ...     _parameter_constraints = {"share": interval(0, 1, "left")}
    ...
    ...     def __init__(self, share=0.1):
    ...         self.share = share
    ...
    ...     def rank_weights(self, ranks, n_candidates):
    ...         return (ranks <= (1 - self.share) * n_candidates).double()
    >>> z = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
    >>> without = contrastive_loss(z, z, loss=WithoutClosest(share=0.2))
    >>> bool(without < contrastive_loss(z, z, loss=InfoNCE()))
    True
    """

    shares_ties: bool = True
    cdf_bins: int | Literal["auto"] | None = "auto"
    detach_weights: bool = False
    normalize_weights: bool = True
    sum_stands_for_n: bool = False

    @property
    def requires_y(self) -> bool:
        """Whether the loss reads labels: where it overrides `class_weights`.

        A loss that overrides `row_loss` and reads labels there sets it to True.
        """
        return self.weighs_classes

    @property
    def weighs_classes(self) -> bool:
        """Whether candidates are weighted by their class: where `class_weights` is overridden."""
        return self._overrides("class_weights")

    @property
    def weighs_ranks(self) -> bool:
        """Whether candidates are weighted by their rank: where `rank_weights` is overridden."""
        return self._overrides("rank_weights")

    @property
    def has_posterior(self) -> bool:
        """Whether the loss says how probable a true negative is at each rank.

        It does where `true_negative_probability` is overridden.
        """
        return self._overrides("true_negative_probability")

    @property
    def pulls_candidates(self) -> bool:
        """Whether candidates are pulled, not only pushed: where `push_and_pull` is overridden."""
        return self._overrides("push_and_pull")

    @property
    def corrects_positives(self) -> bool:
        """Whether the positive term is not e^{s⁺}: where `anchor_loss` is overridden."""
        return self._overrides("anchor_loss")

    @property
    def needs_whole_rows(self) -> bool:
        """Whether the loss has a form of its own: where `row_loss` is overridden."""
        return self._overrides("row_loss")

    @property
    def weighs_pairs(self) -> bool:
        """Whether weights depend on each pair of anchor and candidate alone, both ways alike.

        Then each pair of a batch is computed once, not twice. A `class_weights` or `push_and_pull`
        of your own is taken to need whole rows.
        """
        by_class = not self.weighs_classes or is_elementwise(type(self).class_weights)
        pulls = not self.pulls_candidates or is_elementwise(type(self).push_and_pull)
        return by_class and pulls and not self.weighs_ranks

    @property
    def is_estimate(self) -> bool:
        """Whether the loss is (c, β, a, b) and a floor and nothing more.

        Only then does it have a Jensen–Shannon form, may stand for the negatives of
        :class:`PositiveDebiased`, and can be compared with others on simulated scores.
        """
        beyond = ("anchor_loss", "row_loss", "estimators", "log_expectation", "push_and_pull")
        return not any(map(self._overrides, beyond))

    def _overrides(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(Loss, method)

    def coefficients(self) -> tuple[float, float]:
        """Return (a, b)."""
        return 1.0, 0.0

    def hardness(self) -> float:
        """Return β ≥ 0."""
        return 0.0

    def rank_weights(self, ranks: Tensor, n_candidates: int) -> Tensor:
        """Return the factor c of a candidate by its rank.

        Parameters
        ----------
        ranks : Tensor of shape (k,), dtype float64
            Numbers of candidates that score at most as high, in (0, N]; halves too.
        n_candidates : int
            N.

        Returns
        -------
        c : Tensor of shape (k,)
            Factors ≥ 0. If `class_weights` is overridden too, both factors are multiplied.
        """
        raise NotImplementedError

    def true_negative_probability(self, ranks: Tensor, n_candidates: int) -> Tensor:
        """Return the probability that a candidate is a true negative, by its rank.

        No training needs it: it is what :func:`skcontrast.estimation.reliability` compares with
        labels.

        Parameters
        ----------
        ranks : Tensor of shape (k,), dtype float64
            As in `rank_weights`.
        n_candidates : int
            N.

        Returns
        -------
        probability : Tensor of shape (k,)
            In [0, 1].
        """
        raise NotImplementedError

    def class_weights(self, same_class: Tensor) -> Tensor | None:
        """Return the factor c of each candidate by its class, or None for 1.

        Parameters
        ----------
        same_class : Tensor of shape (n_anchors, n), dtype bool
            Where anchor and candidate are known to share a class.

        Returns
        -------
        c : Tensor of shape (n_anchors, n), or None
        """
        return None

    def push_and_pull(self, weights: Tensor) -> tuple[Tensor | None, Tensor]:
        """Return the factor c of each candidate, and how much it is pulled.

        A loss that overrides this pulls candidates towards the anchor as if they were positives:
        a share of the pull, see `pull_share`, goes to them in proportion to the second tensor. It
        has no Jensen–Shannon form.

        Parameters
        ----------
        weights : Tensor of shape (n_anchors, n)
            What `rank_weights` and `class_weights` give, such as the probability that the
            candidate is of the anchor's class. To be overwritten by later losses.

        Returns
        -------
        c : Tensor of shape (n_anchors, n), or None
            Factors ≥ 0 by which candidates push, in a tensor of their own; None for 1.
        pull : Tensor of shape (n_anchors, n)
            Weights ≥ 0; those of excluded candidates are ignored.
        """
        raise NotImplementedError

    def pull_share(self, total: Tensor, n_positives: int) -> Tensor:
        """Return the share of the pull that goes to candidates; by default all count alike.

        Parameters
        ----------
        total : Tensor of shape (n_anchors,)
            Sum of the weights of the candidates by which they are pulled. Where it is 0, none is.
        n_positives : int
            Number of the anchor's own other views.

        Returns
        -------
        share : Tensor of shape (n_anchors,)
            In [0, 1].
        """
        return total / (total + n_positives)

    def label_spreading(self) -> LabelSpreading | None:
        """Return how `fit` guesses the classes of unlabeled samples; None leaves them unknown.

        A loss of your own that reads classes may return the settings of
        ``SemiSupCon(every=5).label_spreading()``.
        """
        return None

    def lowest_score(self, lower_bound: float) -> float:
        """Return the score at which the estimate is floored: it is never below φ of it.

        Parameters
        ----------
        lower_bound : float
            The lowest possible score; −∞ under the Jensen–Shannon objective.
        """
        return lower_bound

    def estimators(self) -> tuple[Loss, ...]:
        """Return the losses whose weighted means `anchor_loss` needs, itself by default."""
        return (self,)

    def anchor_loss(
        self,
        log_means: list[Tensor],
        positives: Tensor,
        n_candidates: int,
        bounds: tuple[float, Tensor | float],
    ) -> Tensor:
        """Return the loss of each anchor; the mean over its positives stands outside the log.

        A loss that overrides this has no Jensen–Shannon form.

        Parameters
        ----------
        log_means : list of Tensor of shape (n_anchors,)
            Logarithm of the weighted mean of e^s over the candidates, by each of `estimators`.
        positives : Tensor of shape (n_anchors, n_positives)
            Scores of the positives.
        n_candidates : int
            N.
        bounds : tuple
            The lowest possible score, a float, and the highest. A loss that overrides this method
            gets as the highest the score of each anchor with itself: a Tensor of shape
            (n_anchors,) or a float.

        Returns
        -------
        loss : Tensor of shape (n_anchors,)
        """
        log_negative = self.log_expectation(log_means[0], positives, bounds[0])
        excess = math.log(n_candidates) + log_negative[:, None] - positives
        return torch.logaddexp(excess, torch.zeros_like(excess)).mean(1)

    def row_loss(self, scores: Tensor, positives: Tensor, same_class: Tensor | None) -> Tensor:
        """Return the loss of each anchor from all its scores, differentiable by autograd.

        If this is overridden, no other method of the loss is used.

        Parameters
        ----------
        scores : Tensor of shape (n_anchors, n)
            Scores of the candidates; excluded ones hold −inf.
        positives : Tensor of shape (n_anchors, n_positives)
            Scores of the anchor's own other views.
        same_class : Tensor of shape (n_anchors, n), dtype bool, or None
            As in `class_weights`; None unless `requires_y`.

        Returns
        -------
        loss : Tensor of shape (n_anchors,)
        """
        raise NotImplementedError

    def log_expectation(self, log_mean: Tensor, positives: Tensor, lower_bound: float) -> Tensor:
        """Return log max(a · mean − b · mean_m e^{s⁺_m}, e^{lowest score}), shape (n_anchors,)."""
        a, b = self.coefficients()
        if b == 0:
            return log_mean + math.log(a)
        lowest = self.lowest_score(lower_bound)
        top = torch.maximum(log_mean, positives.amax(1)).detach()
        mean_positive = (positives - top[:, None]).exp().mean(1)
        estimate = a * (log_mean - top).exp() - b * mean_positive
        above = ~(estimate <= (lowest - top).exp())  # NaN is not floored
        log_estimate = torch.where(above, estimate, torch.ones_like(estimate)).log() + top
        return torch.where(above, log_estimate, torch.full_like(log_estimate, lowest))
