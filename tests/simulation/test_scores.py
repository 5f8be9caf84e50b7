"""The model of scores: densities, samples, validation."""

import pickle
from typing import get_args

import numpy as np
import pytest
import torch
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import kstest
from sklearn.base import clone
from sklearn.metrics import roc_auc_score

from skcontrast.losses import DCL, PUCL, NonparametricBCL
from skcontrast.simulation import ScoreModel, compare_estimators
from skcontrast.simulation._scores import Component


def reach(model):
    return 0.5 if model.proposal == "uniform" else 9.0


# The model


COMPONENTS = get_args(Component)


@pytest.mark.parametrize("component", COMPONENTS)
def test_densities_are_derivatives_of_cdfs_and_integrate_to_one(model, component):
    end = reach(model)
    x = np.linspace(-end, end, 7)[1:-1]
    for point in x:
        area, _ = quad(model.density, -end, point, args=(component, 0.3))
        assert area == pytest.approx(model.cdf(point, component, 0.3), abs=1e-9)
    assert model.cdf(end, component) == pytest.approx(1)
    assert model.cdf(-end, component) == pytest.approx(0)


def test_unlabeled_scores_are_a_mixture(model):
    x = np.linspace(-0.6, 0.6, 13)
    rest = 1 - model.tau_plus
    for law in (model.density, model.cdf):
        mixture = rest * law(x, "TN") + model.tau_plus * law(x, "FN")
        np.testing.assert_allclose(law(x, "UN"), mixture, atol=1e-12)
        halves = model.alpha * law(x, "lower") + (1 - model.alpha) * law(x, "upper")
        np.testing.assert_allclose(law(x, "TN"), halves, atol=1e-12)
        for beta, same in ((0.0, "lower"), (0.5, "TN")):
            np.testing.assert_allclose(law(x, "wanted", beta), law(x, same), atol=1e-12)


def test_the_weights_of_nonparametric_bcl_are_the_wanted_density_over_the_unlabeled_one():
    model, n = ScoreModel(alpha=0.8, tau_plus=0.2), 50
    x = quantiles(model, np.arange(1, n + 1) / n)
    weights = model.density(x, "wanted", 0.7) / model.density(x, "UN")
    ranks = torch.arange(1, n + 1, dtype=torch.float64)
    ours = NonparametricBCL(0.8, 0.7, 0.2).rank_weights(ranks, n)
    np.testing.assert_allclose(ours, weights, rtol=1e-9)


def quantiles(model, shares):
    """Return where the cdf of unlabeled scores has given values."""
    return np.array([brentq(lambda x, s=s: model.cdf(x) - s, -0.5, 0.5) for s in shares])


def test_no_density_is_wanted_of_hard_negatives_alone_where_there_are_none():
    with pytest.raises(ValueError, match="'beta' and 'alpha' must not both be 1"):
        ScoreModel(alpha=1.0).density(0.0, "wanted", 1.0)
    with pytest.raises(ValueError, match=r"'beta' parameter of ScoreModel\.cdf"):
        ScoreModel().cdf(0.0, "wanted", 1.5)


def test_unlabeled_cdf_is_the_quadratic_that_bcl_inverts():
    model = ScoreModel(alpha=0.85, tau_plus=0.2)
    phi = np.linspace(0, 1, 11)
    a = (1 - 2 * 0.85) * (1 - 2 * 0.2)
    np.testing.assert_allclose(model.cdf(phi - 0.5), (1 - a) * phi + a * phi**2, atol=1e-12)


def test_without_separation_all_components_are_the_proposal():
    x = np.linspace(-0.4, 0.4, 9)
    for component in ("TN", "FN", "UN", "wanted"):
        np.testing.assert_allclose(ScoreModel(alpha=0.5).density(x, component), 1)


def test_auc_is_not_alpha(model):
    end = reach(model)
    integral, _ = quad(lambda x: model.density(x, "FN") * model.cdf(x, "TN"), -end, end)
    assert model.auc == pytest.approx((1 + 4 * model.alpha) / 6) == pytest.approx(integral)
    sample = model.sample(1, 20_000, random_state=0)
    measured = roc_auc_score(~sample.is_negative[0], sample.scores[0])
    assert measured == pytest.approx(model.auc, abs=0.015)


# The samplers


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


@pytest.mark.parametrize("form, limit", [("once", 1 / 0.5), ("printed", 1 / 0.5**3)])
def test_shifts_stay_within_the_range_of_scores(form, limit):
    wide = ScoreModel(form=form, gamma=1.0).sample(2000, 50, random_state=0)
    assert np.abs(wide.scores).max() <= limit and wide.lower_bound == -limit
    assert wide.scores.max() > 0.95 * limit and wide.scores.min() < -0.95 * limit
    still = ScoreModel(form=form, gamma=0.0).sample(2000, 50, random_state=0)
    assert np.abs(still.scores).max() <= 0.5 / 0.5
    # An anchor's candidates and positives move together.
    spread = [np.ptp(np.c_[sample.scores, sample.positives], axis=1) for sample in (wide, still)]
    np.testing.assert_allclose(spread[0], spread[1])


def test_the_lowest_score_bounds_all_others_at_high_temperature():
    sample = ScoreModel(form="printed", temperature=2.0, gamma=1.0).sample(50, random_state=0)
    assert sample.scores.min() >= sample.lower_bound
    assert ScoreModel(proposal="normal").lower_bound == -np.inf


def test_random_state_decides_and_global_generators_are_left_alone():
    model = ScoreModel()
    before = np.random.get_state()[1].copy(), torch.random.get_rng_state()  # noqa: NPY002
    first, second = (model.sample(3, 20, random_state=5) for _ in range(2))
    for one, other in zip(first[:3], second[:3], strict=True):
        np.testing.assert_array_equal(one, other)
    assert not np.array_equal(first.scores, model.sample(3, 20, random_state=6).scores)
    runs = [compare_estimators(model, n_anchors=50, random_state=3) for _ in range(2)]
    assert runs[0].summary() == runs[1].summary()
    compare_estimators(model, n_anchors=5)
    np.testing.assert_array_equal(np.random.get_state()[1], before[0])  # noqa: NPY002
    assert torch.equal(torch.random.get_rng_state(), before[1])


def test_parameter_object_contract(model):
    for copy in (clone(model), pickle.loads(pickle.dumps(model))):
        assert copy.get_params() == model.get_params()
        one, other = (m.sample(2, 5, random_state=0).scores for m in (copy, model))
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    "parameter, value, admissible",
    [
        ("alpha", 0.4, r"\[0\.5, 1\.0\]"),
        ("tau_plus", 1.0, r"\[0\.0, 1\.0\)"),
        ("temperature", 0.0, r"\(0\.0, inf\)"),
        ("gamma", 1.1, r"\[0\.0, 1\.0\]"),
        ("form", "twice", "'once'"),
        ("proposal", "beta", "'normal'"),
        ("c", 1.1, r"\[0\.0, 1\.0\]"),
    ],
)
def test_parameters_out_of_range_are_refused_by_name(parameter, value, admissible):
    model = ScoreModel(**{parameter: value})
    uses = (
        lambda: model.sample(2, 5),
        lambda: model.density(0.0),
        lambda: model.cdf(0.0),
        lambda: compare_estimators(model, {"DCL": DCL()}),
    )
    for use in uses:
        with pytest.raises(
            ValueError, match=f"'{parameter}' parameter of ScoreModel.*{admissible}"
        ):
            use()


@pytest.mark.parametrize(
    "argument, value",
    [("n_anchors", 0), ("n_candidates", 2.5), ("n_positives", 0)],
)
def test_arguments_out_of_range_are_refused_by_name(argument, value):
    with pytest.raises(ValueError, match=f"'{argument}' parameter of ScoreModel.sample must be"):
        ScoreModel().sample(**{argument: value})
    with pytest.raises(ValueError, match=f"'{argument}' parameter of compare_estimators must be"):
        compare_estimators(ScoreModel(), **{argument: value})


def test_an_unknown_component_is_refused():
    with pytest.raises(
        ValueError, match=r"'component' parameter of ScoreModel.density must be .* Got 'PU'"
    ):
        ScoreModel().density(0.0, "PU")


@pytest.mark.parametrize("argument", ["n_anchors", "n_candidates", "n_positives"])
def test_more_scores_than_memory_are_refused_by_name(argument):
    with pytest.raises(ValueError, match=f"{argument}.* needs .* GB"):
        ScoreModel().sample(**{argument: 2**31 - 1})
