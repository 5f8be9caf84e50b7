"""``Loss``, the base class of the losses, and a check of custom ones."""

from __future__ import annotations

import copy
import difflib
import math
from numbers import Real
from typing import Any, ClassVar, Literal, dataclass_transform

import torch
import torch.nn.functional as F
from torch import Tensor

from .._checks import FRACTION, NON_NEGATIVE, POSITIVE_INT, Interval, StrOptions
from .._checks._arguments import check_argument, check_returned, validated
from .._checks._names import belongs_to_package
from .._checks._parameters import ParameterObject, learned, parameter
from .._runtime import guarded, seeded_rng
from ..schedules._numbers import check_hyperparameters
from ._rows import Rows
from ._tape import Tape

# Methods of a loss, of which a custom one overrides at least one.
HOOKS = ("coefficients", "hardness", "rank_weights", "class_weights", "losses")
# From this similarity on, the name of another method is a misspelled one.
_CLOSE = 0.8


class PseudoLabels(ParameterObject):
    """How `fit` assigns pseudo-labels to unlabeled samples, see :class:`SemiSupCon`.

    Parameters
    ----------
    every : int, default=2
        Epochs between two rounds of pseudo-labels.
    share : float, default=0.8
        Share of the pseudo-labels of each class that is used, in [0, 1].
    labeled_share : float, default=0.2
        Smallest share of each batch that is drawn from the labeled samples, in [0, 1).
    n_neighbors : int, default=15
        Neighbours of each sample in the graph.

    See Also
    --------
    Loss.pseudo_labels : Returns it.

    Examples
    --------
    >>> from skcontrast.losses import PseudoLabels, Supervised
    >>> class OfPseudoLabels(Supervised):
    ...     def pseudo_labels(self):
    ...         return PseudoLabels(every=5)
    """

    every: int = parameter(POSITIVE_INT, default=2)
    share: float = parameter(FRACTION, default=0.8)
    labeled_share: float = parameter([Interval(Real, 0, 1, closed="left")], default=0.2)
    n_neighbors: int = parameter(POSITIVE_INT, default=15)


@dataclass_transform(kw_only_default=True, field_specifiers=(parameter, learned))
class Loss(ParameterObject):
    r"""Base class of the losses: an estimate of an expectation over true negatives.

    For any function :math:`\varphi` of the score, and N candidates, a few of which may share the
    anchor's class, every loss of this package estimates

    .. math:: \hat E^-[\varphi] = a \cdot \frac1N \sum_j w_j\, \varphi(s_j)
        - b \cdot \frac1M \sum_m \varphi(s^+_m), \qquad w_j \propto c_j\, e^{\beta s_j},

    floored at the lowest value that :math:`\varphi` can take. So a loss is (c, β, a, b): a custom
    loss overrides `rank_weights` or `class_weights`, `hardness` and `coefficients` where it
    differs from :class:`InfoNCE`. A loss of a different form overrides `losses`. Only the
    embeddings have a gradient: a loss has no trainable parameters.

    Attributes
    ----------
    detach_weights : bool
        Whether the weights have no gradient. This only matters if β > 0: c never has one.
    sum_of_weights : {"N", "free", "replaces N"}
        How the weights are scaled:

        - ``"N"``: to the sum N, which is mean 1.
        - ``"free"``: not at all.
        - ``"replaces N"``: not at all, since their sum replaces N, as the size of a ring does. The
          Jensen–Shannon objective, in which N does not occur, scales them to mean 1.
    requires_y : bool
        Whether the loss reads labels. Set it to True in a class that does.
    pulls : bool
        Whether `losses` itself pulls the candidates of ``rows.same_class``. Then it does so with
        members of a positive group, too. If not, they are pulled in addition to the loss.

    See Also
    --------
    skcontrast.contrastive_loss : Computes a loss of given embeddings.
    skcontrast.losses.check_loss : Tests a custom loss.
    skcontrast.schedules.Schedule : May replace a numeric hyperparameter.

    Examples
    --------
    A loss that leaves out the closest candidates, which are the likeliest false negatives:

    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.losses import InfoNCE, Loss
    >>> class WithoutClosest(Loss):
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
    requires_y: ClassVar[bool] = False
    pulls: ClassVar[bool] = False

    def overrides(self, method: str) -> bool:
        """Return whether the class of this loss has its own version of a method of Loss."""
        return getattr(type(self), method) is not getattr(Loss, method)

    def check_overrides(self, *, strictly: bool = False) -> None:
        """Raise TypeError if a custom class has a method whose name is nearly that of a hook.

        With `strictly`, also if it overrides none.
        """
        cls, overrides_some = type(self), any(map(self.overrides, HOOKS))
        if belongs_to_package(cls):
            return
        own = (name for base in cls.__mro__ if not belongs_to_package(base) for name in vars(base))
        unknown = [name for name in own if not hasattr(Loss, name) or name == "__call__"]
        misspelled = [n for n in unknown if difflib.get_close_matches(n, HOOKS, 1, _CLOSE)]
        if not overrides_some:
            misspelled += [n for n in unknown if n in ("forward", "__call__") and n in vars(cls)]
        if misspelled or (strictly and not overrides_some):
            what = "has" if overrides_some else "overrides none of"
            names = ", ".join(misspelled if overrides_some else HOOKS)
            so = "" if overrides_some else ", so it is InfoNCE"
            raise TypeError(f"{cls.__name__} {what} {names}{so}. Is a name misspelled?")

    @property
    def is_estimate(self) -> bool:
        """Whether the loss is (c, β, a, b) with a floor.

        Only such a loss has a Jensen–Shannon form, may replace the negatives of
        :class:`PositiveDebiased`, and can be compared with others on simulated scores.
        """
        return not self.overrides("losses")

    @property
    def is_corrected(self) -> bool:
        """Whether the estimate is corrected by samples of the anchor's class, by b > 0."""
        return self.overrides("coefficients")

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

    def class_weights(self, same_class: Tensor) -> Tensor:
        """Return the factor c of each candidate by its class; needs ``requires_y = True``.

        Parameters
        ----------
        same_class : Tensor of shape (n_anchors, n), dtype bool
            Where anchor and candidate are known to share a class.

        Returns
        -------
        c : Tensor of shape (n_anchors, n)
            Factors ≥ 0.
        """
        raise NotImplementedError

    def losses(self, rows: Rows) -> Tensor:
        r"""Return the loss of each anchor, shape (n_anchors,).

        .. math:: L_i = \frac1M \sum_m -\log
            \frac{e^{s^+_{im}}}{e^{s^+_{im}} + N \hat E^-_i[\exp]}

        A loss that overrides this has no Jensen–Shannon form.

        Parameters
        ----------
        rows : Rows
            The anchors, with the scores of their positives and candidates. Its methods take sums
            over candidates without holding a graph for each of them; ``rows.scores`` is
            differentiated by autograd, which takes more time and memory.
        """
        return self._from_estimate(rows, rows.log_expectation(self))

    def _from_estimate(self, rows: Rows, log_expectation: Tensor) -> Tensor:
        """Return the loss of each anchor from the logarithm of the estimate of its negatives."""
        log_negatives = math.log(rows.n_candidates) + log_expectation
        return -F.logsigmoid(rows.positives - log_negatives[:, None]).mean(1)

    def true_negative_probability(self, ranks_from_farthest: Tensor, n_candidates: int) -> Tensor:
        """Return the probability that a candidate is a true negative, by its rank.

        Training does not use it: :func:`skcontrast.estimation.reliability` compares it with
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

    def pseudo_labels(self) -> PseudoLabels | None:
        """Return how `fit` assigns pseudo-labels to unlabeled samples; None assigns none."""
        return None


_TOTALS = [StrOptions({"N", "free", "replaces N"})]
# Synthetic anchors, whose scores are between −2 and 2.
_N_ANCHORS, _TOP = 6, 2.0


@guarded()
@validated(loss=Loss, n_candidates=POSITIVE_INT, n_positives=POSITIVE_INT)
def check_loss(loss: Loss, n_candidates: int = 254, n_positives: int = 1) -> None:
    """Check that a custom loss computes what its methods promise.

    Its methods are called on synthetic scores of 6 anchors. Call this in a test of your class:
    ``fit`` and :func:`skcontrast.contrastive_loss` do not.

    Parameters
    ----------
    loss : Loss
        An instance whose hyperparameters are numbers, not schedules.
    n_candidates : int, default=254
        The number N of candidates of each anchor.
    n_positives : int, default=1
        The number of positives of each anchor, which is the number of views less one.

    Raises
    ------
    TypeError, ValueError
        If a method returns anything but a tensor of the right shape; weights that are negative or
        not finite; a loss or a gradient that is not finite; if the loss of an anchor has no
        gradient, depends on other anchors or on the order of its candidates, does not fall as its
        positives score higher, or falls as all candidates do; or if a custom class overrides
        nothing, as with a misspelled method.

    See Also
    --------
    skcontrast.similarity.check_similarity : The same for a similarity.
    skcontrast.frameworks.check_framework : The same for a framework.

    Examples
    --------
    >>> from skcontrast.losses import Loss, check_loss
    >>> class Margin(Loss):
    ...     def losses(self, rows):
    ...         return (1 + rows.scores.amax(1) - rows.positives.mean(1)).clamp_min(0)
    >>> check_loss(Margin())
    >>> class Upwards(Loss):
    ...     def losses(self, rows):
    ...         return rows.positives.mean(1) - rows.scores.amax(1)
    >>> check_loss(Upwards())
    Traceback (most recent call last):
    ...
    ValueError: Upwards.losses must fall as positives score higher, but it grows.
    """
    check_hyperparameters(loss)
    loss = copy.copy(loss)
    loss.check_overrides(strictly=True)
    _check_numbers(loss)
    numbers = torch.arange(_N_ANCHORS * (n_candidates + n_positives)).sin().view(_N_ANCHORS, -1)
    # The anchors have different means, and so have halves of their scores.
    scores, positives = (numbers * torch.linspace(_TOP, _TOP / 2, _N_ANCHORS)[:, None]).split(
        [n_candidates, n_positives], 1
    )
    columns = torch.arange(n_candidates) + torch.arange(_N_ANCHORS)[:, None]
    same_class = columns % 3 == 0
    name = type(loss).__name__
    if loss.overrides("rank_weights"):
        ranks = torch.arange(1, n_candidates + 1, dtype=torch.float64)
        weights = loss.rank_weights(ranks, n_candidates)
        _check_weights(f"{name}.rank_weights", weights, (n_candidates,))
    if loss.overrides("class_weights"):
        _check_weights(f"{name}.class_weights", loss.class_weights(same_class), scores.shape)
    all_losses = _losses(loss, scores, positives, same_class)
    flipped = _losses(loss, scores.flip(1), positives, same_class.flip(1))
    fewer = _losses(loss, scores[:-1], positives[:-1], same_class[:-1])
    for other in (flipped, fewer):
        if not torch.allclose(other, all_losses[: len(other)], rtol=1e-3, atol=1e-4):
            raise ValueError(
                f"{name}.losses must compute each loss from its own row alone, and must not "
                "depend on the order of candidates."
            )
    if loss.pulls:  # positives are in its denominator, too, and candidates are pulled
        return
    higher = _losses(loss, scores, positives + 1, same_class)
    nearer = _losses(loss, scores + 1, positives, same_class)
    slack = 1e-4 * (1 + all_losses.abs())
    if (higher > all_losses + slack).any() or not (higher < all_losses).any():
        does = "grows" if (higher > all_losses).any() else "is constant"
        raise ValueError(f"{name}.losses must fall as positives score higher, but it {does}.")
    if (nearer < all_losses - slack).any():
        raise ValueError(
            f"{name}.losses must not fall as all candidates score higher. If it pulls some, set "
            "pulls = True in the class."
        )


def _check_numbers(loss: Loss) -> None:
    """Raise ValueError unless β ≥ 0, a > 0 and b ≥ 0."""
    name, beta, pair = type(loss).__name__, loss.hardness(), loss.coefficients()
    check_argument(name, "sum_of_weights", loss.sum_of_weights, _TOTALS)
    if not NON_NEGATIVE[0].is_satisfied_by(beta):
        raise ValueError(f"{name}.hardness must return a number β ≥ 0, got {beta!r}.")
    is_pair = isinstance(pair, tuple) and len(pair) == 2
    if not (is_pair and pair[0] != 0 and all(map(NON_NEGATIVE[0].is_satisfied_by, pair))):
        raise ValueError(f"{name}.coefficients must be two numbers a > 0 and b ≥ 0, got {pair!r}.")


def _check_weights(owner: str, weights: Any, shape: tuple[int, ...]) -> None:
    weights = check_returned(owner, weights, shape).double()
    low, high = weights.min().item(), weights.max().item()
    if not 0 <= low <= high <= torch.finfo(weights.dtype).max:
        raise ValueError(f"{owner} must return finite numbers ≥ 0, got {low:g} to {high:g}.")
    if high == 0 and "rank" in owner:
        raise ValueError(f"{owner} must not return 0 for all ranks.")


def _losses(loss: Loss, scores: Tensor, positives: Tensor, same_class: Tensor) -> Tensor:
    """Return the losses of synthetic anchors, after a check of losses and gradients."""
    owner, n = f"{type(loss).__name__}.losses", len(scores)
    with seeded_rng(0, scores.device):  # the same random numbers in each call
        # An excluded column, like the anchor itself in a batch.
        padded = torch.cat([torch.zeros(n, 1), scores], 1)
        excluded = torch.zeros(n, 1, dtype=torch.int64)
        tape = Tape(padded, positives, excluded, bounds=(-_TOP - 1, _TOP + 1))
        same_class = torch.cat([excluded.bool(), same_class], 1)
        rows = Rows(tape, same_class if loss.requires_y else None)
        losses = check_returned(owner, loss.losses(rows), (n,))
        if not losses.requires_grad:
            raise ValueError(f"{owner} must return a differentiable tensor: leave out detach.")
        results = [losses.detach(), *tape.gradients(losses.sum())[:2]]
    if not all(bool(tensor.isfinite().all()) for tensor in results):
        raise ValueError(
            f"{owner} and its gradient must be finite for finite scores, got NaN or infinity. "
            "Excluded candidates score −inf."
        )
    return results[0]
