"""Losses on scores with known labels: importance weights, bias, push share and reliability."""

import math
from numbers import Integral
from typing import NamedTuple

import numpy as np
import torch

from .._checks import Interval
from .._checks._arguments import check_argument, check_component
from .._runtime import guarded
from ..losses import Loss, Rows, Supervised
from ..losses._rows import weights_of
from ..losses._tape import Tape
from ..schedules._numbers import check_hyperparameters
from ._samples import Estimate, ScoreSample, checked_sample, true_negatives_by_rank


def estimate(loss: Loss, sample: ScoreSample) -> np.ndarray:
    r"""Return a loss's estimate of the mean of :math:`e^s` over each anchor's true negatives.

    In float64, with the code of the training; ``Supervised()`` uses the true classes.
    """
    sample = _checked_arguments(loss, sample, owner="estimate", is_estimate=True)
    with torch.no_grad():
        _, rows = _rows_of(loss, sample)
        return rows.log_expectation(loss).exp().numpy()


@guarded()
def importance_weights(loss: Loss, sample: ScoreSample) -> np.ndarray:
    r"""Return the importance weights ω of a loss: one for each anchor and candidate.

    The loss replaces the mean of :math:`e^s` over true negatives by

    .. math:: \hat E_i^- = a \cdot \frac1N \sum_j \omega_{ij}\, e^{s_{ij}}
        - b \cdot \frac1M \sum_m e^{s^+_{im}}

    Parameters
    ----------
    loss : Loss
        An instance with numbers, not schedules, as hyperparameters.
    sample : ScoreSample
        As in :func:`negative_bias`. Only ``Supervised`` uses the classes: for other losses,
        ``y=range(n)`` is enough.

    Returns
    -------
    weights : ndarray of shape (n_anchors, n_candidates)
        In the order of ``sample.scores``. The mean of a row is 1, except for ``Ring``, whose
        weights are 0 and 1, and ``NonparametricBCL``, whose weights are ratios of densities.

    Raises
    ------
    ValueError
        If the loss is not of this form (``SupCon``, ``PositiveDebiased``), or a hyperparameter
        is outside its range or is a schedule.
    TypeError
        If `loss` is not a Loss or `sample` is not a ScoreSample.

    Examples
    --------
    BCL lowers the weight of the closest candidate, a likely false negative; HCL raises it:

    >>> import numpy as np
    >>> from skcontrast.estimation import ScoreSample, importance_weights
    >>> from skcontrast.losses import BCL, HCL
    >>> scores = np.array([[0.0, 1.0, 2.0]])
    >>> sample = ScoreSample(scores, scores > -1, np.array([[2.0]]), lower_bound=-2)
    >>> importance_weights(BCL(alpha=0.9, tau_plus=0.1), sample).round(2)
    array([[1.22, 1.14, 0.64]])
    >>> importance_weights(HCL(beta=1), sample).round(2)
    array([[0.27, 0.73, 2.  ]])

    The weights of a loss with schedules, after 80 % of the fit:

    >>> from skcontrast.schedules import at_progress
    >>> importance_weights(at_progress(BCL.paper(), 0.8), sample).round(2)
    array([[0.69, 0.99, 1.32]])
    """
    sample = _checked_arguments(loss, sample, owner="importance_weights", is_estimate=True)
    with torch.no_grad():
        _, rows = _rows_of(loss, sample)
        return weights_of(loss, rows, loss.sum_of_weights == "N").numpy()


@guarded()
def negative_bias(loss: Loss, sample: ScoreSample) -> Estimate:
    r"""Return the relative bias of a loss's estimate of the mean over true negatives.

    .. math:: \frac{\sum_i \hat E^-_i}{\sum_i \theta_i} - 1, \qquad
        \theta_i = \frac{1}{N^-_i} \sum_{j \in \mathrm{TN}_i} e^{s_{ij}}

    over the anchors i that have a true negative among their candidates.

    Parameters
    ----------
    loss : Loss
        An instance with numbers, not schedules, as hyperparameters.
    sample : ScoreSample
        Scores and true classes, from :meth:`ScoreSample.from_views
        <skcontrast.estimation.ScoreSample.from_views>`.

    Returns
    -------
    bias : Estimate
        0 if the estimate is right on average, positive if it is too large; with the standard error
        of a ratio of means over the anchors, as if they were independent.

    Raises
    ------
    ValueError
        If the loss is not of this form (``SupCon``, ``PositiveDebiased``), or fewer than two
        anchors have a true negative.
    TypeError
        If `loss` is not a Loss or `sample` is not a ScoreSample.

    See Also
    --------
    push_share : The share of the gradient on false negatives.

    Notes
    -----
    The difference is an error only for losses that estimate the mean itself. A hardness β > 0
    tilts the mean towards hard negatives, and the weights of a ``Ring`` do not have the mean 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.estimation import ScoreSample, negative_bias
    >>> from skcontrast.losses import DCL, InfoNCE
    >>> y = np.repeat(np.arange(10), 20)
    >>> views = np.random.default_rng(0).normal(np.eye(10)[y], 0.3, (2, 200, 10))
    >>> sample = ScoreSample.from_views(*views, y=y)
    >>> negative_bias(InfoNCE(), sample).value > 0.05
    True
    >>> abs(negative_bias(DCL(tau_plus=0.095), sample).value) < 0.02
    True
    """
    sample = _checked_arguments(loss, sample, owner="negative_bias")
    usable = sample.is_negative.any(axis=1)
    scores, is_negative, positives = (array[usable] for array in sample[:3])
    sample = sample._replace(scores=scores, is_negative=is_negative, positives=positives)
    if len(scores) < 2:
        raise ValueError(f"Two anchors or more must have a true negative, got {len(scores)}.")
    truth, estimates = estimate(Supervised(), sample), estimate(loss, sample)
    ratio = estimates.mean() / truth.mean()
    spread = np.std(estimates - ratio * truth, ddof=1) / truth.mean()
    return Estimate(float(ratio - 1), float(spread / math.sqrt(len(truth))))


@guarded()
def push_share(loss: Loss, sample: ScoreSample) -> Estimate:
    r"""Return the share of the repulsion of a loss that acts on false negatives.

    A candidate is pushed away from its anchor by the derivative of the anchor's loss with respect
    to the candidate's score, where that is positive:

    .. math:: \frac1M \sum_i \frac{\sum_{j \in \mathrm{FN}_i} (\partial L_i / \partial s_{ij})_+}
        {\sum_j (\partial L_i / \partial s_{ij})_+}

    Parameters
    ----------
    loss : Loss
        An instance with numbers, not schedules, as hyperparameters.
    sample : ScoreSample
        As in :func:`negative_bias`. For ``PositiveDebiased``, the highest score is assumed to
        be minus the lowest, as for the cosine.

    Returns
    -------
    share : Estimate
        In [0, 1], with its standard error over the anchors, as if they were independent. Anchors
        that push no candidate are ignored, such as those whose estimate is at its floor. For equal
        weights it is the share of false negatives among the candidates; for ``Supervised``, 0.

    Raises
    ------
    ValueError
        If no anchor pushes any candidate, or a hyperparameter is outside its range or is a
        schedule.
    TypeError
        If `loss` is not a Loss or `sample` is not a ScoreSample.

    See Also
    --------
    negative_bias : The bias of the total repulsion.

    Examples
    --------
    Weights that depend on ranks reduce it:

    >>> import numpy as np
    >>> from skcontrast.estimation import ScoreSample, push_share
    >>> from skcontrast.losses import BCL, InfoNCE, Supervised
    >>> y = np.repeat(np.arange(10), 20)
    >>> views = np.random.default_rng(0).normal(np.eye(10)[y], 0.3, (2, 200, 10))
    >>> sample = ScoreSample.from_views(*views, y=y)
    >>> push_share(BCL(alpha=0.9), sample).value < push_share(InfoNCE(), sample).value
    True
    >>> push_share(Supervised(), sample).value
    0.0
    """
    sample = _checked_arguments(loss, sample, owner="push_share")
    is_false = torch.tensor(~sample.is_negative)
    with torch.enable_grad():
        tape, rows = _rows_of(loss, sample)
        d_scores, *_ = tape.gradients(loss.losses(rows).sum())
    # A positive gradient pushes a candidate away; candidates that are pulled do not count.
    push = d_scores.clamp_min(0)
    total = push.sum(1)
    if not bool((total > 0).any()):
        raise ValueError(f"{loss!r} does not push any candidate at these scores.")
    # The mean over the anchors that push a candidate.
    shares = ((push * is_false).sum(1) / total)[total > 0].numpy()
    return Estimate(float(shares.mean()), float(shares.std() / math.sqrt(len(shares))))


class Reliability(NamedTuple):
    """Predicted and observed probability of a true negative by rank.

    Attributes
    ----------
    ranks : ndarray of shape (n_bins,)
        The mean unlabeled rank u of each bin, the share of an anchor's candidates that score
        lower; from the farthest candidates to the closest.
    predicted : ndarray of shape (n_bins,)
        The mean of p(TN | u) by the loss.
    observed : ndarray of shape (n_bins,)
        The share of true negatives.
    counts : ndarray of shape (n_bins,), dtype int64
        Number of candidates, of all anchors together.
    brier : float
        The Brier score of single candidates, in [0, 1]; lower is better.
    """

    ranks: np.ndarray
    predicted: np.ndarray
    observed: np.ndarray
    counts: np.ndarray
    brier: float

    @property
    def largest_gap(self) -> float:
        """The largest difference of `predicted` and `observed` in a bin, in [0, 1]."""
        return float(np.abs(self.predicted - self.observed).max())


@guarded()
def reliability(loss: Loss, sample: ScoreSample, n_bins: int = 10) -> Reliability:
    """Compare the predicted with the observed probability of a true negative by rank.

    Parameters
    ----------
    loss : Loss
        A loss with a probability of true negatives by rank: ``BCL`` and ``NonparametricBCL`` by
        their model of scores, ``SoftRing`` by its posterior, ``Ring`` with 0 or 1, ``InfoNCE``
        with 1, and ``DCL``, ``HCL`` and ``PUCL`` with one minus their class prior.
    sample : ScoreSample
        As in :func:`negative_bias`.
    n_bins : int, default=10
        Number of bins of (nearly) the same number of ranks, from 1 to N.

    Returns
    -------
    reliability : Reliability
        Predictions and observations by bin, and the Brier score.

    Raises
    ------
    ValueError
        If the loss has no such probability, a hyperparameter is outside its range or is a
        schedule, or there are more bins than candidates.
    TypeError
        If `loss` is not a Loss or `sample` is not a ScoreSample.

    See Also
    --------
    skcontrast.plotting.ReliabilityDisplay : The plot.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.estimation import ScoreSample, reliability
    >>> from skcontrast.losses import SoftRing
    >>> y = np.repeat(np.arange(10), 20)
    >>> views = np.random.default_rng(0).normal(np.eye(10)[y], 0.3, (2, 200, 10))
    >>> sample = ScoreSample.from_views(*views, y=y)
    >>> curve = reliability(SoftRing(sharpness=1.6), sample)
    >>> curve.largest_gap < 0.03
    True
    """
    sample = _checked_arguments(loss, sample, owner="reliability")
    if not loss.overrides("true_negative_probability"):
        raise ValueError(f"{type(loss).__name__} has no probability of true negatives by rank.")
    n_anchors, n_candidates = sample.scores.shape
    within = [Interval(Integral, 1, n_candidates, closed="both")]
    check_argument("reliability", "n_bins", n_bins, within)
    observed = true_negatives_by_rank(sample)
    ranks = torch.arange(1, n_candidates + 1, dtype=torch.float64)
    predicted = loss.true_negative_probability(ranks, n_candidates).numpy()
    # Rank r of N is the interval around (r − ½) / N.
    bins = np.array_split((ranks.numpy() - 0.5) / n_candidates, n_bins)
    # The Brier score: the mean of (1 − p)² over true negatives, and of p² over false negatives.
    brier = observed * (1 - predicted) ** 2 + (1 - observed) * predicted**2
    return Reliability(
        ranks=np.array([values.mean() for values in bins]),
        predicted=np.array([values.mean() for values in np.array_split(predicted, n_bins)]),
        observed=np.array([values.mean() for values in np.array_split(observed, n_bins)]),
        counts=n_anchors * np.array([len(values) for values in bins]),
        brier=float(brier.mean()),
    )


def _rows_of(loss: Loss, sample: ScoreSample) -> tuple[Tape, Rows]:
    """Return the scores of a sample, and as the input of a loss."""
    scores, positives = torch.tensor(sample.scores), torch.tensor(sample.positives)
    excluded = torch.empty(len(scores), 0, dtype=torch.int64)
    bounds = sample.lower_bound, -sample.lower_bound
    tape = Tape(scores, positives, excluded, bounds=bounds)
    return tape, Rows(tape, torch.tensor(~sample.is_negative) if loss.requires_y else None)


def _checked_arguments(
    loss: Loss, sample: ScoreSample, *, owner: str, is_estimate: bool = False
) -> ScoreSample:
    """Validate the arguments, and return the validated sample."""
    check_component(loss, Loss, owner, "loss")
    check_component(sample, ScoreSample, owner, "sample")
    check_hyperparameters(loss)
    if is_estimate and not loss.is_estimate:
        raise ValueError(
            f"{type(loss).__name__} is not an estimate of the mean of e^s over true "
            "negatives. Pass a loss such as InfoNCE(), DCL() or BCL()."
        )
    return checked_sample(sample)
