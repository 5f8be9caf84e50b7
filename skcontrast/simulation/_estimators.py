"""Losses as estimators of an expectation over true negatives, compared on simulated scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
import torch

from .._checks import StrOptions, check_component, checked, validate_parameters
from .._objective._exponential import log_expectation
from ..estimation import sharpness_from_auc
from ..estimation._samples import ScoreSample, checked_sample, with_negatives
from ..losses import (
    BCL,
    DCL,
    HCL,
    PUCL,
    InfoNCE,
    Loss,
    NonparametricBCL,
    Ring,
    SoftRing,
    Supervised,
)
from ..schedules._numbers import check_numbers
from ._scores import DRAWN, RandomState, ScoreModel

Metric: TypeAlias = Literal["mse", "bias", "mean"]
Losses: TypeAlias = dict[str, Loss]

# Scores drawn at a time: enough to keep the arrays efficient, few enough to stay in cache.
_CHUNK_ELEMENTS = 2**19


@checked(loss=Loss, sample=ScoreSample)
def estimate(loss: Loss, sample: ScoreSample) -> np.ndarray:
    r"""Return a loss's estimate of the mean of :math:`e^s` over an anchor's true negatives.

    .. math:: \hat E^- = a \cdot \frac1N \sum_j w_j\, e^{s_j}
        - b \cdot \frac1K \sum_k e^{s^+_k}, \qquad w_j \propto e^{c_j + \beta s_j}

    floored at the lowest possible :math:`e^s`, computed in float64 by the code that
    :func:`skcontrast.contrastive_loss` runs. ``Supervised()`` sees the truth: it is the oracle.

    Parameters
    ----------
    loss : Loss
        An instance with numbers, not schedules, as hyperparameters.
    sample : ScoreSample
        M anchors, as :meth:`ScoreModel.sample` draws them.

    Returns
    -------
    estimates : ndarray of shape (n_anchors,)
        One value per anchor, in units of :math:`e^s`.

    Raises
    ------
    ValueError
        If the loss is not such an estimate (``SupCon``, ``PositiveDebiased``), or a
        hyperparameter is outside its range or is a schedule.
    TypeError
        If `loss` is not an instance of :class:`skcontrast.losses.Loss`.

    See Also
    --------
    compare_estimators : The estimates of several losses on the same scores.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.losses import InfoNCE
    >>> from skcontrast.simulation import ScoreModel, estimate
    >>> sample = ScoreModel().sample(4, 100, random_state=0)
    >>> np.allclose(estimate(InfoNCE(), sample), np.exp(sample.scores).mean(axis=1))
    True
    """
    check_numbers(loss)
    sample = checked_sample(sample)
    if not loss.is_estimate:
        raise ValueError(
            f"{type(loss).__name__} does not differ from InfoNCE by an estimate of the mean of "
            "e^s over true negatives alone: there is nothing to compare."
        )
    log_estimates = log_expectation(
        torch.tensor(sample.scores, dtype=torch.float64),
        torch.tensor(sample.positives, dtype=torch.float64),
        loss,
        bounds=(sample.lower_bound, -sample.lower_bound),
        same_class=torch.tensor(~sample.is_negative),
    )
    return log_estimates.exp().numpy()


@checked(model=ScoreModel)
def matched_estimators(model: ScoreModel) -> Losses:
    """Return the losses as estimators, their hyperparameters set to the truth of a model.

    Parameters
    ----------
    model : ScoreModel
        Gives α, τ⁺ and c.

    Returns
    -------
    estimators : dict of str to Loss
        "BIASED" (InfoNCE), "DCL", "PUCL", "HCL" with β = .5, "BCL (printed)" and
        "BCL (inverted)" with β = 0, "BCL, β = .5", "NonparametricBCL" with β = .5, "Ring" without
        the closest share τ⁺, "SoftRing" with the sharpness of the model's AUC, and "oracle"
        (Supervised). Only PUCL knows c; the others take τ⁺ for the share of false negatives.

    Notes
    -----
    HCL and BCL with β = .5 aim at a mean that is tilted towards hard negatives, and Ring at a sum
    over fewer candidates: not all of their difference from the truth is an error. DCL, PUCL and
    HCL do better here than in training: here their positives are drawn from the density of false
    negatives, which the views of a sample are not.

    Examples
    --------
    >>> from skcontrast.simulation import ScoreModel, matched_estimators
    >>> matched_estimators(ScoreModel(tau_plus=0.2))["DCL"]
    DCL(tau_plus=0.2)
    """
    validate_parameters(model)
    alpha, tau_plus = model.alpha, model.tau_plus
    sharpness = sharpness_from_auc(model.auc, tau_plus).value if tau_plus else 0.0
    return {
        "BIASED": InfoNCE(),
        "DCL": DCL(tau_plus),
        "PUCL": PUCL(tau_plus, model.c),
        "HCL": HCL(tau_plus, beta=0.5),
        "BCL (printed)": BCL(alpha, tau_plus=tau_plus, form="printed"),
        "BCL (inverted)": BCL(alpha, tau_plus=tau_plus),
        "BCL, β = .5": BCL(alpha, beta=0.5, tau_plus=tau_plus),
        "NonparametricBCL": NonparametricBCL(alpha, tau_plus=tau_plus),
        "Ring": Ring(outer=1.0, inner=tau_plus),
        "SoftRing": SoftRing(sharpness, tau_plus),
        "oracle": Supervised(),
    }


@dataclass(frozen=True)
class EstimatorComparison:
    r"""Estimates of several losses on the same anchors, and the values that they estimate.

    Attributes
    ----------
    supervised : ndarray of shape (n,)
        :math:`\theta_{\mathrm{SUP}}`, the mean of :math:`e^s` over the true negatives among an
        anchor's candidates. Anchors without any are left out.
    estimates : dict of str to ndarray of shape (n,)
        The estimates of each loss.
    """

    supervised: np.ndarray
    estimates: dict[str, np.ndarray]

    @checked(metric=[StrOptions(set(get_args(Metric)))])
    def summary(self, metric: Metric = "mse") -> dict[str, tuple[float, float]]:
        r"""Return mean and Monte-Carlo standard error of every estimator.

        Parameters
        ----------
        metric : {"mse", "bias", "mean"}, default="mse"
            The mean over the anchors of :math:`(\hat\theta - \theta_{\mathrm{SUP}})^2`, of
            :math:`\hat\theta - \theta_{\mathrm{SUP}}`, or of :math:`\hat\theta`.

        Returns
        -------
        summary : dict of str to (float, float)
            Value and standard error, in units of :math:`e^s`, or their square for "mse".

        Examples
        --------
        >>> from skcontrast.simulation import ScoreModel, compare_estimators
        >>> comparison = compare_estimators(ScoreModel(), random_state=0)
        >>> mse = comparison.summary("mse")
        >>> mse["BCL (inverted)"] < mse["DCL"] < mse["BIASED"]
        True
        """
        return {name: _mean_and_error(self._values(name, metric)) for name in self.estimates}

    def _values(self, name: str, metric: Metric) -> np.ndarray:
        if metric == "mean":
            return self.estimates[name]
        error = self.estimates[name] - self.supervised
        return error if metric == "bias" else error**2


@checked(model=ScoreModel, **DRAWN)
def compare_estimators(
    model: ScoreModel,
    estimators: Losses | None = None,
    *,
    n_anchors: int = 1000,
    n_candidates: int = 64,
    n_positives: int = 10,
    random_state: RandomState = None,
) -> EstimatorComparison:
    r"""Compare losses as estimators of the mean of :math:`e^s` over true negatives.

    Parameters
    ----------
    model : ScoreModel
        Draws the scores.
    estimators : dict of str to Loss, default=None
        The losses and their names; None is those of :func:`matched_estimators`.
    n_anchors : int, default=1000
        Number of anchors M ≥ 2. They are drawn in chunks: memory does not grow with M · N.
    n_candidates : int, default=64
        Number of candidates of each anchor N ≥ 1.
    n_positives : int, default=10
        Number of known positives of each anchor K ≥ 1, for the losses that subtract.
    random_state : int, Generator or None, default=None
        As in :meth:`ScoreModel.sample`.

    Returns
    -------
    comparison : EstimatorComparison
        All estimates of all anchors that have a true negative, for paired comparison, and their
        summaries.

    Raises
    ------
    ValueError
        If an argument or a hyperparameter is outside its range, a loss is not such an estimate,
        or fewer than two anchors have a true negative.
    TypeError
        If `model` is not a ScoreModel, or an estimator is not a Loss.

    Examples
    --------
    >>> from skcontrast.losses import DCL
    >>> from skcontrast.simulation import ScoreModel, compare_estimators
    >>> comparison = compare_estimators(ScoreModel(), {"DCL": DCL(0.1)}, random_state=0)
    >>> bias, error = comparison.summary("bias")["DCL"]
    >>> abs(bias) < 3 * error
    True
    """
    validate_parameters(model)
    losses = _checked_losses(estimators, model)
    rng = np.random.default_rng(random_state)
    rows = max(1, _CHUNK_ELEMENTS // n_candidates)
    sizes = [min(rows, n_anchors - start) for start in range(0, n_anchors, rows)]
    samples = (model.sample(size, n_candidates, n_positives, rng) for size in sizes)
    parts = [_compare_chunk(sample, losses) for sample in samples]
    supervised = np.concatenate([part[0] for part in parts])
    if len(supervised) < 2:
        raise ValueError(
            f"{len(supervised)} anchors have a true negative; raise n_anchors or n_candidates."
        )
    together = {name: np.concatenate([part[1][name] for part in parts]) for name in losses}
    return EstimatorComparison(supervised, together)


def _compare_chunk(
    sample: ScoreSample, losses: Losses
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return θ_SUP and the estimates of the anchors that have a true negative."""
    sample = with_negatives(sample)
    exponentials = np.where(sample.is_negative, np.exp(sample.scores), 0.0)
    supervised = exponentials.sum(axis=1) / sample.is_negative.sum(axis=1)
    return supervised, {name: estimate(loss, sample) for name, loss in losses.items()}


def _mean_and_error(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / np.sqrt(len(values)))


def _checked_losses(estimators: Losses | None, model: ScoreModel) -> Losses:
    losses = matched_estimators(model) if estimators is None else estimators
    if not isinstance(losses, dict) or not losses:
        raise ValueError(f"estimators must be a dict of at least one loss, got {losses!r}.")
    for name, loss in losses.items():
        check_component(loss, Loss, owner="compare_estimators", parameter=f"estimators[{name!r}]")
    return losses
