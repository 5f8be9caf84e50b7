"""Evaluation of held-out samples during fit: what it scores, records, stops and restores."""

import copy
import math
import pickle
import signal
from functools import partial

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from skorch.callbacks import Callback, Checkpoint, EarlyStopping, PrintLog
from torch import nn
from torch.utils.data import TensorDataset

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import GaussianNoise
from skcontrast.callbacks import Evaluation
from skcontrast.encoders import ConvNet
from skcontrast.estimation import macro_auc
from skcontrast.frameworks import CMC, InfoGraph, MoCo
from skcontrast.losses import BCL, SupCon
from skcontrast.metrics import (
    alignment,
    effective_rank,
    knn_accuracy,
    make_embedding_scorer,
    make_view_scorer,
    neighbor_agreement,
    uniformity,
)
from skcontrast.schedules import Auto
from tests.common import IMAGES, X_DIGITS, images, small, small_images, vectors

TRAIN, HELD_OUT = X_DIGITS[:120], X_DIGITS[120:]
Y = np.arange(80) % 3


def width(embedder, X, y=None):
    return float(np.square(embedder.transform(X)).mean())


class Scripted:
    """A scorer that returns given numbers, one after the other, and keeps the embedders."""

    def __init__(self, *scores):
        self.scores, self.embedders = list(scores), []

    def __call__(self, embedder, X, y=None):
        self.embedders.append(embedder)
        return self.scores[len(self.embedders) - 1]


def state(embedder):
    return [*embedder.encoder_.state_dict().values(), *embedder.projector_.state_dict().values()]


def assert_same_bits(one, other):
    for first, second in zip(state(one), state(other), strict=True):
        assert torch.equal(first, second)
    assert one.history_[:, "train_loss"] == other.history_[:, "train_loss"]


# What is recorded


def test_a_score_is_a_column_of_the_history():
    embedder = small(max_epochs=3, callbacks=[Evaluation(width, HELD_OUT)]).fit(TRAIN)
    assert len(embedder.history_[:, "width"]) == 3
    assert embedder.history_[-1, "width"] == width(embedder, HELD_OUT)
    best = int(np.argmax(embedder.history_[:, "width"]))
    assert embedder.history_[best, "width_best"]
    assert "width" in pd.DataFrame(list(embedder.history_)).columns


def test_every_k_epochs_and_after_the_last_of_a_fit():
    evaluation = Evaluation(width, HELD_OUT, every=3)
    embedder = small(max_epochs=7, callbacks=[evaluation]).fit(TRAIN)
    seen = ~np.isnan(embedder.history_[:, "width"])
    np.testing.assert_array_equal(np.flatnonzero(seen) + 1, [3, 6, 7])
    piecewise = small(callbacks=[Evaluation(width, HELD_OUT, every=3)])
    for _ in range(7):
        piecewise.partial_fit(TRAIN)
    seen = ~np.isnan(piecewise.history_[:, "width"])
    assert set(np.flatnonzero(seen) + 1) >= {3, 6} and not seen[4]


SCORINGS = {
    "the embedder's score": (None, {}, {"score"}),
    "a function": (width, {}, {"width"}),
    "a given name": (width, {"name": "size"}, {"size"}),
    "a lambda": (lambda e, X, y: 0.5, {}, {"score"}),
    "views": (make_view_scorer(alignment), {}, {"alignment"}),
    "a dictionary": ({"a": width, "b": lambda e, X, y: 2}, {}, {"a", "b"}),
    "several numbers": (lambda e, X, y: {"a": 1, "b": np.float32(2)}, {}, {"a", "b"}),
    "several, with a name": ({"a": width, "b": width}, {"name": "test"}, {"test_a", "test_b"}),
}


@pytest.mark.parametrize("scoring, options, columns", SCORINGS.values(), ids=SCORINGS)
def test_scores_are_columns_of_the_history(scoring, options, columns):
    plain = set(small().fit(TRAIN).history_[-1])
    evaluation = Evaluation(scoring, HELD_OUT, Y, **options)
    embedder = small(callbacks=[evaluation]).fit(TRAIN)
    new = set(embedder.history_[-1]) - plain
    assert {name for name in new if not name.endswith("_best")} == columns
    assert set(evaluation.scores_) == columns


BAD = {
    "a class as scoring": ({"scoring": 3}, "'scoring' parameter of Evaluation"),
    "every": ({"every": 0}, "'every' parameter of Evaluation"),
    "patience": ({"patience": 0}, "'patience' parameter of Evaluation"),
    "no samples": ({"X": None}, "no held-out samples"),
    "a scorer of predictions": (
        {"scoring": "accuracy"},
        "'scoring' parameter of Evaluation.* 'accuracy'",
    ),
    "a column of training": ({"name": "train_loss"}, "column 'train_loss': pass"),
}


@pytest.mark.parametrize("options, message", BAD.values(), ids=BAD)
def test_errors_say_what_is_wrong(options, message):
    evaluation = Evaluation(**{"scoring": width, "X": HELD_OUT, "y": Y, **options})
    with pytest.raises(ValueError, match=message):
        small(callbacks=[evaluation]).fit(TRAIN)


_OF_SPREAD = {"needs_y": False, "greater_is_better": False}
MEASURES = {
    "with classes": (knn_accuracy, make_embedding_scorer(knn_accuracy)),
    "with arguments": (
        partial(knn_accuracy, n_neighbors=3),
        make_embedding_scorer(knn_accuracy, n_neighbors=3),
    ),
    "of scores": (macro_auc, make_embedding_scorer(macro_auc)),
    "without classes": (effective_rank, make_embedding_scorer(effective_rank, needs_y=False)),
    "lower is better": (uniformity, make_embedding_scorer(uniformity, **_OF_SPREAD)),
    "of two views": (
        partial(neighbor_agreement, n_neighbors=3),
        make_view_scorer(partial(neighbor_agreement, n_neighbors=3)),
    ),
    "of two views, lower": (alignment, make_view_scorer(alignment, greater_is_better=False)),
}


@pytest.mark.parametrize("measure, scorer", MEASURES.values(), ids=MEASURES)
def test_a_measure_is_its_own_scorer(measure, scorer):
    embedder = small(callbacks=[Evaluation(measure, HELD_OUT, Y)]).fit(TRAIN)
    name = getattr(measure, "func", measure).__name__
    assert embedder.history_[-1, name] == scorer(embedder, HELD_OUT, Y)


def test_a_search_takes_measures_as_scoring():
    scoring = {"neighbors": knn_accuracy, "views": alignment}
    search = GridSearchCV(small(), {"max_epochs": [1]}, scoring=scoring, refit="views", cv=2)
    found = search.fit(HELD_OUT, Y).cv_results_
    assert 0 <= found["mean_test_neighbors"][0] <= 1 and found["mean_test_views"][0] <= 0
    with pytest.raises(ValueError, match="knn_accuracy needs the classes of the samples: pass y"):
        small(callbacks=[Evaluation(knn_accuracy, HELD_OUT)]).fit(TRAIN)


@pytest.mark.parametrize("score", [None, [1.0, 2.0], "high"])
def test_a_score_is_a_number(score):
    with pytest.raises((TypeError, ValueError), match="float"):
        small(callbacks=[Evaluation(lambda *a: score, HELD_OUT)]).fit(TRAIN)


def test_an_error_of_the_scorer_is_its_own():
    def wrong(embedder, X, y):
        return embedder.classes_

    with pytest.raises(AttributeError, match="classes_"):
        small(callbacks=[Evaluation(wrong, HELD_OUT)]).fit(TRAIN)


def test_two_of_one_name_are_refused():
    both = [Evaluation(width, HELD_OUT), Evaluation(width, TRAIN)]
    with pytest.raises(ValueError, match="has a column 'width': pass a different 'name'"):
        small(callbacks=both).fit(TRAIN)
    both[1].set_params(name="train_width")
    row = small(callbacks=both).fit(TRAIN).history_[-1]
    assert {"width", "train_width"} <= set(row)


def test_the_progress_bar_shows_the_scores(capfd):
    small(verbose=1, callbacks=[Evaluation(width, HELD_OUT)]).fit(TRAIN)
    err = capfd.readouterr().err
    assert "loss=" in err and "width=" in err


def test_print_log_prints_a_column(capfd):
    small(callbacks=[PrintLog(), Evaluation(width, HELD_OUT, every=2)], max_epochs=4).fit(TRAIN)
    out, err = capfd.readouterr()
    header, *rows = out.splitlines()
    assert "train_loss" in header and "width" in header and "nan" in out and not err
    assert len(rows) == 5


# The training is the same


def draws(embedder, X, y=None):
    """Score, with all that a careless scorer may do."""
    torch.manual_seed(7)
    torch.rand(3)
    embedder.encoder_.train()
    for parameter in embedder.encoder_.parameters():
        parameter.data.zero_()
    return embedder.score(X)


GRAPHS = [nx.gnp_random_graph(n, 0.4, seed=n) for n in range(5, 35)]
FITS = {
    "vectors": (X_DIGITS, {}),
    "dropout": (
        X_DIGITS,
        {"encoder": nn.Sequential(nn.Linear(64, 16), nn.Dropout(), nn.Linear(16, 8))},
    ),
    "bfloat16": (IMAGES, {"encoder": ConvNet(widths=(8,)), "precision": "bf16"}),
    "a stream": (TensorDataset(torch.as_tensor(X_DIGITS)), {"memory_budget": 0}),
    "a queue": (X_DIGITS, {"framework": MoCo(queue_size=64), "batch_size": 50}),
    "two encoders": (X_DIGITS, {"framework": CMC()}),
    "graphs": (GRAPHS, {"encoder": None, "batch_size": 10}),
    "InfoGraph": (GRAPHS, {"encoder": None, "framework": InfoGraph(), "batch_size": 10}),
    "estimates": (X_DIGITS, {"loss": BCL(alpha=Auto(every=1), tau_plus=0.1)}),
}


@pytest.mark.parametrize("X, params", FITS.values(), ids=FITS)
def test_the_training_is_the_same_to_the_bit(X, params):
    torch.manual_seed(3)
    before = torch.get_rng_state()
    plain = small(**params).fit(X)
    watched = small(callbacks=[Evaluation(None, X)], **params).fit(X)
    assert torch.equal(torch.get_rng_state(), before)
    assert watched.history_[-1, "score"] == watched.score(X)
    assert_same_bits(watched, plain)
    careless = small(callbacks=[Evaluation(draws, X)], **params).fit(X)
    assert_same_bits(careless, plain)


def test_the_memory_format_of_images_stays():
    def is_channels_last(embedder, X, y=None):
        weight = next(p for p in embedder.encoder_.parameters() if p.ndim == 4)
        return weight.is_contiguous(memory_format=torch.channels_last)

    X = images()
    embedder = small_images(callbacks=[Evaluation(is_channels_last, X)]).fit(X)
    assert set(embedder.history_[:, "is_channels_last"]) == {float(is_channels_last(embedder, X))}


# What the scorer gets


def test_the_embedder_in_between_is_that_of_a_shorter_fit():
    scripted = Scripted(*range(4))
    small(max_epochs=4, lr_schedule="constant", callbacks=[Evaluation(scripted, HELD_OUT)]).fit(
        TRAIN
    )
    for n_epochs, between in enumerate(scripted.embedders, start=1):
        shorter = small(max_epochs=n_epochs, lr_schedule="constant").fit(TRAIN)
        assert_same_bits(between, shorter)
        assert between.n_epochs_ == n_epochs and between.n_features_in_ == 64
        np.testing.assert_array_equal(between.transform(HELD_OUT), shorter.transform(HELD_OUT))
        assert between.score(HELD_OUT) == shorter.score(HELD_OUT)
        assert not between.encoder_.training


def test_the_embedder_in_between_keeps_its_output_settings():
    frames = []

    def keep(embedder, X, y=None):
        frames.append(embedder.transform(X))
        return 0.0

    embedder = small(output="projection", callbacks=[Evaluation(keep, HELD_OUT)])
    embedder.set_output(transform="pandas").fit(TRAIN)
    assert isinstance(frames[0], pd.DataFrame) and frames[0].shape == (80, 64)


def test_with_warm_start_the_epochs_count_on_and_the_best_begins_again():
    scripted = Scripted(5, 4, 1, 2)
    embedder = small(warm_start=True, callbacks=[evaluation := Evaluation(scripted, HELD_OUT)])
    embedder.fit(TRAIN)
    assert (evaluation.best_score_, evaluation.best_epoch_) == (5, 1)
    embedder.fit(TRAIN)
    assert (evaluation.best_score_, evaluation.best_epoch_) == (2, 4)
    assert embedder.history_[:, "score"] == [5, 4, 1, 2]


def test_in_a_pipeline_the_samples_come_after_the_steps_before():
    scaler = StandardScaler().fit(TRAIN)
    embedder = small(callbacks=[Evaluation(None, scaler.transform(HELD_OUT))])
    pipe = make_pipeline(StandardScaler(), GaussianNoise(0.1), embedder).fit(TRAIN)
    expected = embedder.score(scaler.transform(HELD_OUT))
    assert pipe[-1].history_[-1, "score"] == expected


# Early stopping


def test_patience_ends_the_training():
    scripted = Scripted(1, 2, 2, 1, 0, 9, 9, 9)
    evaluation = Evaluation(scripted, HELD_OUT, patience=3)
    ends = []

    class Watches(Callback):
        def on_epoch_end(self, net, **kwargs):
            ends.append(len(net.history))

    embedder = small(max_epochs=8, callbacks=[evaluation, Watches()]).fit(TRAIN)
    assert embedder.n_epochs_ == 5
    assert (evaluation.best_score_, evaluation.best_epoch_) == (2, 2)
    assert ends == [1, 2, 3, 4, 5]


def test_a_score_that_is_not_a_number_is_never_the_best():
    evaluation = Evaluation(Scripted(math.nan, 1.0, math.nan), HELD_OUT, patience=2)
    small(max_epochs=3, callbacks=[evaluation]).fit(TRAIN)
    assert (evaluation.best_score_, evaluation.best_epoch_) == (1.0, 2)


@pytest.mark.parametrize(
    "name, options",
    [("vectors", {"patience": 2}), *((name, {}) for name in FITS)],
    ids=["stopped", *FITS],
)
def test_the_best_epoch_restored_is_a_fit_that_stopped_there(name, options):
    X, params = FITS[name]
    params = {"lr_schedule": "constant", **params}
    n_epochs = 5 if options else 3
    evaluation = Evaluation(Scripted(1, 3, 2, 2, 2), X, restore_best=True, **options)
    restored = small(max_epochs=n_epochs, callbacks=[evaluation], **params).fit(X)
    stopped = small(max_epochs=2, **params).fit(X)
    assert restored.n_epochs_ == (4 if options else 3)
    for one, other in zip(state(restored), state(stopped), strict=True):
        assert torch.equal(one, other)
    np.testing.assert_array_equal(restored.transform(X), stopped.transform(X))


def test_an_interrupted_fit_restores_the_best_epoch_too():
    class Interrupts(Callback):
        def on_batch_end(self, net, **kwargs):
            if len(net.history) == 4:
                net.train_step_single = raises

    def raises(*args, **kwargs):
        raise KeyboardInterrupt

    evaluation = Evaluation(Scripted(1, 3, 2), TRAIN, restore_best=True)
    params = {"lr_schedule": "constant", "batch_size": 40}
    embedder = small(max_epochs=9, callbacks=[evaluation, Interrupts()], **params)
    with pytest.raises(KeyboardInterrupt, match="after 3 epochs"):
        embedder.fit(TRAIN)
    stopped = small(max_epochs=2, **params).fit(TRAIN)
    np.testing.assert_array_equal(embedder.transform(TRAIN), stopped.transform(TRAIN))


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_while_scoring_is_an_interrupt_of_the_fit():
    def slow(embedder, X, y=None):
        if embedder.n_epochs_ == 2:
            signal.raise_signal(signal.SIGINT)
        return 0.0

    embedder = small(max_epochs=5, callbacks=[Evaluation(slow, HELD_OUT)])
    with pytest.raises(KeyboardInterrupt, match="has the state after 2 epochs"):
        embedder.fit(TRAIN)
    assert embedder.n_epochs_ == 2


def test_callbacks_of_skorch_monitor_the_column(tmp_path):
    stops = EarlyStopping(monitor="valid_score", lower_is_better=False, patience=2, load_best=True)
    saves = Checkpoint(monitor="valid_score_best", dirname=tmp_path)
    evaluation = Evaluation(Scripted(1, 3, 2, 2), HELD_OUT, name="valid_score")
    params = {"lr_schedule": "constant"}
    embedder = small(max_epochs=9, callbacks=[stops, saves, evaluation], **params).fit(TRAIN)
    assert embedder.n_epochs_ == 4
    stopped = small(max_epochs=2, **params).fit(TRAIN)
    np.testing.assert_array_equal(embedder.transform(HELD_OUT), stopped.transform(HELD_OUT))
    saved = torch.load(tmp_path / "params.pt", weights_only=True)
    for name, tensor in stopped.encoder_.state_dict().items():
        assert torch.equal(saved[f"encoder.{name}"], tensor)


# Copies


def test_clones_share_the_samples_and_know_no_scores():
    evaluation = Evaluation(width, HELD_OUT, Y, every=2, patience=3, restore_best=True, name="w")
    small(callbacks=[evaluation]).fit(TRAIN)
    (copied,) = clone(small(callbacks=[evaluation])).callbacks
    assert copied.X is HELD_OUT and copied.get_params() == evaluation.get_params()
    assert not hasattr(copied, "scores_")


def test_a_saved_embedder_does_not_contain_the_held_out_samples():
    many = np.random.default_rng(0).normal(size=(20_000, 64))
    evaluation = Evaluation(lambda_free, many, np.zeros(20_000))
    unfitted = pickle.loads(pickle.dumps(small(callbacks=[evaluation])))
    np.testing.assert_array_equal(unfitted.callbacks[0].X, many)
    embedder = small(callbacks=[evaluation]).fit(TRAIN)
    saved = pickle.dumps(embedder)
    assert len(saved) < many.nbytes / 10
    assert evaluation.X is many
    loaded = pickle.loads(saved)
    assert loaded.callbacks[0].best_score_ == 0.5
    np.testing.assert_array_equal(loaded.transform(TRAIN), embedder.transform(TRAIN))
    with pytest.raises(ValueError, match=r"contain them: call set_params\(callbacks="):
        loaded.fit(TRAIN)
    assert copy.deepcopy(embedder).callbacks[0].X is None


def lambda_free(embedder, X, y=None):
    return 0.5


@pytest.mark.parametrize("n_jobs", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_a_grid_search_evaluates_every_candidate(n_jobs):
    embedder = small(callbacks=[Evaluation(None, HELD_OUT)])
    search = GridSearchCV(embedder, {"lr": [1e-3, 1e-2]}, cv=2, n_jobs=n_jobs).fit(TRAIN)
    best = search.best_estimator_
    assert best.history_[-1, "score"] == best.score(HELD_OUT)


def test_a_representation_shows_neither_samples_nor_defaults():
    assert repr(Evaluation(width, HELD_OUT)) == "Evaluation(width, X=...)"
    evaluation = Evaluation(None, HELD_OUT, Y, every=2, restore_best=True)
    assert repr(evaluation) == "Evaluation(score, X=..., every=2, restore_best=True)"
    assert "X=..." in repr(ContrastiveEmbedder(callbacks=[evaluation]))


def test_a_loss_that_needs_classes_is_evaluated_with_them():
    evaluation = Evaluation({"classes": lambda e, X, y: len(set(y))}, HELD_OUT, Y)
    embedder = small(loss=SupCon(), callbacks=[evaluation])
    assert embedder.fit(TRAIN, np.arange(120) % 3).history_[:, "classes"] == [3, 3]


def test_mlflow_saves_an_embedder_by_cloudpickle(tmp_path):
    mlflow_sklearn = pytest.importorskip("mlflow.sklearn")
    embedder = small().fit(vectors())
    path = str(tmp_path / "model")
    mlflow_sklearn.save_model(embedder, path, serialization_format="cloudpickle")
    loaded = mlflow_sklearn.load_model(path)
    np.testing.assert_array_equal(loaded.transform(vectors()), embedder.transform(vectors()))
