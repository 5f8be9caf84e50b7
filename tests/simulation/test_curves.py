"""Errors of estimators along a parameter of the model."""

import numpy as np
import pytest

from skcontrast.losses import BCL, DCL
from skcontrast.simulation import (
    ScoreModel,
    _estimators,
    compare_estimators,
    estimator_curve,
    matched_estimators,
)

# Comparisons


@pytest.fixture(scope="module")
def comparison():
    """τ⁺ = .1, α = .9, t = .5, the paper's settings except the number of candidates."""
    return compare_estimators(ScoreModel(), n_anchors=1000, n_candidates=1024, random_state=0)


def test_the_oracle_makes_no_error(comparison):
    np.testing.assert_allclose(comparison.estimates["oracle"], comparison.supervised, rtol=1e-12)


def test_inverting_the_cdf_takes_the_bias_away(comparison):
    bias = comparison.summary("bias")
    printed, inverted = bias["BCL (printed)"], bias["BCL (inverted)"]
    assert printed[0] == pytest.approx(-0.0195, abs=0.001)
    assert abs(inverted[0]) < 3 * inverted[1] < 0.1 * abs(printed[0])


def test_inverted_bcl_has_the_smallest_error(comparison):
    for other in ("BIASED", "DCL", "HCL", "BCL (printed)"):
        difference, error = comparison.mse_difference("BCL (inverted)", other, factor=0.5)
        assert difference < -3 * error


def test_printed_and_inverted_bcl_at_512_candidates():
    losses = {cdf: BCL(0.9, tau_plus=0.1, cdf=cdf) for cdf in ("printed", "inverted")}
    comparison = compare_estimators(
        ScoreModel(), losses, n_anchors=2000, n_candidates=512, random_state=0
    )
    mse, bias = comparison.summary("mse"), comparison.summary("bias")
    assert bias["printed"][0] == pytest.approx(-0.020, abs=0.001)
    assert mse["printed"][0] == pytest.approx(5.1e-4, abs=0.4e-4)
    assert mse["inverted"][0] == pytest.approx(1.35e-4, abs=0.15e-4)


def test_summaries_are_means_with_standard_errors(comparison):
    errors = comparison.estimates["DCL"] - comparison.supervised
    expected = {"bias": errors, "mse": errors**2, "mean": comparison.estimates["DCL"]}
    for metric, values in expected.items():
        value, error = comparison.summary(metric)["DCL"]
        assert value == pytest.approx(values.mean())
        assert error == pytest.approx(values.std(ddof=1) / np.sqrt(len(values)))
    assert comparison.mse_difference("DCL", "DCL") == (0, 0)


def test_anchors_without_a_true_negative_are_left_out():
    model = ScoreModel(tau_plus=0.8)
    comparison = compare_estimators(model, n_anchors=500, n_candidates=3, random_state=0)
    assert len(comparison.supervised) == pytest.approx(500 * (1 - 0.8**3), abs=40)
    assert all(
        len(values) == len(comparison.supervised) for values in comparison.estimates.values()
    )
    assert np.isfinite(comparison.supervised).all()
    with pytest.raises(ValueError, match=r"Raise n_anchors or n_candidates"):
        compare_estimators(ScoreModel(tau_plus=1 - 1e-9), n_candidates=1, random_state=0)


def test_anchors_are_drawn_in_chunks(monkeypatch):
    monkeypatch.setattr(_estimators, "_CHUNK_ELEMENTS", 1000)
    sizes, draw = [], ScoreModel.sample

    def recorded(self, *args):
        sample = draw(self, *args)
        sizes.append(sample.scores.shape)
        return sample

    monkeypatch.setattr(ScoreModel, "sample", recorded)
    comparison = compare_estimators(ScoreModel(), n_anchors=25, n_candidates=100, random_state=0)
    assert sizes == [(10, 100), (10, 100), (5, 100)] and len(comparison.supervised) == 25


def test_estimators_may_be_a_dict_or_a_function_of_the_model():
    model = ScoreModel(alpha=0.8)
    settings = {"n_anchors": 20, "random_state": 0}
    by_default = compare_estimators(model, **settings).summary()
    for estimators in (matched_estimators, matched_estimators(model)):
        assert compare_estimators(model, estimators, **settings).summary() == by_default
    for nothing in ({}, DCL()):
        with pytest.raises(ValueError, match="estimators must be a dict of at least one loss"):
            compare_estimators(model, nothing)


def test_matched_estimators_know_the_model():
    losses = matched_estimators(ScoreModel(alpha=0.7, tau_plus=0.3))
    for name, loss in losses.items():
        params = loss.get_params()
        assert params.get("alpha", 0.7) == 0.7 and params.get("tau_plus", 0.3) == 0.3, name


# Curves


def test_a_curve_compares_at_every_value_and_follows_the_model():
    model = ScoreModel(alpha=0.5, tau_plus=0.3)
    curve = estimator_curve(model, "alpha", [0.5, 0.9], n_anchors=200, random_state=0)
    assert model.alpha == 0.5 and curve.parameter == "alpha" and curve.values == (0.5, 0.9)
    first = compare_estimators(model, n_anchors=200, random_state=0)
    values, errors = curve.summary("mse")["DCL"]
    assert (values[0], errors[0]) == first.summary("mse")["DCL"]
    # Followed, BCL is InfoNCE at α = .5 only; fixed there, it stays InfoNCE.
    followed = curve.summary("mse")
    np.testing.assert_allclose(followed["BCL (inverted)"][0, 0], followed["BIASED"][0, 0])
    assert followed["BCL (inverted)"][0, 1] < followed["BIASED"][0, 1] / 3
    fixed = estimator_curve(
        model, "alpha", [0.9], matched_estimators(model), n_anchors=200, random_state=0
    ).summary("mse")
    np.testing.assert_allclose(fixed["BCL (inverted)"], fixed["BIASED"])


@pytest.mark.parametrize("parameter", ["tau_plus", "temperature", "gamma"])
def test_every_parameter_of_the_model_may_vary(parameter):
    curve = estimator_curve(ScoreModel(), parameter, [0.2, 0.4], n_anchors=50, random_state=0)
    means = curve.summary("mean")["oracle"][0]
    assert means[0] != means[1]


def test_the_number_of_candidates_may_vary():
    curve = estimator_curve(ScoreModel(), "n_candidates", [16, 256], n_anchors=300, random_state=0)
    mse = curve.summary("mse")["BCL (inverted)"][0]
    assert mse[1] < mse[0] / 8


@pytest.mark.parametrize(
    "parameter, values, message",
    [
        ("beta", [1.0], "'parameter' parameter of estimator_curve must be"),
        ("alpha", [], "values must hold at least one value"),
        ("alpha", [2.0], "'alpha' parameter of ScoreModel must be"),
    ],
)
def test_curves_that_cannot_be_drawn_are_refused(parameter, values, message):
    with pytest.raises(ValueError, match=message):
        estimator_curve(ScoreModel(), parameter, values, n_anchors=10)


@pytest.mark.parametrize(
    "function", [compare_estimators, lambda m: estimator_curve(m, "alpha", [1])]
)
def test_a_class_in_the_place_of_a_model_is_refused(function):
    with pytest.raises(TypeError, match=r"'model' parameter .* must be an instance"):
        function(ScoreModel)


def test_an_unknown_metric_is_refused(comparison):
    with pytest.raises(ValueError, match=r"'metric' parameter of .* Got 'rmse'"):
        comparison.summary("rmse")


def test_values_of_a_curve_may_be_floats_a_scalar_or_wrong():
    model = ScoreModel()
    curve = estimator_curve(model, "n_candidates", np.array([16.0, 32.0]), n_anchors=5)
    assert curve.values == (16, 32)
    assert len(estimator_curve(model, "alpha", 0.7, n_anchors=5).comparisons) == 1
    with pytest.raises(ValueError, match="n_candidates varies along the curve"):
        estimator_curve(model, "n_candidates", [16], n_candidates=8)
