"""The classifier for few labels: embedder, scaler and classifier in one."""

import json
import pickle
import re
import signal
import tracemalloc
from functools import partial

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from skorch.callbacks import Callback

import skcontrast
from skcontrast import ContrastiveClassifier, LabeledFolds, _blocks, _label_spreading
from skcontrast.augmentation import GaussianBlur, GaussianNoise
from skcontrast.encoders import GIN, ConvNet, SeriesNet
from skcontrast.features import Raw
from skcontrast.kinds import Images, Vectors
from skcontrast.losses import SemiSupCon, SupCon
from tests.common import IMAGES, check_sklearn_contract, small

Y = np.random.default_rng(0).integers(3, size=90)
X = np.random.default_rng(1).normal(size=(90, 6)) + 3 * np.eye(3)[Y].repeat(2, axis=1)
FEW = np.where(np.arange(90) < 30, Y, -1)
UNKNOWN = "-1 marks unknown classes"


def model(embedder=None, classifier=None, **kwargs):
    return ContrastiveClassifier(embedder or small(max_epochs=1), classifier, **kwargs)


@pytest.mark.parametrize(
    "estimator",
    [
        model(),
        *(
            pytest.param(it, marks=pytest.mark.slow)
            for it in (
                model(classifier=KNeighborsClassifier(3), pseudo_labels=False, use_labels=True),
                model(use_labels=True),
                model(pseudo_labels=False),
            )
        ),
    ],
    ids=["default", "neighbours", "labels", "no pseudo-labels"],
)
def test_estimator_checks(estimator):
    # The labels of this check are -1 and 1.
    check_sklearn_contract(estimator, {"check_classifiers_classes": UNKNOWN})


@pytest.mark.parametrize("use_labels", [False, True])
def test_without_pseudo_labels_it_is_embedder_scaler_and_classifier_written_by_hand(use_labels):
    found = model(blocks=[], use_labels=use_labels, pseudo_labels=False, random_state=3).fit(
        X, FEW
    )
    embedder = small(max_epochs=1, loss=SemiSupCon() if use_labels else None)
    H = embedder.fit(X, FEW).transform(X)
    H = H - H.mean(axis=0)
    # Variances are shrunk to their mean by half.
    Z = H / np.sqrt((H.var(axis=0) + H.var(axis=0).mean()) / 2)
    Z *= np.sqrt(Z.shape[1] / Z.var(axis=0).sum())
    known = FEW >= 0
    by_hand = LogisticRegression(max_iter=1000).fit(Z[known], FEW[known])
    for ours, theirs in [
        (found.transform(X), Z),
        (found.predict_proba(X), by_hand.predict_proba(Z)),
        (found.decision_function(X), by_hand.decision_function(Z)),
    ]:
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-3)


def test_pseudo_labels_are_what_classifier_and_neighbours_agree_on():
    plain, completed = (
        model(pseudo_labels=value, random_state=0).fit(X, FEW) for value in (False, True)
    )
    assert not np.array_equal(plain.classifier_.coef_, completed.classifier_.coef_)
    for y in (Y, np.where(Y > 0, Y, 7)):  # no unknown class
        both = (model(pseudo_labels=value).fit(X, y).classifier_.coef_ for value in (False, True))
        np.testing.assert_array_equal(*both)


NAMES = np.array(["b", "a", "c"], dtype=object)[Y]


@pytest.mark.parametrize(
    ("y", "classes"),
    [
        (FEW, [0, 1, 2]),
        (FEW.tolist(), [0, 1, 2]),
        (torch.from_numpy(FEW), [0, 1, 2]),
        (np.where(FEW < 0, np.nan, FEW), [0, 1, 2]),
        (np.where(FEW < 0, None, FEW), [0, 1, 2]),
        (pd.Series(FEW, dtype="Int64").replace(-1, pd.NA), [0, 1, 2]),
        (np.where(FEW < 0, None, NAMES), ["a", "b", "c"]),
        (np.where(FEW < 0, -1, NAMES), ["a", "b", "c"]),
        ([name if k >= 0 else float("nan") for k, name in zip(FEW, NAMES, strict=True)], "abc"),
        (pd.Series(np.where(FEW < 0, None, NAMES), dtype="string"), ["a", "b", "c"]),
        (pd.Series(np.where(FEW < 0, None, NAMES), dtype="category"), ["a", "b", "c"]),
    ],
)
def test_unknown_classes_may_be_missing_and_are_never_predicted(y, classes):
    found = model(classifier=KNeighborsClassifier(1)).fit(X, y)
    assert found.classes_.tolist() == list(classes)
    assert set(found.predict(X)) <= set(classes)
    assert found.score(X, y) == 1.0  # of the known ones


def test_pseudo_labels_keep_the_shares_of_classes_and_weigh_half_as_much_at_most():
    seen = []

    class Noting(LogisticRegression):
        def fit(self, X, y, sample_weight=None):
            seen.append((y, sample_weight))
            return super().fit(X, y, sample_weight)

    model(classifier=Noting(), blocks=[]).fit(X, FEW)
    (known, nothing), (labels, weights) = seen
    assert nothing is None and len(labels) > len(known)
    shares = np.bincount(labels, weights) / weights.sum()
    np.testing.assert_allclose(shares, np.bincount(known) / len(known))
    share = (len(labels) - len(known)) / (len(X) - len(known))
    beyond_chance = (3 * share - 1) / 2
    np.testing.assert_allclose(weights.sum(), (1 + 0.5 * beyond_chance**2) * len(known))


def test_rows_of_unknown_class_are_embedded_and_scale():
    found = model(blocks=[]).fit(X, FEW)
    H = found.embedder_.transform(X)
    np.testing.assert_allclose(found.scaler_.mean_, H.mean(axis=0), rtol=1e-4, atol=1e-6)


class Noise(TransformerMixin, BaseEstimator):
    """Columns that say nothing."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return np.random.default_rng(5).normal(size=(len(X), 7))


def test_blocks_have_their_weights_as_shares_of_the_squared_norm():
    found = model(blocks=[Raw(), PCA(2)]).fit(X, FEW)
    assert list(found.blocks_) == ["embedding", "Raw", "PCA"]
    squares = found.transform(X).var(axis=0)
    parts = np.split(squares, np.cumsum([found.embedder_.transform(X).shape[1], 6]))
    shares = [part.sum() / squares.sum() for part in parts]
    np.testing.assert_allclose(shares, list(found.blocks_.values()), rtol=1e-4)
    assert sum(found.blocks_.values()) == pytest.approx(1)


def test_a_block_that_disagrees_with_the_others_weighs_little():
    found = model(blocks=[Raw(), Noise()]).fit(X, FEW)
    weights = found.blocks_
    assert weights["Noise"] < 0.3 * min(weights["embedding"], weights["Raw"])


def test_without_rows_of_unknown_class_blocks_weigh_the_same():
    assert set(model(blocks=[Raw(), Noise()]).fit(X, Y).blocks_.values()) == {1 / 3}


@pytest.mark.parametrize(
    "block, message",
    [
        (OneHotEncoder(handle_unknown="ignore"), "Sparse data .* the output of OneHotEncoder"),
        (
            FunctionTransformer(lambda X: np.where(X > 2, np.nan, X)),
            "output of FunctionTr.* contains NaN",
        ),
    ],
)
def test_a_block_that_a_classifier_cannot_use_is_named(block, message):
    with pytest.raises((TypeError, ValueError), match=message):
        model(blocks=[block]).fit(X, FEW)


def test_blocks_are_checked_before_the_training(monkeypatch):
    monkeypatch.setattr(skcontrast.ContrastiveEmbedder, "fit", None)
    with pytest.raises(TypeError, match="blocks must be a list of transformers"):
        ContrastiveClassifier(blocks=[Raw]).fit(X, FEW)


def test_a_pipeline_is_named_by_its_first_step():
    scaled = [make_pipeline(Raw(), StandardScaler()), make_pipeline(Noise(), StandardScaler())]
    assert list(model(blocks=scaled).fit(X, FEW).blocks_) == ["embedding", "Raw", "Noise"]


def test_blocks_are_cloned_unless_they_are_frozen():
    fitted, given = Raw().fit(X), Raw()
    found = model(blocks=[given, FrozenEstimator(fitted)]).fit(X, FEW)
    assert found.transformers_[0] is not given and not hasattr(given, "module_")
    assert found.transformers_[1].estimator is fitted
    assert list(found.blocks_) == ["embedding", "Raw-1", "Raw-2"]
    assert list(model(blocks=[Raw(), Raw()]).fit(X, FEW).blocks_) == [
        "embedding",
        "Raw-1",
        "Raw-2",
    ]


def series_of_two_classes(n=40):
    rng, y = np.random.default_rng(0), np.arange(n) % 2
    times = np.arange(48) * np.where(y, 0.4, 0.9)[:, None]
    return np.sin(times)[:, None] + 0.1 * rng.normal(size=(n, 1, 48)), y


def graphs_of_two_classes(n=40):
    return [nx.path_graph(6 + k % 5) if k % 2 else nx.star_graph(5 + k % 5) for k in range(n)]


BY_KIND = {
    "vectors": (lambda: X, small(max_epochs=1), ["Raw"]),
    "long vectors": (lambda: np.tile(X, 700), small(max_epochs=1), []),
    "images": (
        lambda: IMAGES[:90],
        small(encoder=ConvNet(), max_epochs=1),
        ["ViewWhitening(PatchDictionary)"],
    ),
    "series": (
        lambda: series_of_two_classes(90)[0],
        small(encoder=SeriesNet(), max_epochs=1),
        ["ViewWhitening(MiniRocket)"],
    ),
    "graphs": (
        lambda: graphs_of_two_classes(90),
        small(encoder=GIN(), max_epochs=1),
        ["ViewWhitening(GraphProfile)", "WeisfeilerLehman"],
    ),
}


@pytest.mark.parametrize("name", BY_KIND)
def test_each_kind_has_default_blocks_and_a_file_of_them(name, tmp_path):
    load, embedder, blocks = BY_KIND[name]
    samples = load()
    found = model(embedder, random_state=0).fit(samples, FEW)
    assert list(found.blocks_) == ["embedding", *blocks]
    names = found.get_feature_names_out()
    assert len(set(names)) == len(names) == found.transform(samples).shape[1]
    skcontrast.save(found, tmp_path / "a")
    loaded = skcontrast.load(tmp_path / "a")
    assert loaded.blocks_ == found.blocks_
    np.testing.assert_array_equal(loaded.predict_proba(samples), found.predict_proba(samples))


@pytest.mark.parametrize(
    "name",
    ["long vectors", *(pytest.param(k, marks=pytest.mark.slow) for k in ("images", "series"))],
)
def test_an_exported_one_has_its_blocks(name, tmp_path):
    load, embedder, _ = BY_KIND[name]
    samples = load().astype(np.float32)
    found = model(embedder, random_state=0).fit(samples, FEW)
    skcontrast.export(found, tmp_path / "a.onnx", samples)
    onnxruntime = pytest.importorskip("onnxruntime")
    network = onnxruntime.InferenceSession(tmp_path / "a.onnx")
    probabilities = network.run(None, {"X": samples})[0]
    np.testing.assert_allclose(probabilities, found.predict_proba(samples), atol=1e-4)


def test_blocks_that_a_file_cannot_have_are_named(tmp_path):
    found = model(blocks=[PCA(2)]).fit(X, FEW)
    with pytest.raises(TypeError, match="save writes features"):
        skcontrast.save(found, tmp_path / "a")
    with pytest.raises(ValueError, match="can only be exported if it is of"):
        skcontrast.export(found, tmp_path / "a.onnx", X)


def test_given_blocks_are_parameters_of_what_is_loaded(tmp_path):
    found = model(blocks=[Raw()]).fit(X, FEW)
    skcontrast.save(found, tmp_path / "a")
    loaded = skcontrast.load(tmp_path / "a")
    assert repr(loaded) == repr(found) and loaded.transformers_[0] is not loaded.blocks[0]


def test_views_of_the_embedder_whiten_and_embeddings_without_views_do_not():
    embedder = small(encoder=ConvNet(), augmentation=[GaussianBlur()], max_epochs=1)
    block = model(embedder).fit(IMAGES[:90], FEW).transformers_[0]
    assert type(block.augmentation[0]) is GaussianBlur


def test_verbose_says_what_blocks_weigh(capsys):
    model(blocks=[Raw()], verbose=1).fit(X, FEW)
    assert re.search(r"Blocks: embedding 0\.\d\d, Raw 0\.\d\d\n", capsys.readouterr().err)


@pytest.mark.parametrize("freeze", [lambda e: e, FrozenEstimator])
def test_a_fitted_embedder_is_never_trained_again(freeze):
    embedder = small(max_epochs=1).fit(X)
    H = embedder.transform(X)
    found = model(freeze(embedder)).fit(X[:40], FEW[:40])
    assert found.embedder_ is embedder
    np.testing.assert_array_equal(embedder.transform(X), H)
    with pytest.raises(TypeError, match="'domains'; with a fitted embedder it takes only groups"):
        found.fit(X, FEW, domains=Y)


def test_copies_train_a_fitted_embedder_again_unless_it_is_frozen():
    embedder = small(max_epochs=1).fit(X)
    kept, again = (
        clone(Pipeline([("c", model(given))]))["c"].fit(X[:40], FEW[:40]).embedder_
        for given in (FrozenEstimator(embedder), embedder)
    )
    assert kept is embedder is not again


def test_a_copy_has_the_parameters_and_requests_and_is_not_fitted():
    with sklearn.config_context(enable_metadata_routing=True):
        found = model(use_labels=True).set_fit_request(groups=True).fit(X, FEW)
    copy = clone(found)
    assert not hasattr(copy, "classifier_") and copy.embedder is not found.embedder
    assert repr(copy) == repr(found)
    assert copy.get_metadata_routing().fit.requests["groups"] is True
    again = pickle.loads(pickle.dumps(found))
    np.testing.assert_array_equal(again.predict_proba(X), found.predict_proba(X))


def test_it_ends_a_pipeline_of_augmentations():
    pipe = Pipeline([("noise", GaussianNoise()), ("classify", model())]).fit(X, FEW)
    assert type(pipe["classify"].embedder_.augmentation_[0]) is GaussianNoise
    assert pipe.predict(X).shape == (90,)


def test_default_epochs_make_about_as_many_steps():
    found = ContrastiveClassifier()
    epochs = []

    def fit(self, X, y=None, **metadata):
        epochs.append(self.max_epochs)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(skcontrast.ContrastiveEmbedder, "fit", fit)
        for n in (100, 3060, 100_000):
            with pytest.raises(KeyboardInterrupt):
                found.fit(np.zeros((n, 1)), np.arange(n) % 2)
    assert epochs == [400, 30, 10]


def test_cross_validation_and_search_score_known_rows_alone():
    scores = cross_val_score(model(), X, FEW, cv=LabeledFolds(3), scoring="accuracy")
    assert scores.shape == (3,) and (scores > 0.5).all()
    search = GridSearchCV(model(), {"embedder__lr": [1e-3, 1e-2]}, cv=LabeledFolds(2))
    assert search.fit(X, FEW).predict(X).min() >= 0


def test_groups_and_weights_are_routed(monkeypatch):
    seen = []
    fit = LogisticRegression.fit

    def noting(self, X, y, sample_weight=None):
        seen.append(sample_weight)
        return fit(self, X, y, sample_weight)

    monkeypatch.setattr(LogisticRegression, "fit", noting)
    weights, groups = np.linspace(1, 2, 90), np.arange(90) % 3 + 3 * np.where(FEW < 0, 4, FEW)
    with sklearn.config_context(enable_metadata_routing=True):
        routed = model(blocks=[], pseudo_labels=False).set_fit_request(
            groups=True, sample_weight=True
        )
        routed.set_score_request(sample_weight=True)
        found = cross_validate(
            routed,
            X,
            FEW,
            cv=LabeledFolds(GroupKFold(3)),
            params={"groups": groups, "sample_weight": weights},
            error_score="raise",
        )
    assert len(found["test_score"]) == 3
    assert sum(map(len, seen)) == 60
    plain, weighted = (
        model(blocks=[], pseudo_labels=False).fit(X, FEW, **given)
        for given in ({}, {"sample_weight": weights, "groups": groups})
    )
    assert not np.array_equal(plain.transform(X), weighted.transform(X))


@pytest.mark.parametrize("y", [FEW, np.where(FEW < 0, None, NAMES), np.where(FEW == 2, 0, FEW)])
@pytest.mark.parametrize("classifier", [None, LinearSVC(random_state=0)])
def test_a_file_holds_all_of_it(tmp_path, y, classifier):
    found = model(classifier=classifier, random_state=1).fit(X, y)
    skcontrast.save(found, tmp_path / "model.safetensors")
    loaded = skcontrast.load(tmp_path / "model.safetensors")
    assert repr(loaded) == repr(found)
    np.testing.assert_array_equal(loaded.classes_, found.classes_)
    np.testing.assert_array_equal(loaded.transform(X), found.transform(X))
    np.testing.assert_array_equal(loaded.predict(X), found.predict(X))
    np.testing.assert_array_equal(loaded.decision_function(X), found.decision_function(X))
    again = loaded.fit(X, y)
    np.testing.assert_array_equal(again.decision_function(X), found.decision_function(X))


def test_a_file_says_whether_the_embedder_is_trained_again(tmp_path):
    embedder = small(max_epochs=1).fit(X)
    for given in (embedder, FrozenEstimator(embedder)):
        skcontrast.save(model(given).fit(X, FEW), tmp_path / "a")
        loaded = skcontrast.load(tmp_path / "a")
        assert isinstance(loaded.embedder, FrozenEstimator)
        assert loaded.fit(X, FEW).embedder_ is loaded.embedder.estimator


def test_a_file_keeps_names_of_classes_and_the_output_as_they_are(tmp_path):
    found = model().set_output(transform="pandas").fit(X, NAMES)
    skcontrast.save(found, tmp_path / "a")
    loaded = skcontrast.load(tmp_path / "a")
    assert loaded.classes_.dtype == found.classes_.dtype == loaded.predict(X).dtype
    pd.testing.assert_frame_equal(loaded.transform(X), found.transform(X))


def test_a_file_takes_linear_classifiers_only(tmp_path):
    found = model(classifier=KNeighborsClassifier()).fit(X, FEW)
    with pytest.raises(TypeError, match="got KNeighborsClassifier"):
        skcontrast.save(found, tmp_path / "a")
    with pytest.raises(ValueError, match="Only a LogisticRegression can be exported"):
        skcontrast.export(found, tmp_path / "a.onnx", X)


@pytest.mark.parametrize("y", [FEW, np.where(FEW == 2, 0, FEW)])
def test_an_exported_one_returns_probabilities(tmp_path, y):
    found = model().fit(X, y)
    skcontrast.export(found, tmp_path / "a.onnx", X)
    onnxruntime = pytest.importorskip("onnxruntime")
    network = onnxruntime.InferenceSession(tmp_path / "a.onnx")
    probabilities = network.run(None, {"X": X})[0]
    np.testing.assert_allclose(probabilities, found.predict_proba(X), atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("named", [NAMES, Y, Y % 2, Y > 0], ids=["text", "int", "two", "bool"])
def test_an_onnx_file_returns_labels_and_names_the_classes(named, tmp_path):
    for name in ("onnx", "onnxscript"):
        pytest.importorskip(name)
    onnxruntime = pytest.importorskip("onnxruntime")
    found = model().fit(X, np.where(FEW < 0, None, named))
    skcontrast.export(found, tmp_path / "a.onnx", X)
    session = onnxruntime.InferenceSession(tmp_path / "a.onnx")
    names = json.loads(session.get_modelmeta().custom_metadata_map["classes"])
    assert names == found.classes_.tolist()
    probabilities, labels = session.run(["probabilities", "label"], {"X": X[:7]})
    np.testing.assert_allclose(probabilities, found.predict_proba(X[:7]), atol=1e-5)
    assert labels.tolist() == found.predict(X[:7]).tolist()
    assert np.array(names)[probabilities.argmax(1)].tolist() == labels.tolist()


@pytest.mark.parametrize(
    ("change", "fit", "message"),
    [
        ({}, {"y": None}, "y is None: pass the classes"),
        ({}, {"y": FEW[:5]}, "X must be samples, one for each entry of y"),
        ({}, {"y": np.full(90, -1)}, "must hold known classes, got none"),
        ({}, {"y": np.where(FEW < 0, -1, 0)}, "at least two known classes, got 1 class"),
        ({}, {"y": np.where(FEW < 0, "-1", NAMES)}, "the string '-1'"),
        ({}, {"y": np.where(FEW < 0, NAMES, Y)}, "numbers or strings, got both"),
        ({}, {"y": X[:, 0]}, "Unknown label type"),
        ({}, {"y": [None, (0, 1), *[(1, 1)] * 88]}, "numbers or strings, got lists or tuples"),
        ({}, {"y": FEW, "sample_weight": [1.0]}, r"sample_weight must have shape \(90,\)"),
        ({}, {"y": FEW, "sample_weight": np.linspace(-1, 1, 90)}, "sample_weight must be nonneg"),
        ({}, {"y": FEW, "sample_weight": FEW < 0}, "sample_weight must not be 0 for all"),
        (
            {"embedder": FrozenEstimator(small(max_epochs=1).fit(X))},
            {"y": FEW, "sample_weight": np.linspace(-1, 1, 90)},
            "sample_weight must be nonneg",
        ),
        ({}, {"y": FEW, "weights": np.ones(90)}, "unexpected argument 'weights'"),
        ({"embedder": skcontrast.ContrastiveEmbedder}, {"y": FEW}, "Write embedder=Contrastive"),
        ({"embedder": StandardScaler()}, {"y": FEW}, "'embedder' parameter of ContrastiveClass"),
        ({"classifier": StandardScaler()}, {"y": FEW}, "'classifier' parameter"),
        ({"classifier": "a"}, {"y": FEW}, "'classifier' parameter"),
        ({"classifier": LogisticRegression}, {"y": FEW}, "'classifier' parameter"),
        ({"use_labels": 1}, {"y": FEW}, "'use_labels' parameter"),
        ({"blocks": Raw()}, {"y": FEW}, "'blocks' parameter"),
        ({"blocks": [Raw]}, {"y": FEW}, "blocks must be a list of transformers, such as"),
        ({"blocks": ["raw"]}, {"y": FEW}, "blocks must be a list of transformers, such as"),
        ({"blocks": [LogisticRegression()]}, {"y": FEW}, "LogisticRegression"),
        (
            {"embedder": small(loss=SupCon())},
            {"y": FEW},
            r"SupCon of the embedder.*use_labels=True",
        ),
        ({"embedder": FrozenEstimator(small())}, {"y": FEW}, "not fitted"),
        (
            {"classifier": KNeighborsClassifier()},
            {"y": FEW, "sample_weight": np.ones(90)},
            "takes no sample_weight",
        ),
    ],
)
def test_mistakes_are_named(change, fit, message):
    found = model().set_params(**change)
    with pytest.raises((TypeError, ValueError), match=message):
        found.fit(X, **fit)
    assert not hasattr(found, "classifier_")


@pytest.mark.parametrize(
    ("y", "weights", "message"),
    [
        (FEW, np.ones(30), r"sample_weight must have shape \(90,\)"),
        (FEW, 2.0, "sample_weight"),
        (FEW, -np.ones(90), "sample_weight must be nonneg"),
        (FEW, FEW < 0, "sample_weight must not be 0 for all"),
        (np.full(90, -1), None, "y must hold known classes, got none"),
        (np.where(FEW < 0, None, NAMES), None, "y must be classes, numbers or strings as in fit"),
    ],
)
def test_mistakes_in_what_is_scored_are_named(y, weights, message):
    found = model(small(max_epochs=1).fit(X)).fit(X, FEW)
    with pytest.raises(ValueError, match=message):
        found.score(X, y, weights)


class Full(LogisticRegression):
    def fit(self, X, y, sample_weight=None):
        raise MemoryError


def test_a_trained_embedder_is_kept_whatever_fails_after_it():
    found = model(random_state=0).fit(X, FEW)
    before = found.embedder_
    with pytest.raises(MemoryError):
        found.set_params(classifier=Full()).fit(X, FEW)
    assert found.embedder_ is not before
    assert not hasattr(found, "classes_")  # of a classifier that saw the embedder before
    with pytest.raises(sklearn.exceptions.NotFittedError):
        found.predict(X)
    again = model(found.embedder_).fit(X, FEW)
    expected = model(random_state=0).fit(X, FEW)
    np.testing.assert_array_equal(again.predict_proba(X), expected.predict_proba(X))


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_keeps_the_epochs_of_the_embedder():
    class Interrupts(Callback):
        def on_epoch_begin(self, net, **kwargs):
            if len(net.history) == 3:
                signal.raise_signal(signal.SIGINT)

    found = model(small(max_epochs=9, callbacks=[Interrupts()]))
    with pytest.raises(KeyboardInterrupt):
        found.fit(X, FEW)
    assert found.embedder_.n_epochs_ == 2
    assert not hasattr(found, "classifier_")


@pytest.mark.slow
def test_memory_does_not_grow_with_rows_times_classes(monkeypatch):
    monkeypatch.setattr(_label_spreading, "_LARGEST_GRAPH", 400)
    for module, name in ((_label_spreading, "_CHUNK"), (_blocks, "_BATCH")):
        monkeypatch.setattr(module, name, 128)
    n, n_classes = 4000, 400
    y = np.arange(n) % n_classes
    rows = (
        np.random.default_rng(0).normal(size=(n, 6))
        + np.random.default_rng(1).normal(size=(n_classes, 6))[y]
    )
    found = ContrastiveClassifier(small(max_epochs=1).fit(rows), GaussianNB())
    tracemalloc.start()
    found.fit(rows, np.where(np.arange(n) < n // 2, y, -1)).predict(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * n * n_classes


def test_metadata_that_are_none_are_none():
    embedder = small(max_epochs=1).fit(X)
    given = {"groups": None, "domains": None, "descriptions": None}
    plain, with_none = (ContrastiveClassifier(embedder).fit(X, FEW, **of) for of in ({}, given))
    np.testing.assert_array_equal(with_none.predict(X), plain.predict(X))


def test_parameters_of_what_is_not_there_name_it():
    with pytest.raises(ValueError, match="'embedder' parameter of ContrastiveClassifier is None"):
        ContrastiveClassifier().set_params(embedder__max_epochs=2)


def test_the_output_of_pandas_changes_no_prediction():
    expected = model(random_state=0).fit(X, FEW).predict(X)
    given = model(random_state=0).set_output(transform="pandas").fit(X, FEW)
    np.testing.assert_array_equal(given.predict(X), expected)


def test_score_names_a_y_of_another_length():
    with pytest.raises(ValueError, match="y must be 90 classes, one for each sample"):
        model().fit(X, FEW).score(X, FEW[:20])


def test_a_file_of_a_classifier_with_a_random_state_is_loaded(tmp_path):
    generator = np.random.RandomState(0)
    fitted = model(classifier=LogisticRegression(random_state=generator)).fit(X, FEW)
    skcontrast.save(fitted, tmp_path / "model.safetensors")
    name = "numpy.random.mtrand.RandomState"
    own = {name: generator, f"{name}#2": generator}
    loaded = skcontrast.load(tmp_path / "model.safetensors", custom_objects=own)
    np.testing.assert_array_equal(loaded.predict(X), fitted.predict(X))


def rare_categories():
    """Return a table whose 60 categories are mostly rare, and the classes that they decide."""
    rng = np.random.default_rng(0)
    shares = 1 / np.arange(1, 61)
    places = rng.choice(60, (2, 900), p=shares / shares.sum())
    numbers, effects = rng.normal(size=(900, 3)), rng.normal(size=(2, 60))
    y = (effects[0][places[0]] + effects[1][places[1]] + numbers[:, 0] > 1).astype(int)
    codes = OneHotEncoder(sparse_output=False).fit_transform(places.T)
    return np.hstack([numbers, codes]), y


# One-hot codes and standard normal numbers are on one scale.
TABLES = {
    "iris": (partial(load_iris, return_X_y=True), Vectors()),
    "rare categories": (rare_categories, Vectors(standardize=False)),
}


@pytest.mark.parametrize("name", TABLES)
def test_the_default_is_not_behind_a_logistic_regression_on_the_embedding(name):
    load, kind = TABLES[name]
    X, y = load()
    embedder = small(encoder=None, kind=kind, max_epochs=4).fit(X)
    H, rng, ahead = embedder.transform(X), np.random.default_rng(1), []
    for _ in range(6):
        draws = [rng.choice(np.flatnonzero(y == k), 10, replace=False) for k in np.unique(y)]
        few, known = np.concatenate(draws), np.full(len(y), -1)
        known[few], test = y[few], np.setdiff1d(np.arange(len(y)), few)
        model = ContrastiveClassifier(FrozenEstimator(embedder)).fit(X, known)
        linear = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
        predicted = model.predict(X), linear.fit(H[few], y[few]).predict(H)
        ours, theirs = (balanced_accuracy_score(y[test], p[test]) for p in predicted)
        ahead.append(ours - theirs)
    assert np.mean(ahead) > -0.01


def test_default_blocks_read_samples_as_the_embedder_does(tmp_path):
    pixels = pytest.importorskip("PIL.Image")
    X = [pixels.new("RGB", (16 + i % 3, 20), (8 * i, 40 * (i % 2), 90)) for i in range(30)]
    y = np.where(np.arange(30) < 10, np.arange(30) % 2, -1)
    embedder = small(encoder=ConvNet([8]), kind=Images(size=16))
    model = ContrastiveClassifier(embedder, random_state=0).fit(X, y)
    assert list(model.blocks_) == ["embedding", "ViewWhitening(PatchDictionary)"]
    skcontrast.save(model, tmp_path / "model.safetensors")
    loaded = skcontrast.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_a_declared_kind_is_that_of_the_blocks():
    X = np.random.default_rng(0).normal(size=(40, 8, 30))  # like series; a warning is an error
    y = np.where(np.arange(40) < 10, np.arange(40) % 2, -1)
    embedder = small(encoder=ConvNet([8]), kind="images")
    ContrastiveClassifier(embedder, random_state=0).fit(X, y)
