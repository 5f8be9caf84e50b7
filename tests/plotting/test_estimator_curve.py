"""Curves of the errors of estimators."""

import numpy as np
import pytest

from skcontrast.plotting import EstimatorCurveDisplay
from skcontrast.simulation import ScoreModel, estimator_curve


@pytest.mark.parametrize("metric", ["mse", "bias", "mean"])
def test_curves_and_bands_are_the_summary(curve, legend, metric):
    display = EstimatorCurveDisplay(curve).plot(metric=metric)
    summary = curve.summary(metric)
    assert set(summary) - set(display.lines_) == (set() if metric == "mean" else {"oracle"})
    assert legend(display) == list(display.lines_)
    for name, line in display.lines_.items():
        values, errors = summary[name]
        np.testing.assert_array_equal(line.get_xdata(), [16, 64, 256])
        np.testing.assert_array_equal(line.get_ydata(), values)
        band = display.bands_[name].get_paths()[0].vertices[:, 1]
        assert band.max() == pytest.approx((values + 2 * errors).max())
        assert band.min() == pytest.approx((values - 2 * errors).min())


def test_axes_are_labelled_and_scaled(curve):
    ax = EstimatorCurveDisplay(curve).plot(metric="mse").ax_
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_xlabel() == "number of candidates N" and "squared error" in ax.get_ylabel()
    ax = EstimatorCurveDisplay(curve).plot(metric="bias").ax_
    assert ax.get_yscale() == "linear" and "bias" in ax.get_ylabel()


def test_names_choose_the_curves_and_a_name_has_one_colour(curve):
    some = EstimatorCurveDisplay(curve).plot(names=["DCL"])
    every = EstimatorCurveDisplay(curve).plot()
    assert list(some.lines_) == ["DCL"]
    assert some.lines_["DCL"].get_color() == every.lines_["DCL"].get_color()
    colors = [line.get_color() for line in every.lines_.values()]
    assert len(set(colors)) == len(colors)


def test_from_model_simulates_and_draws():
    settings = {"n_anchors": 50, "n_candidates": 32, "random_state": 0}
    display = EstimatorCurveDisplay.from_model(
        ScoreModel(), "alpha", [0.6, 0.9], metric="bias", names=["DCL"], **settings
    )
    expected = estimator_curve(ScoreModel(), "alpha", [0.6, 0.9], **settings).summary("bias")
    np.testing.assert_array_equal(display.lines_["DCL"].get_ydata(), expected["DCL"][0])


def test_unknown_names_and_metrics_are_refused(curve):
    with pytest.raises(ValueError, match=r"names must be among the estimators .* got 'SupCon'"):
        EstimatorCurveDisplay(curve).plot(names=["SupCon"])
    with pytest.raises(ValueError, match=r"'metric' parameter of .* must be"):
        EstimatorCurveDisplay(curve).plot(metric="rmse")
