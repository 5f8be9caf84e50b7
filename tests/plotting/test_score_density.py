"""Densities of scores, of a model and of samples."""

import numpy as np
import pytest

from skcontrast.estimation import project_views
from skcontrast.plotting import EstimatorCurveDisplay, ScoreDensityDisplay
from skcontrast.similarity import Cosine, DotProduct
from skcontrast.simulation import ScoreModel, ScoreSample
from tests.common import X_DIGITS, small


@pytest.mark.parametrize("proposal", ["uniform", "normal"])
def test_model_densities_are_drawn_from_their_formula(legend, proposal):
    model = ScoreModel(alpha=0.8, proposal=proposal)
    display = ScoreDensityDisplay.from_model(model)
    assert display.figure_ is display.ax_.figure
    assert list(display.lines_) == ["TN", "FN", "UN"]
    for name, line in display.lines_.items():
        np.testing.assert_allclose(line.get_ydata(), model.density(line.get_xdata(), name))
    assert legend(display) == ["true negatives", "false negatives", "unlabeled candidates"]
    assert display.ax_.get_ylabel() == "density" and display.ax_.get_ylim()[0] >= 0


def test_sample_densities_come_with_histograms_of_mass_one():
    sample = ScoreModel(tau_plus=0.4).sample(1, 2000, random_state=0)
    display = ScoreDensityDisplay.from_sample(sample, bins=30)
    assert list(display.lines_) == ["TN", "FN"] and len(display.ax_.patches) == 60
    for bars in (display.ax_.patches[:30], display.ax_.patches[30:]):
        assert sum(bar.get_width() * bar.get_height() for bar in bars) == pytest.approx(1)
    for line in display.lines_.values():
        area = np.trapezoid(line.get_ydata(), line.get_xdata())
        assert area == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("make", [np.asarray, list], ids=["array", "list"])
def test_the_edges_of_the_bins_may_be_chosen(make):
    edges = make([0.0, 0.5, 1.0, 3.0])
    sample = ScoreModel().sample(1, 50, random_state=0)
    bars = ScoreDensityDisplay.from_sample(sample, bins=edges).ax_.patches
    assert [bar.get_x() for bar in bars] == [0.0, 0.5, 1.0] * 2
    assert [bar.get_width() for bar in bars] == [0.5, 0.5, 2.0] * 2


NO_BINS = [[1.0], [0.0, 2.0, 1.0], [[0.0, 1.0]], ["a", "b"], [], 0, 2.5, "auto"]


@pytest.mark.parametrize("bins", NO_BINS, ids=repr)
def test_bins_that_are_neither_a_number_nor_increasing_edges_are_refused(bins):
    sample = ScoreModel().sample(1, 50, random_state=0)
    with pytest.raises(ValueError, match="bins"):
        ScoreDensityDisplay.from_sample(sample, bins=bins)


def test_views_of_an_embedder_are_drawn_with_their_positives(legend):
    y = np.arange(len(X_DIGITS)) % 10
    embedder = small().fit(X_DIGITS)
    display = ScoreDensityDisplay.from_estimator(embedder, X_DIGITS, y, bins=20)
    assert legend(display) == ["true negatives", "false negatives", "positives"]
    views = project_views(embedder, X_DIGITS)
    sample = ScoreSample.from_views(*views, y=y, similarity=embedder.similarity_)
    np.testing.assert_array_equal(display.samples["P"], sample.positives.ravel())
    assert display.samples["TN"].size == sample.is_negative.sum()
    for line in display.lines_.values():
        area = np.trapezoid(line.get_ydata(), line.get_xdata())
        assert area == pytest.approx(1, abs=0.01)
    assert display.ax_.get_xlabel() == "score s"


@pytest.mark.parametrize(
    ("similarity", "bounds"),
    [(Cosine(0.25), (-4, 4)), (DotProduct(), (-np.inf, np.inf))],
    ids=["cosine", "dot product"],
)
def test_densities_end_where_scores_do_and_keep_their_area(similarity, bounds):
    rng = np.random.default_rng(0)
    classes = np.repeat(np.eye(3), 20, axis=0)
    views = [classes + 0.02 * rng.normal(size=classes.shape) for _ in range(2)]
    y = np.repeat(range(3), 20)
    display = ScoreDensityDisplay.from_views(*views, y=y, similarity=similarity)
    for line in display.lines_.values():
        x, density = line.get_data()
        assert x[0] >= bounds[0] and x[-1] <= bounds[1]
        assert np.trapezoid(density, x) == pytest.approx(1, abs=0.01)
    if np.isfinite(bounds[1]):
        assert display.lines_["P"].get_xdata()[-1] == bounds[1]


def test_densities_of_a_model_end_where_its_scores_do():
    sample = ScoreModel(alpha=1.0, tau_plus=0.5, gamma=1.0).sample(50, 100, random_state=0)
    display = ScoreDensityDisplay.from_sample(sample)
    for line in display.lines_.values():
        x, density = line.get_data()
        assert x[0] >= np.exp(-2) and x[-1] <= np.exp(2)
        assert np.trapezoid(density, x) == pytest.approx(1, abs=0.01)


def test_samples_of_one_class_have_no_two_densities():
    sample = ScoreModel(tau_plus=0.0).sample(1, 20, random_state=0)
    with pytest.raises(
        ValueError, match="at least two true and two false negatives, got 20 and 0"
    ):
        ScoreDensityDisplay.from_sample(sample)


def test_anything_except_a_sample_or_model_is_refused():
    with pytest.raises(TypeError, match="must be an instance of ScoreSample"):
        ScoreDensityDisplay.from_sample(np.zeros((2, 3)))
    with pytest.raises(TypeError, match="must be an instance of ScoreModel"):
        ScoreDensityDisplay.from_model("normal")
    with pytest.raises(TypeError, match="must be an instance of EstimatorCurve"):
        EstimatorCurveDisplay(ScoreModel())
