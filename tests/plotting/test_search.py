"""Scores of searches."""

import numpy as np
import pytest
from scipy.stats import loguniform
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, RandomizedSearchCV
from sklearn.pipeline import Pipeline
from sklearn.tree import DecisionTreeClassifier

from skcontrast.losses import DCL, InfoNCE
from skcontrast.plotting import SearchDisplay
from tests.common import small, vectors

X, y = load_iris(return_X_y=True)


def tree(grid, **kwargs):
    """Return a fitted search over a tree, which is quick."""
    return GridSearchCV(DecisionTreeClassifier(random_state=0), grid, cv=3, **kwargs).fit(X, y)


def drawn(line):
    """Return places, means and the ends of the bars of a line."""
    points, _, (bars,) = line
    ends = np.array([segment[:, 1] for segment in bars.get_segments()])
    return points.get_xdata(), points.get_ydata(), ends


def results_of(params, means, stds=None):
    """Return results of a search of which nothing else is known."""
    stds = np.zeros(len(means)) if stds is None else stds
    return {"params": params, "mean_test_score": means, "std_test_score": stds}


def ticks(axis):
    return [text.get_text() for text in axis.get_ticklabels()]


def test_a_line_shows_means_and_standard_deviations_over_the_folds():
    search = tree({"max_depth": [1, 2, 3]})
    display = SearchDisplay.from_estimator(search)
    x, means, ends = drawn(display.lines_["best"])
    results = search.cv_results_
    np.testing.assert_array_equal(x, [1, 2, 3])
    np.testing.assert_array_equal(means, results["mean_test_score"])
    np.testing.assert_allclose(np.diff(ends)[:, 0], 2 * results["std_test_score"])
    low, high = display.ax_.get_ylim()
    assert low < ends.min() and ends.max() < high
    assert display.ax_.get_xlabel() == "max_depth" and display.ax_.get_legend() is None
    assert display.figure_ is display.ax_.figure and display.figure_.get_figwidth() <= 7


def test_further_hyperparameters_are_lines_with_a_legend(legend):
    search = tree({"max_depth": [1, 2, 3], "criterion": ["gini", "entropy"]})
    display = SearchDisplay.from_estimator(search, "max_depth")
    assert legend(display) == list(display.lines_) == ["gini", "entropy"]
    assert display.ax_.get_legend().get_title().get_text() == "criterion"
    chosen = search.cv_results_["param_criterion"] == "entropy"
    expected = search.cv_results_["mean_test_score"][chosen]
    np.testing.assert_array_equal(drawn(display.lines_["entropy"])[1], expected)


def test_of_the_candidates_at_a_place_the_best_is_drawn_and_all_are_points():
    params = [{"a": a, "b": b} for a in (1, 2) for b in range(7)]
    means = np.array([0.1, 0.9, *[0.2] * 5, *[0.3] * 6, 0.8])
    stds = np.arange(14) / 100
    display = SearchDisplay(results_of(params, means, stds), parameter="a").plot()
    x, best, ends = drawn(display.lines_["best"])
    np.testing.assert_array_equal([x, best], [[1, 2], [0.9, 0.8]])
    np.testing.assert_allclose(np.diff(ends)[:, 0], [0.02, 0.26])
    assert len(display.points_.get_offsets()) == 14
    assert SearchDisplay(results_of(params, means)).parameter == "b"


@pytest.mark.parametrize(
    ("values", "scale"),
    [
        ([0.01, 0.1, 1.0], "log"),
        ([1, 10], "log"),
        ([10, 20, 50, 100], "log"),
        ([10, 40, 70, 100], "linear"),
        ([0.1, 0.2, 0.5], "linear"),
        ([0.0, 0.1, 1.0], "linear"),
        ([1, 27, 29, 40], "log"),
        ([3], "linear"),
    ],
)
def test_the_axis_is_logarithmic_where_values_span_decades(values, scale):
    results = results_of([{"a": value} for value in values], np.zeros(len(values)))
    assert SearchDisplay(results).plot().ax_.get_xscale() == scale


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([0.05, 0.2, 0.8, 3.2], ["0.05", "0.2", "0.8", "3.2"]),
        ([20, 50, 500], ["20", "50", "500"]),
        ([0.0223456, 0.223456, 2.23456], ["10^{-1}", "10^{0}"]),
        ([1, 27, 29, 40], ["10^{0}", "10^{1}"]),
    ],
)
def test_on_a_logarithmic_axis_only_tried_values_or_decades_have_labels(values, labels, figures):
    results = results_of([{"a": value} for value in values], np.zeros(len(values)))
    ax = SearchDisplay(results).plot().ax_
    figures.draw()
    low, high = ax.get_xlim()
    at = zip(ax.get_xticks(), ticks(ax.xaxis), strict=True)
    shown = [text for x, text in at if low <= x <= high]
    assert all(label in text for label, text in zip(labels, shown, strict=True))
    assert not any(text.get_text() for text in ax.xaxis.get_ticklabels(minor=True))


def test_infinity_is_a_text():
    values = [1.0, np.float64(np.inf)]
    display = SearchDisplay(results_of([{"a": value} for value in values], np.zeros(2))).plot()
    assert ticks(display.ax_.xaxis) == ["1", "inf"]


def test_objects_and_texts_have_places_of_their_own():
    params = [{"loss": loss} for loss in (InfoNCE(), DCL(tau_plus=0.1), "x", None)]
    display = SearchDisplay(results_of(params, np.arange(4.0))).plot()
    assert ticks(display.ax_.xaxis) == ["InfoNCE()", "DCL()", "x", "None"]
    np.testing.assert_array_equal(drawn(display.lines_["best"])[0], range(4))


def test_candidates_without_the_hyperparameter_are_left_out():
    params = [{"m__loss": "a"}, *({"m__loss": "b", "m__tau": tau} for tau in (0.1, 0.2))]
    display = SearchDisplay(results_of(params, np.arange(3.0)), parameter="tau").plot()
    assert list(display.lines_) == ["b"]
    np.testing.assert_array_equal(drawn(display.lines_["b"])[1], [1, 2])
    by_loss = SearchDisplay(results_of(params, np.arange(3.0)), parameter="loss").plot()
    assert list(by_loss.lines_) == ["–", "0.1", "0.2"]


def test_candidates_of_a_random_search_are_connected_only_where_all_else_is_equal():
    grid = {"min_impurity_decrease": loguniform(1e-4, 1e-1), "ccp_alpha": loguniform(1e-4, 1e-1)}
    search = RandomizedSearchCV(DecisionTreeClassifier(), grid, n_iter=8, cv=3, random_state=0)
    display = SearchDisplay.from_estimator(search.fit(X, y), "ccp_alpha")
    assert display.lines_["best"][0].get_linestyle() == "None"
    assert display.ax_.get_xscale() == "log"
    del grid["ccp_alpha"]
    alone = RandomizedSearchCV(DecisionTreeClassifier(), grid, n_iter=8, cv=3, random_state=0)
    display = SearchDisplay.from_estimator(alone.fit(X, y))
    assert display.lines_["best"][0].get_linestyle() == "-"


def test_a_name_is_as_short_as_it_can_be():
    params = [{"a__lr": k, "b__lr": 1, "b__depth": 2} for k in (1, 2)]
    results = results_of(params, np.zeros(2))
    assert SearchDisplay(results, parameter="depth").plot().ax_.get_xlabel() == "depth"
    assert SearchDisplay(results, parameter="a__lr").plot().ax_.get_xlabel() == "a__lr"
    with pytest.raises(ValueError, match=r"'lr' is several, \['a__lr', 'b__lr'\], of them"):
        SearchDisplay(results, parameter="lr")


def test_an_embedder_in_a_pipeline_is_searched_and_drawn(figures):
    pipe = Pipeline([("embed", small()), ("clf", LogisticRegression())])
    X = vectors()
    labels = (X[:, 0] > 0).astype(int)
    grid = {"embed__similarity__temperature": [0.1, 1.0, 10.0]}
    search = GridSearchCV(pipe, grid, cv=2).fit(X, labels)
    _, ax = figures.subplots()
    display = SearchDisplay.from_estimator(search, "temperature", ax=ax, capsize=7)
    assert display.ax_ is ax and ax.get_xlabel() == "temperature"
    assert ax.get_xscale() == "log" and len(figures.get_fignums()) == 1


def test_a_metric_of_several_is_chosen():
    scoring = ["accuracy", "f1_macro"]
    search = tree({"max_depth": [1, 2]}, scoring=scoring, refit=False)
    display = SearchDisplay.from_estimator(search, metric="f1_macro")
    expected = search.cv_results_["mean_test_f1_macro"]
    np.testing.assert_array_equal(drawn(display.lines_["best"])[1], expected)
    assert display.ax_.get_ylabel() == "mean f1_macro over the folds"
    with pytest.raises(ValueError, match=r"metric must be among \['accuracy', 'f1_macro'\], got"):
        SearchDisplay.from_estimator(search)


def test_failed_candidates_do_not_hide_the_others():
    params = [{"a": a, "b": b} for a in (1, 2) for b in (1, 2)]
    means = np.array([np.nan, 0.5, np.nan, np.nan])
    display = SearchDisplay(results_of(params, means, means), parameter="a", lines=[]).plot()
    np.testing.assert_array_equal(display.lines_["best"][0].get_ydata(), [0.5, np.nan])


def test_what_was_not_searched_is_refused():
    search = tree({"max_depth": [1, 2]})
    with pytest.raises(ValueError, match=r"\['max_depth'\], or the end of one; 'depth' is none"):
        SearchDisplay.from_estimator(search, "depth")
    with pytest.raises(ValueError, match="'gini' is none"):
        SearchDisplay.from_estimator(search, lines="gini")
    with pytest.raises(ValueError, match="have no hyperparameters"):
        SearchDisplay.from_estimator(tree({}))
    with pytest.raises(ValueError, match="not fitted"):
        SearchDisplay.from_estimator(GridSearchCV(DecisionTreeClassifier(), {}))
