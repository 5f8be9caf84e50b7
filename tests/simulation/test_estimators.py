"""Estimators of the negative term: naive formulas, and those that training uses."""

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.optimize import brentq

from skcontrast._objective._contrast import Contrast
from skcontrast._objective._mean_loss import objective_value
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    PUCL,
    InfoNCE,
    NonparametricBCL,
    PositiveDebiased,
    Ring,
    SemiSupCon,
    SoftRing,
    SoftSupCon,
    SupCon,
    Supervised,
)
from skcontrast.losses import __all__ as exported_losses
from skcontrast.schedules import Linear
from skcontrast.similarity import Similarity
from skcontrast.simulation import ScoreModel, ScoreSample, estimate

TAU, ALPHA, BETA, C = 0.2, 0.8, 0.7, 0.3


def inverted(cdf):
    a = (1 - 2 * ALPHA) * (1 - 2 * TAU)
    return (-(1 - a) + np.sqrt((1 - a) ** 2 + 4 * a * cdf)) / (2 * a)


def subtracted(a, b, weighted_mean, sample):
    estimates = a * weighted_mean - b * np.exp(sample.positives).mean(1)
    return np.maximum(estimates, np.exp(sample.lower_bound))


def weighted(sample, weights):
    return (weights * np.exp(sample.scores)).sum(1) / weights.sum(1)


def cdf_of(sample):
    s = sample.scores
    return (s[:, None, :] <= s[:, :, None]).mean(2)


def posterior(phi):
    true = (1 - TAU) * (ALPHA + (1 - 2 * ALPHA) * phi)
    return true / (true + TAU * (1 - ALPHA + (2 * ALPHA - 1) * phi))


def naive_soft_ring(sample, k=3.0):
    def false_negative(u, m):
        return 1 / (1 + np.exp(-k * (np.log(u / (1 - u)) - m)))

    def excess(m):
        return quad(false_negative, 0, 1, args=(m,), points=[0.9, 0.99])[0] - TAU

    m = brentq(excess, -20, 20)
    u = cdf_of(sample) - 0.5 / sample.scores.shape[1]
    return weighted(sample, (1 - false_negative(u, m)) * np.exp(BETA * sample.scores))


def naive_nonparametric(sample):
    phi = inverted(cdf_of(sample))
    wanted = 2 * ALPHA * (1 - BETA) * (1 - phi) + 2 * (1 - ALPHA) * BETA * phi
    wanted /= ALPHA * (1 - BETA) + (1 - ALPHA) * BETA
    true = 2 * ALPHA * (1 - phi) + 2 * (1 - ALPHA) * phi
    false = 2 * (1 - ALPHA) * (1 - phi) + 2 * ALPHA * phi
    omega = wanted / ((1 - TAU) * true + TAU * false)
    return (omega * np.exp(sample.scores)).mean(1)


def naive_ring(sample):
    n = sample.scores.shape[1]
    ordered = np.sort(sample.scores, axis=1)[:, ::-1]
    return np.exp(ordered[:, int(0.2 * n * 0.5) : int(0.5 * n)]).sum(1) / n


NAIVE = {
    InfoNCE: (InfoNCE(), lambda s: np.exp(s.scores).mean(1)),
    DCL: (
        DCL(TAU),
        lambda s: subtracted(1 / (1 - TAU), TAU / (1 - TAU), np.exp(s.scores).mean(1), s),
    ),
    HCL: (
        HCL(TAU, BETA),
        lambda s: subtracted(
            1 / (1 - TAU), TAU / (1 - TAU), weighted(s, np.exp(BETA * s.scores)), s
        ),
    ),
    PUCL: (
        PUCL(TAU, C),
        lambda s: subtracted(
            (1 - TAU * C) / (1 - TAU), TAU * (1 - C) / (1 - TAU), np.exp(s.scores).mean(1), s
        ),
    ),
    Ring: (Ring(outer=0.5, inner=0.2), naive_ring),
    SoftRing: (SoftRing(3.0, TAU, BETA), naive_soft_ring),
    BCL: (
        BCL(ALPHA, BETA, TAU),
        lambda s: weighted(s, posterior(inverted(cdf_of(s))) * np.exp(BETA * s.scores)),
    ),
    NonparametricBCL: (NonparametricBCL(ALPHA, BETA, TAU), naive_nonparametric),
    Supervised: (
        Supervised(),
        lambda s: np.array(
            [np.exp(row[true]).mean() for row, true in zip(s.scores, s.is_negative, strict=True)]
        ),
    ),
}


@pytest.mark.parametrize("loss, naive", NAIVE.values(), ids=lambda v: type(v).__name__)
def test_estimates_are_those_of_the_naive_formula(loss, naive):
    sample = ScoreModel(ALPHA, TAU, gamma=1.0).sample(30, 40, random_state=0)
    before = sample.scores.copy()
    # The loss takes its integral over the ranks by steps.
    rtol = 1e-6 if isinstance(loss, SoftRing) else 1e-12
    np.testing.assert_allclose(estimate(loss, sample), naive(sample), rtol=rtol)
    np.testing.assert_array_equal(sample.scores, before)


def test_printed_bcl_takes_the_empirical_cdf_for_phi():
    sample = ScoreModel(ALPHA, TAU).sample(30, 40, random_state=0)
    naive = weighted(sample, posterior(cdf_of(sample)))
    printed = BCL(ALPHA, tau_plus=TAU, cdf="printed")
    np.testing.assert_allclose(estimate(printed, sample), naive, rtol=1e-12)


def test_every_loss_is_an_estimator_or_refused():
    sample = ScoreModel().sample(2, 5, random_state=0)
    for loss in (SupCon(), SemiSupCon(), SoftSupCon(), PositiveDebiased()):
        with pytest.raises(ValueError, match=f"{type(loss).__name__} does not differ from"):
            estimate(loss, sample)
    refused = {SupCon, SemiSupCon, SoftSupCon, PositiveDebiased}
    assert {kind.__name__ for kind in refused.union(NAIVE)} == set(exported_losses) - {"Loss"}


class GivenScores(Similarity):
    """Scores that are products of numbers; bounds as given."""

    bilinear = True
    _parameter_constraints = {"lowest": "no_validation"}

    def __init__(self, lowest=-2.0):
        self.lowest = lowest

    def bounds(self, width):
        return self.lowest, -self.lowest


@pytest.mark.parametrize("loss", [DCL(0.3), HCL(0.3), BCL(0.9, 0.5, 0.3), NonparametricBCL(0.9)])
def test_estimates_are_those_that_training_uses(loss):
    sample = ScoreModel(tau_plus=0.3, gamma=1.0).sample(5, 40, 1, random_state=0)
    n = sample.scores.shape[1]
    for scores, positives, expected in zip(
        sample.scores, sample.positives, estimate(loss, sample), strict=True
    ):
        contrast = Contrast(
            anchors=torch.ones(1, 1, dtype=torch.float64),
            candidates=torch.tensor(scores)[:, None],
            positives=torch.tensor(positives)[None],
            excluded=torch.empty(1, 0, dtype=torch.int64),
        )
        value = objective_value(contrast, loss, GivenScores(sample.lower_bound)).item()
        from_loss = np.expm1(value) * np.exp(positives[0]) / n
        assert from_loss == pytest.approx(expected, rel=1e-10)


def test_the_floor_holds_where_subtraction_leaves_nothing():
    sample = ScoreSample(np.full((1, 3), -2.0), np.ones((1, 3), bool), np.full((1, 2), 2.0), -2.0)
    assert estimate(DCL(0.5), sample) == pytest.approx(np.exp(-2.0))


@pytest.mark.parametrize(
    "loss, error, message",
    [
        (DCL(Linear(0, 0.1)), ValueError, "'tau_plus' parameter of DCL is a schedule"),
        (DCL(2.0), ValueError, "'tau_plus' parameter of DCL must be"),
        (DCL, TypeError, r"'loss' parameter of estimate must be an instance"),
    ],
)
def test_anything_except_a_ready_loss_is_refused(loss, error, message):
    with pytest.raises(error, match=message):
        estimate(loss, ScoreModel().sample(2, 5, random_state=0))
