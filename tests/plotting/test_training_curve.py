"""Curves of what a fit records."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcontrast.losses import DCL
from skcontrast.plotting import TrainingCurveDisplay
from skcontrast.schedules import Linear
from tests.common import small, vectors


@pytest.fixture(scope="module")
def embedder():
    return small(loss=DCL(Linear(0.0, 0.3)), max_epochs=4).fit(vectors())


def test_curves_are_the_history_and_counts_and_durations_are_left_out(embedder):
    display = TrainingCurveDisplay.from_estimator(embedder)
    assert list(display.axes_) == ["train_loss", "loss__tau_plus", "lr"]
    for column, lines in display.lines_.items():
        (line,) = lines.values()
        np.testing.assert_array_equal(line.get_xdata(), [1, 2, 3, 4])
        np.testing.assert_array_equal(line.get_ydata(), embedder.history_[:, column])
    labels = [ax.get_ylabel() for ax in display.axes_.values()]
    assert labels == ["training loss", "τ⁺", "learning rate"]
    assert display.axes_["lr"].get_xlabel() == "epoch"
    assert display.figure_ is display.axes_["lr"].figure


def test_epochs_are_whole_numbers_on_the_axis():
    display = TrainingCurveDisplay({"fit": [{"epoch": 1, "train_loss": 5.0}]}).plot()
    ax = display.axes_["train_loss"]
    low, high = ax.get_xlim()
    assert [tick for tick in ax.get_xticks() if low <= tick <= high] == [1]


def test_several_fits_share_a_picture_by_name(embedder):
    pipe = make_pipeline(StandardScaler(), small(max_epochs=2)).fit(vectors())
    display = TrainingCurveDisplay.from_estimator({"long": embedder, "short": pipe})
    assert list(display.lines_["train_loss"]) == ["long", "short"]
    assert list(display.lines_["loss__tau_plus"]) == ["long"]
    assert len(display.lines_["lr"]["short"].get_xdata()) == 2
    legend = display.axes_["train_loss"].get_legend().get_texts()
    assert [text.get_text() for text in legend] == ["long", "short"]
    looks = {(line.get_color(), line.get_linestyle()) for line in display.lines_["lr"].values()}
    assert len(looks) == 2


def test_a_metric_of_some_epochs_is_drawn_where_it_is():
    rows = [{"epoch": k, "train_loss": 5.0 - k, "train_loss_best": True} for k in (1, 2, 3, 4)]
    rows[1]["knn"], rows[3]["knn"] = 0.5, 0.7
    rows[2]["knn"] = float("nan")
    display = TrainingCurveDisplay({"fit": rows}).plot()
    assert list(display.axes_) == ["train_loss", "knn"]
    line = display.lines_["knn"]["fit"]
    np.testing.assert_array_equal(line.get_xydata(), [[2, 0.5], [4, 0.7]])
    assert line.get_marker() == "o"


def test_given_axes_get_the_chosen_columns(figures, embedder):
    _, (left, right) = figures.subplots(1, 2)
    display = TrainingCurveDisplay.from_estimator(embedder, ax=left, linewidth=4)
    assert display.axes_ == {"train_loss": left}
    assert display.lines_["train_loss"]["ContrastiveEmbedder"].get_linewidth() == 4
    display = display.plot([left, right], columns=["lr", "loss__tau_plus"])
    assert display.axes_ == {"lr": left, "loss__tau_plus": right}
    assert display.plot(right, columns="lr").axes_ == {"lr": right}
    assert len(figures.get_fignums()) == 1


def test_what_cannot_be_drawn_is_refused(figures, embedder):
    display = TrainingCurveDisplay({"fit": embedder.history_})
    with pytest.raises(ValueError, match=r"columns must be among \['train_loss', .*got 'valid'"):
        display.plot(columns=["valid"])
    with pytest.raises(ValueError, match=r"ax must hold an Axes for each of .* got 1"):
        display.plot(figures.subplots()[1], columns=["train_loss", "lr"])
    with pytest.raises(TypeError, match="histories must be a non-empty dict"):
        TrainingCurveDisplay([])
    with pytest.raises(ValueError, match="is not fitted yet"):
        TrainingCurveDisplay.from_estimator(small())
