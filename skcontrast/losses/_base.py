"""The base class of the losses: a row of weights and two coefficients."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar

import torch
from torch import Tensor

from .._checks import ParameterObject, belongs_to_package

# A loss that overrides none of these is InfoNCE.
_WEIGHTS = ("rank_weights", "class_weights", "push_and_pull")
_HOOKS = ("coefficients", "hardness", *_WEIGHTS, "log_expectation", "anchor_loss", "row_loss")
# Not used if `row_loss` is overridden.
_NOT_IN_ROWS = (*_HOOKS[:-1], "pull_share", "estimators")

# The lowest score that there can be, and the highest, which may be one for each anchor.
Bounds: TypeAlias = tuple[float, Tensor | float]
Method = TypeVar("Method", bound=Callable[..., Any])


def elementwise(method: Method) -> Method:
    """Mark a method that computes each entry of its result from that entry of its argument."""
    method.is_elementwise = True  # type: ignore[attr-defined]
    return method


@functools.cache
def _takes_labels(row_loss: Callable[..., Any]) -> bool:
    return "same_class" in inspect.signature(row_loss).parameters


class Loss(ParameterObject):
    r"""Base class of the losses: an estimate of an expectation over true negatives.

    For any function :math:`\varphi` of the score, and N candidates, a few of which may share the
    anchor's class, every loss of this package estimates

    .. math:: \hat E^-[\varphi] = a \cdot \frac1N \sum_j w_j\, \varphi(s_j)
        - b \cdot \frac1M \sum_m \varphi(s^+_m), \qquad w_j \propto c_j\, e^{\beta s_j},

    floored at the lowest value that :math:`\varphi` can take. So a loss is (c, β, a, b). A new
    loss takes its hyperparameters in ``__init__``, declares in ``_parameter_constraints`` which
    values they may have, and overrides the methods below in which it differs from
    :class:`InfoNCE`. A misspelled method, and one that nothing calls, such as ``forward``, is
    refused when the class is defined, and so are swapped arguments. A helper that the class itself
    calls may have any name.

    Attributes
    ----------
    detach_weights : bool
        Whether the weights carry no gradient. Only matters where β > 0: c never carries any.
    sum_of_weights : {"N", "free", "replaces N"}
        Whether the weights are scaled to the sum N, which is mean 1; are left as they are; or are
        left as they are because their sum takes the place of N, as the size of a ring does. Under
        the Jensen–Shannon objective, in which N does not occur, the last are scaled as the first.

    See Also
    --------
    skcontrast.contrastive_loss : Computes a loss of given embeddings.
    skcontrast.schedules.Schedule : May replace a numeric hyperparameter.

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
    ...     def rank_weights(self, ranks_from_farthest, n_candidates):
    ...         return (ranks_from_farthest <= (1 - self.share) * n_candidates).double()
    >>> z = torch.randn(8, 16, generator=torch.Generator().manual_seed(0))
    >>> without = contrastive_loss(z, z, loss=WithoutClosest(share=0.2))
    >>> bool(without < contrastive_loss(z, z, loss=InfoNCE()))
    True
    """

    detach_weights: bool = False
    sum_of_weights: ClassVar[Literal["N", "free", "replaces N"]] = "N"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _check_class(cls)

    def _check_protocol(self) -> None:
        _check_overrides(type(self))

    def overrides(self, method: str) -> bool:
        """Return whether the class of this loss has its own version of a method of Loss."""
        return getattr(type(self), method) is not getattr(Loss, method)

    @property
    def requires_y(self) -> bool:
        """Whether the loss reads labels, in `class_weights` or in a `row_loss` that takes them."""
        return self.overrides("class_weights") or self.takes_labels

    @property
    def takes_labels(self) -> bool:
        """Whether `row_loss` is overridden and takes `same_class`."""
        return self.overrides("row_loss") and _takes_labels(type(self).row_loss)

    @property
    def is_symmetric(self) -> bool:
        """Whether weights depend on each pair of anchor and candidate alone, both ways alike.

        Then each pair of a batch is computed once, not twice. A custom `class_weights` or
        `push_and_pull` is assumed to need whole rows.
        """
        return not self.overrides("rank_weights") and all(
            getattr(getattr(type(self), method), "is_elementwise", False)
            for method in ("class_weights", "push_and_pull")
            if self.overrides(method)
        )

    @property
    def is_estimate(self) -> bool:
        """Whether the loss is (c, β, a, b) and a floor and nothing more.

        Only then does it have a Jensen–Shannon form, may replace the negatives of
        :class:`PositiveDebiased`, and can be compared with others on simulated scores.
        """
        beyond = ("anchor_loss", "row_loss", "estimators", "log_expectation", "push_and_pull")
        return not any(map(self.overrides, beyond))

    def coefficients(self) -> tuple[float, float]:
        """Return (a, b), a > 0 and b ≥ 0."""
        return 1.0, 0.0

    def hardness(self) -> float:
        """Return β ≥ 0."""
        return 0.0

    def rank_weights(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return the factor c of a candidate by its rank.

        Candidates of equal score share the mean of the factors at their ranks.

        Parameters
        ----------
        ranks_from_farthest : Tensor of shape (N,), dtype float64
            1, 2, …, N. 1 is the farthest candidate, N the closest, which is the likeliest false
            negative.
        n_candidates : int
            N.

        Returns
        -------
        c : Tensor of shape (N,)
            Factors ≥ 0. If `class_weights` is overridden too, both factors are multiplied.
        """
        raise NotImplementedError

    def true_negative_probability(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return the probability that a candidate is a true negative, by its rank.

        No training needs it: it is what :func:`skcontrast.estimation.reliability` compares with
        labels.

        Parameters
        ----------
        ranks_from_farthest : Tensor of shape (k,), dtype float64
            As in `rank_weights`, not necessarily all of them.
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
            The product of `rank_weights` and `class_weights`, such as the probability that the
            candidate is of the anchor's class. To be overwritten by later losses.

        Returns
        -------
        c : Tensor of shape (n_anchors, n), or None
            Factors ≥ 0 by which candidates push, in a new tensor; None for 1.
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
            Number of other views of the anchor's sample.

        Returns
        -------
        share : Tensor of shape (n_anchors,)
            In [0, 1].
        """
        return total / (total + n_positives)

    def label_spreading(self) -> Any:
        """Return how `fit` guesses the classes of unlabeled samples; None leaves them unknown.

        A custom loss that reads classes may return ``SemiSupCon(every=5)``, whose parameters say
        how.
        """
        return None

    def estimators(self) -> tuple[Loss, ...]:
        """Return the losses whose weighted means `anchor_loss` needs, itself by default."""
        return (self,)

    def anchor_loss(
        self, log_means: list[Tensor], positives: Tensor, n_candidates: int, bounds: Bounds
    ) -> Tensor:
        """Return the loss of each anchor; the mean over its positives is outside the log.

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

    def row_loss(
        self, scores: Tensor, positives: Tensor, same_class: Tensor | None = None
    ) -> Tensor:
        """Return the loss of each anchor from all its scores, differentiable by autograd.

        If this is overridden, no other method of the loss is used. A loss that reads labels takes
        all three arguments, one that needs none takes two; an override of `requires_y` by False
        makes the labels optional.

        Parameters
        ----------
        scores : Tensor of shape (n_anchors, n)
            Scores of the candidates; excluded ones hold −inf.
        positives : Tensor of shape (n_anchors, n_positives)
            Scores of the other views of the anchor's sample.
        same_class : Tensor of shape (n_anchors, n), dtype bool, or None
            As in `class_weights`; None without labels. Also where both are of one group, if groups
            are positive; candidates of a neutral group are excluded.

        Returns
        -------
        loss : Tensor of shape (n_anchors,)
        """
        raise NotImplementedError

    def log_expectation(self, log_mean: Tensor, positives: Tensor, lower_bound: float) -> Tensor:
        """Return log max(a · mean − b · mean_m e^{s⁺_m}, e^{lower bound}), shape (n_anchors,)."""
        a, b = self.coefficients()
        if b == 0:
            return log_mean + math.log(a)
        top = torch.maximum(log_mean, positives.amax(1)).detach()
        mean_positive = (positives - top[:, None]).exp().mean(1)
        estimate = a * (log_mean - top).exp() - b * mean_positive
        above = ~(estimate <= (lower_bound - top).exp())  # NaN is not floored
        log_estimate = torch.where(above, estimate, torch.ones_like(estimate)).log() + top
        return torch.where(above, log_estimate, torch.full_like(log_estimate, lower_bound))


def _check_class(cls: type[Loss]) -> None:
    """Raise TypeError for a subclass with a method that is never called."""

    def place(method: str) -> int:
        return next(k for k, parent in enumerate(cls.__mro__) if method in vars(parent))

    base = cls.__mro__.index(Loss)
    if place("row_loss") < base:
        unused = [name for name in _NOT_IN_ROWS if place(name) <= place("row_loss")]
        if unused:
            raise TypeError(
                f"{cls.__name__} overrides row_loss, so its {unused[0]} would never be called."
            )
    elif place("estimators") < base <= place("anchor_loss"):
        raise TypeError(
            f"{cls.__name__} overrides estimators, whose means only anchor_loss reads: override "
            "anchor_loss too."
        )


def _check_overrides(cls: type[Loss]) -> None:
    """Raise TypeError for a subclass that is InfoNCE because it overrides nothing."""
    is_ours = belongs_to_package(cls)
    if is_ours or any(getattr(cls, name) is not getattr(Loss, name) for name in _HOOKS):
        return
    own = [
        name
        for name in dict.fromkeys(name for one in cls.__mro__ for name in vars(one))
        if not (name.startswith("_") or hasattr(Loss, name)) and callable(getattr(cls, name))
    ]
    never = f"; it has {', '.join(own)}, which would never be called" if own else ""
    raise TypeError(
        f"{cls.__name__} overrides nothing of Loss ({', '.join(_HOOKS)}){never}. See 'Your own "
        "pieces' in the user guide."
    )
