"""scikit-learn's own callbacks hear of the epochs, alone and nested in Pipelines and searches."""

import importlib.util
import sys

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skcontrast import _sklearn_compat
from skcontrast.metrics import alignment, make_view_scorer, neighbor_agreement
from tests.common import X_DIGITS, small

Y = np.arange(200) % 3
# What `score` returns; in scikit-learn 1.9.1, scoring=None fails for every estimator.
SCORE = {"score": make_view_scorer(neighbor_agreement)}

callback = pytest.importorskip(
    "sklearn.callback", reason="scikit-learn has callbacks from version 1.9 on"
)


def hardness(embedder, X, y=None):
    return float(np.square(embedder.transform(X)).mean())


class Notes:
    """Notes what it hears of; stops after some epochs."""

    def __init__(self, n_epochs=None):
        self.n_epochs, self.heard, self.embedders = n_epochs, [], []

    def setup(self, estimator, context):
        self.heard.append("setup")

    def teardown(self, estimator, context):
        self.heard.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.heard.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, fitted_estimator=None):
        self.heard.append(f"end {context.task_name}")
        self.embedders.append(fitted_estimator)
        self.X = X
        return context.task_name == "epoch" and context.task_id + 1 == self.n_epochs


def test_a_fit_and_its_epochs_are_tasks():
    notes = Notes()
    embedder = small().set_callbacks(notes).fit(X_DIGITS)
    epoch = ["begin epoch", "end epoch"]
    assert notes.heard == ["setup", "begin fit", *epoch, *epoch, "end fit", "teardown"]
    assert notes.X is X_DIGITS
    between, last, end = notes.embedders
    assert between.n_epochs_ == 1 and last.n_epochs_ == end.n_epochs_ == 2
    np.testing.assert_array_equal(last.transform(X_DIGITS), embedder.transform(X_DIGITS))
    np.testing.assert_array_equal(end.transform(X_DIGITS), embedder.transform(X_DIGITS))


def test_the_training_is_the_same_to_the_bit():
    watched = small(max_epochs=3).set_callbacks(Notes()).fit(X_DIGITS)
    plain = small(max_epochs=3).fit(X_DIGITS)
    for one, other in zip(watched.encoder_.parameters(), plain.encoder_.parameters(), strict=True):
        assert torch.equal(one, other)


def test_a_callback_may_stop_the_training():
    embedder = small(max_epochs=5, lr_schedule="constant").set_callbacks(Notes(2)).fit(X_DIGITS)
    shorter = small(max_epochs=2, lr_schedule="constant").fit(X_DIGITS)
    assert embedder.n_epochs_ == 2
    np.testing.assert_array_equal(embedder.transform(X_DIGITS), shorter.transform(X_DIGITS))


def test_a_failed_fit_tears_down():
    notes = Notes()
    embedder = small(lr=1e30, optimizer="sgd", weight_decay=1e30).set_callbacks(notes)
    with pytest.raises(ValueError, match="diverged"):
        embedder.fit(X_DIGITS)
    assert notes.heard[-1] == "teardown" and "end fit" not in notes.heard
    assert not hasattr(embedder, "encoder_")


def test_partial_fit_is_silent():
    notes = Notes()
    small().set_callbacks(notes).partial_fit(X_DIGITS)
    assert notes.heard == []


def test_scoring_monitor_scores_the_training_samples_if_there_is_a_y():
    monitor = callback.ScoringMonitor(scoring=SCORE)
    embedder = small().set_callbacks(monitor).fit(X_DIGITS, Y)
    rows = monitor.get_logs().data
    assert [row["task_name"] for row in rows] == ["fit", "epoch", "epoch"]
    assert rows[0]["score"] == rows[2]["score"] == embedder.score(X_DIGITS)
    unlabeled = callback.ScoringMonitor(scoring=SCORE)
    small().set_callbacks(unlabeled).fit(X_DIGITS)
    assert all("score" not in row for row in unlabeled.get_logs().data)


def test_scoring_monitor_takes_our_scorers_and_weights_of_fit():
    scoring = {"alignment": make_view_scorer(alignment), "hardness": hardness}
    monitor = callback.ScoringMonitor(scoring=scoring)
    embedder = small().set_callbacks(monitor)
    embedder.fit(X_DIGITS, Y, sample_weight=np.ones(200))
    assert monitor.get_logs().data[-1]["hardness"] == hardness(embedder, X_DIGITS)


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_nested_in_a_search_every_candidate_reports_its_epochs(n_jobs):
    monitor = callback.ScoringMonitor(scoring=SCORE)
    pipe = make_pipeline(small().set_callbacks(monitor), LogisticRegression(max_iter=1000))
    grid = {"contrastiveembedder__lr": [1e-3, 1e-2]}
    GridSearchCV(pipe, grid, cv=2, n_jobs=n_jobs).fit(X_DIGITS, Y)
    logs = monitor.get_logs(select="all")
    rows = [row for log in logs for row in log.data if row["task_name"] == "epoch"]
    assert len(rows) == 2 * (2 * 2 + 1)


def test_the_progress_bar_of_a_search_shows_the_epochs(capsys):
    pytest.importorskip("rich")
    search = GridSearchCV(small(), {"lr": [1e-3, 1e-2]}, cv=2)
    search.set_callbacks(callback.ProgressBar(max_propagation_depth=None)).fit(X_DIGITS)
    out = capsys.readouterr().out
    assert "GridSearchCV" in out and "ContrastiveEmbedder" in out


def test_a_clone_keeps_the_callbacks_of_scikit_learn():
    notes = Notes()
    clone(small().set_callbacks(notes)).fit(X_DIGITS)
    assert notes.heard[-1] == "teardown"


def test_without_callbacks_nothing_is_left_on_the_embedder():
    left = {name for name in vars(small().fit(X_DIGITS)) if "callback" in name}
    assert left == {"callbacks"}


def test_older_versions_of_scikit_learn_have_no_callbacks(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.callback", None)
    spec = importlib.util.spec_from_file_location("older", _sklearn_compat.__file__)
    older = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(older)

    class Estimator(older.CallbackSupportMixin, BaseEstimator):
        @older.with_callbacks
        def fit(self):
            return self

    assert not hasattr(Estimator().fit(), "set_callbacks")
