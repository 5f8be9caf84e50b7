"""Curves of p(true negative | rank)."""

import numpy as np

from benchmarks._bcl_scores import ScoreModel
from skcontrast.estimation import ScoreSample, project_views, reliability
from skcontrast.losses import BCL, DCL, Ring
from skcontrast.plotting import ReliabilityDisplay
from skcontrast.schedules import Auto
from tests.common import X_DIGITS, small

LOSSES = {"BCL": BCL(alpha=0.9), "Ring": Ring(outer=1.0, inner=0.1)}


def test_curves_are_the_predictions_and_the_observation(legend):
    sample = ScoreModel().sample(100, 64, random_state=0)
    display = ReliabilityDisplay.from_sample(sample, LOSSES, n_bins=8)
    assert legend(display) == ["observed", "BCL", "Ring"]
    for name, loss in LOSSES.items():
        found = reliability(loss, sample, 8)
        np.testing.assert_array_equal(display.lines_[name].get_xdata(), found.ranks)
        np.testing.assert_array_equal(display.lines_[name].get_ydata(), found.predicted)
        np.testing.assert_array_equal(display.observed_.get_ydata(), found.observed)
    assert display.figure_ is display.ax_.figure and "rank" in display.ax_.get_xlabel()


def test_an_embedder_is_shown_by_its_own_loss_and_by_its_views(figures):
    y = np.arange(len(X_DIGITS)) % 10
    embedder = small(loss=DCL(tau_plus=0.1)).fit(X_DIGITS)
    _, ax = figures.subplots()
    display = ReliabilityDisplay.from_estimator(embedder, X_DIGITS, y, ax=ax, linewidth=5)
    views = project_views(embedder, X_DIGITS)
    sample = ScoreSample.from_views(*views, y=y, similarity=embedder.similarity_)
    observed = reliability(DCL(tau_plus=0.1), sample).observed
    assert list(display.lines_) == ["DCL"] and display.ax_ is ax
    assert display.lines_["DCL"].get_linewidth() == 5
    np.testing.assert_array_equal(display.observed_.get_ydata(), observed)


def test_the_own_loss_of_an_embedder_has_its_estimates(figures):
    y = np.arange(len(X_DIGITS)) % 10
    embedder = small(loss=DCL(tau_plus=Auto(every=1))).fit(X_DIGITS, y)
    display = ReliabilityDisplay.from_estimator(embedder, X_DIGITS, y)
    predicted = display.lines_["DCL"].get_ydata()
    np.testing.assert_allclose(predicted, 1 - embedder.estimates_["tau_plus"])
