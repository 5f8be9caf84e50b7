"""The display draws the means of a comparison, and which are not significantly different."""

import inspect
from unittest.mock import create_autospec

import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex

from benchmarks._bcl_scores import ScoreModel
from skcontrast.estimation import ScoreSample, project_views, reliability
from skcontrast.losses import BCL, DCL, Ring
from skcontrast.metrics import BaselineComparison, compare_with_baselines

# private: the comparison is replaced
from skcontrast.plotting import BaselinesDisplay, ReliabilityDisplay, _comparisons
from skcontrast.schedules import Auto
from tests.common import X_DIGITS, small

COLUMNS = ("few labels", "neighbours", "linear")
SCORES = {"raw": [0.7, 0.72, 0.71], "PCA": [0.82, 0.79, 0.8], "embedder": [0.8, 0.83, 0.82]}


def comparison():
    scores = {row: {c: np.array(values) for c in COLUMNS} for row, values in SCORES.items()}
    return BaselineComparison(scores, dict.fromkeys(scores, 1.0), 5, 60)


def test_points_are_means_and_bars_deviations():
    display = BaselinesDisplay(comparison()).plot()
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == list(SCORES)
    for row, values in SCORES.items():
        for column in COLUMNS:
            line, _, (bars,) = display.points_[row][column]
            assert line.get_xdata() == pytest.approx(np.mean(values))
            ends = bars.get_segments()[0][:, 0]
            assert ends == pytest.approx(np.mean(values) + np.array([-1, 1]) * np.std(values))
    assert display.lines_["linear"].get_xdata()[0] == pytest.approx(np.mean(SCORES["embedder"]))
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names == ["5 labels per class", "neighbours", "linear"]


def test_the_legend_covers_no_row():
    display = BaselinesDisplay(comparison()).plot()
    display.figure_.canvas.draw()
    legend = display.ax_.get_legend().get_window_extent()
    assert legend.y0 >= display.ax_.get_window_extent().y1


def test_a_hollow_point_is_level_with_the_embedder():
    points = BaselinesDisplay(comparison()).plot().points_
    hollow = {row: to_hex(of["few labels"][0].get_markerfacecolor()) for row, of in points.items()}
    assert [row for row, color in hollow.items() if color == "#ffffff"] == ["PCA"]


def test_from_estimator_is_the_comparison_on_the_axes_of_the_user(monkeypatch):
    compare = create_autospec(compare_with_baselines, return_value=comparison())
    monkeypatch.setattr(_comparisons, "compare_with_baselines", compare)
    given = {"estimator": small(), "X": np.eye(4), "y": np.arange(4)}
    options = {"n_labels": 3, "n_repeats": 2, "random_state": 0}
    _, ax = plt.subplots()
    display = BaselinesDisplay.from_estimator(**given, **options, ax=ax, alpha=0.5)
    signature = inspect.signature(compare_with_baselines)
    passed = signature.bind(*compare.call_args.args, **compare.call_args.kwargs)
    assert list(passed.arguments.values())[:3] == list(given.values())
    assert options.items() <= passed.arguments.items()
    assert display.ax_ is ax and display.figure_ is ax.figure
    assert display.points_["raw"]["linear"][0].get_alpha() == 0.5


# Reliability


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
