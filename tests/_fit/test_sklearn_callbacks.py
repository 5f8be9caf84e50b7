"""The callbacks of scikit-learn, where the installed version has them, follow a fit."""

import importlib
import sys
from collections import Counter

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skcontrast import ContrastiveClassifier, ContrastiveEmbedder
from skcontrast.augmentation import RandomAffine
from skcontrast.callbacks import Evaluation
from tests.common import X_DIGITS, in_a_process, small

callbacks = pytest.importorskip("sklearn.callback", reason="scikit-learn has no callbacks")
IMAGES, Y = X_DIGITS.reshape(-1, 8, 8), np.arange(len(X_DIGITS)) % 3
SCORING = {"score": ContrastiveEmbedder.score}


class Recorder:
    """Keeps what it hears, and asks to stop after an epoch."""

    def __init__(self, stops_after=None):
        self.heard, self.y, self.stops_after = [], [], stops_after

    def setup(self, estimator, context):
        self.heard.append("setup")

    def teardown(self, estimator, context):
        self.heard.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.heard.append(f"begin {type(estimator).__name__} {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.heard.append(f"end {type(estimator).__name__} {context.task_name}")
        self.y.append(y)
        return context.task_name == "epoch" and context.task_id == self.stops_after


class Propagated(Recorder):
    max_propagation_depth = None


def begun(recorder):
    return Counter(what.removeprefix("begin ") for what in recorder.heard if "begin" in what)


def test_a_fit_is_a_task_and_each_epoch_a_task_within_it():
    recorder = Recorder()
    small(max_epochs=2).set_callbacks(recorder).fit(X_DIGITS)
    epoch = ["begin ContrastiveEmbedder epoch", "end ContrastiveEmbedder epoch"]
    whole = ["begin ContrastiveEmbedder fit", *2 * epoch, "end ContrastiveEmbedder fit"]
    assert recorder.heard == ["setup", *whole, "teardown"]


@pytest.mark.parametrize("is_searched", [False, True])
def test_a_pipeline_and_a_search_pass_their_callbacks_on(is_searched):
    recorder = Propagated()
    model = make_pipeline(RandomAffine(), small(max_epochs=2), LogisticRegression(max_iter=999))
    grid = {"contrastiveembedder__lr": [1e-3, 1e-2]}
    model = GridSearchCV(model, grid, cv=2) if is_searched else model
    model.set_callbacks(recorder).fit(IMAGES, Y)
    n_fits, tasks = 5 if is_searched else 1, begun(recorder)
    assert tasks["ContrastiveEmbedder fit"] == tasks["RandomAffine fit"] == n_fits
    assert tasks["ContrastiveEmbedder epoch"] == 2 * n_fits
    assert recorder.heard.count("setup") == recorder.heard.count("teardown") == 1


def test_a_classifier_passes_its_callbacks_on_to_its_embedder():
    recorder, embedder = Propagated(), small(max_epochs=2)
    model = ContrastiveClassifier(embedder).set_callbacks(recorder).fit(X_DIGITS, Y)
    expected = {"ContrastiveEmbedder epoch": 2, "ContrastiveEmbedder fit": 1}
    assert begun(recorder) == {"ContrastiveClassifier fit": 1, **expected}
    before = len(recorder.heard)
    model.set_params(embedder=model.embedder_).fit(X_DIGITS, Y)
    assert recorder.heard[before:] == [
        "setup", "begin ContrastiveClassifier fit", "end ContrastiveClassifier fit", "teardown"
    ]  # fmt: skip


def test_the_scoring_monitor_records_the_scores_that_an_evaluation_finds():
    monitor = callbacks.ScoringMonitor(scoring=SCORING)
    evaluation = Evaluation(None, X_DIGITS)
    embedder = small(max_epochs=3, callbacks=[evaluation]).set_callbacks(monitor).fit(X_DIGITS)
    found = {row["task_id_path"]: row["score"] for row in monitor.get_logs().data}
    epochs = embedder.history_[:, "score"]
    assert [found.pop((0, epoch)) for epoch in range(3)] == epochs
    assert found == {(0,): epochs[-1]}  # of the whole fit
    assert embedder.score(X_DIGITS) == epochs[-1]


def test_the_scoring_monitor_scores_a_classifier_on_known_classes():
    monitor = callbacks.ScoringMonitor(scoring={"score": ContrastiveClassifier.score})
    few = np.where(np.arange(len(Y)) < 60, Y, -1)
    model = ContrastiveClassifier(small()).set_callbacks(monitor).fit(X_DIGITS, few)
    assert [row["score"] for row in monitor.get_logs().data] == [model.score(X_DIGITS, few)]


def test_callbacks_that_judge_do_not_change_what_is_learned():
    watched = small().set_callbacks(callbacks.ScoringMonitor(scoring=SCORING)).fit(X_DIGITS)
    assert np.array_equal(watched.transform(X_DIGITS), small().fit(X_DIGITS).transform(X_DIGITS))


@pytest.mark.parametrize("y", [None, Y])
def test_callbacks_get_y_or_unknown_classes(y):
    recorder = Recorder()
    small(max_epochs=1).set_callbacks(recorder).fit(X_DIGITS, y)
    expected = np.full(len(X_DIGITS), -1) if y is None else y
    assert all(np.array_equal(found, expected) for found in recorder.y)


def test_a_callback_that_asks_for_it_ends_the_training():
    embedder = small(max_epochs=5).set_callbacks(Recorder(stops_after=1)).fit(X_DIGITS)
    assert embedder.n_epochs_ == 2


def test_callbacks_hear_of_the_end_of_a_fit_that_fails():
    recorder = Recorder()
    embedder = small(max_epochs=9, lr=1e30, optimizer="sgd").set_callbacks(recorder)
    with pytest.raises(ValueError, match="diverged"):
        embedder.fit(X_DIGITS)
    assert recorder.heard[-1] == "teardown"
    assert vars(clone(embedder)).keys() == vars(embedder).keys()


def test_partial_fit_reports_nothing():
    recorder = Recorder()
    small().set_callbacks(recorder).partial_fit(X_DIGITS)
    assert recorder.heard == []


def test_the_progress_bar_of_scikit_learn_shows_the_fit(capfd):
    pytest.importorskip("rich")
    pipe = make_pipeline(small(max_epochs=2), LogisticRegression(max_iter=999))
    pipe.set_callbacks(callbacks.ProgressBar()).fit(X_DIGITS, Y)
    shown = capfd.readouterr().out
    assert "Pipeline - fit" in shown and "ContrastiveEmbedder" in shown


def fit_without_them():
    """Import the package as before scikit-learn 1.9, and fit; return what takes callbacks."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "skcontrast"]:
        del sys.modules[name]
    sys.modules["sklearn.callback"] = None
    augmentation = importlib.import_module("skcontrast.augmentation").GaussianNoise()
    embedder = importlib.import_module("skcontrast").ContrastiveEmbedder(max_epochs=2)
    model = importlib.import_module("skcontrast").ContrastiveClassifier(embedder)
    model.fit(X_DIGITS, Y)
    assert model.embedder_.n_epochs_ == 2
    return [
        hasattr(it, "set_callbacks") for it in (model, model.embedder_, augmentation.fit(X_DIGITS))
    ]


def test_without_them_estimators_fit_as_before():
    assert in_a_process(fit_without_them) == [False] * 3
