"""Estimators of the negative term: naive formulas, and those that training uses."""

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.stats import kstest
from sklearn.metrics import roc_auc_score

from benchmarks._bcl_scores import ScoreModel, compare_estimators, sharpness_of
from skcontrast.estimation import ScoreSample

# private: the estimate that the benchmark restates
from skcontrast.estimation._known_scores import estimate
from skcontrast.losses import DCL, PUCL

# private: the formula that the benchmark restates
from skcontrast.losses._posterior import false_negative_probability, ranks_inside
from tests.common import LOSSES
from tests.naive_losses import log_estimate


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_estimates_are_those_of_the_naive_formula_or_refused(loss):
    sample = ScoreModel(0.8, 0.2, gamma=1.0).sample(30, 40, random_state=0)
    if not loss.is_estimate:
        with pytest.raises(ValueError, match=f"{type(loss).__name__} is not an estimate"):
            estimate(loss, sample)
        return
    before = sample.scores.copy()
    arrays = sample.scores, sample.positives, ~sample.is_negative
    anchors = zip(*map(torch.tensor, arrays), strict=True)
    naive = [log_estimate(loss, *anchor, sample.lower_bound).exp() for anchor in anchors]
    np.testing.assert_allclose(estimate(loss, sample), naive, rtol=1e-10)
    np.testing.assert_array_equal(sample.scores, before)


def test_the_floor_holds_where_subtraction_leaves_nothing():
    sample = ScoreSample(np.full((1, 3), -2.0), np.ones((1, 3), bool), np.full((1, 2), 2.0), -2.0)
    assert estimate(DCL(tau_plus=0.5), sample) == pytest.approx(np.exp(-2.0))


# Comparisons


@pytest.fixture(scope="module")
def comparison():
    """τ⁺ = .1, α = .9, t = .5, the paper's settings except the number of candidates."""
    return compare_estimators(ScoreModel(), n_anchors=1000, n_candidates=1024, random_state=0)


def test_inverting_the_cdf_takes_the_bias_away(comparison):
    bias = comparison.summary("bias")
    printed, inverted = bias["BCL (printed)"], bias["BCL (inverted)"]
    assert printed[0] == pytest.approx(-0.0195, abs=0.001)
    assert abs(inverted[0]) < 3 * inverted[1] < 0.1 * abs(printed[0])


def test_pucl_alone_corrects_for_positives_that_are_missing_among_the_candidates():
    model = ScoreModel(tau_plus=0.3, c=0.4)
    comparison = compare_estimators(model, n_anchors=2000, n_candidates=256, random_state=0)
    bias, error = comparison.summary("bias")["PUCL"]
    assert abs(bias) < 3 * error
    relative = comparison.summary("bias")["DCL"][0] / comparison.supervised.mean()
    assert relative == pytest.approx(-0.093, abs=0.01)


# The model

MODELS = [
    ScoreModel(alpha=0.5, tau_plus=0.3, gamma=0.0),
    ScoreModel(alpha=0.8, tau_plus=0.3, gamma=0.0, temperature=0.2),
    ScoreModel(alpha=1.0, tau_plus=0.3, gamma=0.0, form="printed"),
    ScoreModel(alpha=0.9, tau_plus=0.6, gamma=0.0, proposal="normal", temperature=2.0),
]


@pytest.fixture(params=MODELS, ids=repr)
def model(request):
    return request.param


def test_unlabeled_cdf_is_the_quadratic_that_bcl_inverts():
    model = ScoreModel(alpha=0.85, tau_plus=0.2)
    phi = np.linspace(0, 1, 11)
    a = (1 - 2 * 0.85) * (1 - 2 * 0.2)
    np.testing.assert_allclose(model.cdf(phi - 0.5), (1 - a) * phi + a * phi**2, atol=1e-12)


def test_auc_is_not_alpha(model):
    end = 0.5 if model.proposal == "uniform" else 9.0
    integral, _ = quad(lambda x: model.density(x, "FN") * model.cdf(x, "TN"), -end, end)
    assert model.auc == pytest.approx((1 + 4 * model.alpha) / 6) == pytest.approx(integral)
    sample = model.sample(1, 20_000, random_state=0)
    measured = roc_auc_score(~sample.is_negative[0], sample.scores[0])
    assert measured == pytest.approx(model.auc, abs=0.015)


def test_samples_follow_the_densities(model):
    sample = model.sample(20, 500, n_positives=100, random_state=1)
    drawn = {
        "TN": sample.scores[sample.is_negative],
        "FN": sample.scores[~sample.is_negative],
        "UN": sample.scores.ravel(),
    }
    for component, scores in drawn.items():
        test = kstest(scores * model.temperature, model.cdf, args=(component,))
        assert test.pvalue > 1e-3
    positives = sample.positives.ravel() * model.temperature
    assert kstest(positives, model.cdf, args=("FN",)).pvalue > 1e-3


def test_a_candidate_is_false_with_probability_tau_plus():
    sample = ScoreModel(tau_plus=0.2).sample(100, 1000, random_state=0)
    assert (~sample.is_negative).mean() == pytest.approx(0.2, abs=0.005)
    rest = ScoreModel(tau_plus=0.2, c=0.4).sample(100, 1000, random_state=0)
    expected = PUCL(tau_plus=0.2, c=0.4).effective_tau_plus
    assert (~rest.is_negative).mean() == pytest.approx(expected, abs=0.005)
    assert ScoreModel(c=1.0).sample(5, 100, random_state=0).is_negative.all()


def test_the_sharpness_gives_back_the_auc():
    for tau_plus in [0.05, 0.1, 0.5]:
        for auc in [0.55, 0.75, 0.9, 0.97]:
            sharpness = sharpness_of(auc, tau_plus)
            u = ranks_inside(200_000)
            p = false_negative_probability(u, sharpness, tau_plus).numpy()
            is_false = np.random.default_rng(0).random(len(u)) < p
            assert roc_auc_score(is_false, u.numpy()) == pytest.approx(auc, abs=0.005)
