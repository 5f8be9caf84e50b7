"""What a classifier for few labels knows of its predictions: how accurate, how sure."""

import numpy as np
import pytest
import torch
from scipy.special import expit, logit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC

from skcontrast import ContrastiveClassifier, ContrastiveEmbedder, load, rows_to_label, save
from skcontrast._label_spreading import LabelGraph  # private: spreading has no public function
from skcontrast._pseudo_labels import _LEAST_PROBABILITY, _matching_temperature
from skcontrast.features import PartialWhitening
from tests.common import small

X, Y = load_digits().images[:600], load_digits().target[:600]
EMBEDDER = FrozenEstimator(ContrastiveEmbedder(max_epochs=15, random_state=0).fit(X))
H = EMBEDDER.transform(X)


def few(n=30, y=Y, seed=0):
    """Return the classes of rows that are chosen, −1 elsewhere."""
    known = np.full(len(y), -1)
    rows = rows_to_label(H[: len(y)], n, random_state=seed)
    known[rows] = y[rows]
    return known


def fitted(known, classifier=None, **kwargs):
    return ContrastiveClassifier(
        EMBEDDER, classifier, blocks=kwargs.pop("blocks", []), random_state=0
    ).fit(X[: len(known)], known, **kwargs)


FEW = few()
# Three labels of each class
THREE = np.where([(Y[:i] == k).sum() < 3 for i, k in enumerate(Y)], Y, -1)
MODEL = fitted(FEW)


def test_the_estimate_is_near_the_accuracy_and_its_interval_holds_it():
    for n in (30, 60):
        known = few(n)
        model = fitted(known)
        accuracy = (model.predict(X) == Y)[known < 0].mean()
        assert abs(model.accuracy_.value - accuracy) < 0.06
        assert model.accuracy_.low < accuracy < model.accuracy_.high
        assert model.accuracy_.confidence == 0.9


@pytest.mark.parametrize(
    "groups", [None, np.where(FEW < 0, -1, 2 * FEW + np.arange(600) % 2)], ids=["rows", "groups"]
)
def test_the_estimate_is_the_formula_with_each_label_left_out_by_hand(groups):
    Z, known = MODEL.transform(X), np.flatnonzero(FEW >= 0)

    def spread(codes):
        whitening = PartialWhitening(600 // 32, random_state=0)
        h = torch.from_numpy(whitening.fit_transform(Z)).float()
        chunks = LabelGraph(h, torch.from_numpy(codes), 5).chunks()
        return np.concatenate([p for _, p in chunks]).argmax(1)

    def classify(codes):
        rows = codes >= 0
        return LogisticRegression(max_iter=1000).fit(Z[rows], codes[rows]).predict(Z)

    a = (classify(FEW) == spread(FEW))[FEW < 0].mean()
    first, second, truth = [], [], []
    for row in known:
        rest = FEW.copy()
        rest[row if groups is None else groups == groups[row]] = -1
        if FEW[row] in rest[rest >= 0]:
            first.append(classify(rest)[row])
            second.append(spread(rest)[row])
            truth.append(FEW[row])
    first, second, truth = map(np.array, (first, second, truth))
    n = len(truth) + 2
    b = ((first == second).sum() + 1) / n
    c = ((first == truth).sum() / 2 + (second == truth).sum() / 2 + 1) / n
    expected = expit(logit(a) + (logit(c) - logit(b)) / 2)
    model = MODEL if groups is None else fitted(FEW, groups=groups)
    assert model.accuracy_.value == pytest.approx(expected, abs=1e-6)


def test_left_out_labels_are_spread_as_if_they_were_unknown():
    h, labels = torch.from_numpy(H), torch.from_numpy(FEW)
    known = np.flatnonzero(FEW >= 0)
    folds = np.arange(len(known)) % 7
    together = LabelGraph(h, labels, 5).left_out(folds)
    for fold in range(7):
        rest = labels.clone()
        rest[known[folds == fold]] = -1
        chunks = LabelGraph(h, rest, 5).chunks()
        alone = np.concatenate([p for _, p in chunks])[known[folds == fold]]
        n_classes = alone.shape[1]
        np.testing.assert_allclose(together[folds == fold, :n_classes], alone, atol=1e-5)


def test_the_mean_top_probability_of_unlabeled_rows_is_the_estimate():
    top = MODEL.predict_proba(X)[FEW < 0].max(1)
    assert top.mean() == pytest.approx(MODEL.accuracy_.value, abs=1e-6)
    assert MODEL.temperature_ != 1


def test_a_temperature_that_cannot_reach_the_estimate_is_as_near_as_it_may_be():
    p = np.random.default_rng(0).dirichlet([0.1] * 4, 500)
    assert _matching_temperature(p, 0.26) == pytest.approx(np.e**3)
    assert _matching_temperature(np.full((3, 4), 0.25) + np.eye(3, 4) / 100, 0.99) < 0.051
    assert _matching_temperature(np.eye(4), 0.5) == 1  # neighbours and trees


def test_a_temperature_changes_probabilities_and_no_prediction():
    logits = MODEL.decision_function(X) / MODEL.temperature_
    expected = np.exp(logits - logits.max(1, keepdims=True))
    expected /= expected.sum(1, keepdims=True)
    np.testing.assert_allclose(MODEL.predict_proba(X), expected, atol=1e-6)
    assert (MODEL.classes_[MODEL.predict_proba(X).argmax(1)] == MODEL.predict(X)).all()
    assert (MODEL.classifier_.predict(MODEL.transform(X)) == MODEL.predict(X)).all()


def test_two_classes_are_calibrated_as_well():
    known = np.where(FEW < 0, -1, FEW % 2)
    model = fitted(known)
    scores = model.decision_function(X) / model.temperature_
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(scores), atol=1e-6)


def test_uncertain_rows_are_wrong_more_often():
    free = FEW < 0
    wrong = (MODEL.predict(X) != Y)[free]
    assert roc_auc_score(wrong, MODEL.uncertainty_[free]) > 0.8
    assert np.isnan(MODEL.uncertainty_[~free]).all()
    assert ((MODEL.uncertainty_[free] >= 0) & (MODEL.uncertainty_[free] <= 1)).all()


def test_the_uncertainty_is_that_of_both_predictions():
    known = torch.from_numpy(FEW)
    whitening = PartialWhitening(600 // 32, random_state=0)
    h = torch.from_numpy(whitening.fit_transform(MODEL.transform(X))).float()
    q = np.concatenate([p for _, p in LabelGraph(h, known, 5).chunks()]) + _LEAST_PROBABILITY
    p = MODEL.classifier_.predict_proba(MODEL.transform(X))
    both = np.sqrt(np.maximum(p, 1e-9) * q)
    both /= both.sum(1, keepdims=True)
    expected = 1 - both[np.arange(600), p.argmax(1)]
    free = FEW < 0
    np.testing.assert_allclose(MODEL.uncertainty_[free], expected[free], atol=1e-5)


@pytest.mark.parametrize(
    ("known", "parameters", "reason"),
    [
        (few(15), {}, "fewer than 2 labels per class"),
        (few(30, Y[:120]), {}, "fewer than 100 unlabeled samples"),
        (np.where(np.arange(600) < 101, Y, FEW), {"use_labels": True}, "learnt from y"),
        (Y, {}, "needs pseudo-labels and unlabeled"),
        (FEW, {"pseudo_labels": False}, "needs pseudo-labels and unlabeled"),
        (np.where(FEW < 0, -1, FEW == 3), {}, "classes of the labels are imbalanced"),
        (THREE, {"classifier": CalibratedClassifierCV(cv=3)}, "cannot be fitted without some"),
    ],
)
def test_where_nothing_can_be_estimated_it_says_why(known, parameters, reason, capsys):
    embedder = small(max_epochs=1) if "use_labels" in parameters else EMBEDDER
    model = ContrastiveClassifier(embedder, blocks=[], random_state=0, verbose=1, **parameters)
    model.fit(X[: len(known)], known)
    assert model.accuracy_ is None and model.temperature_ == 1
    assert reason in capsys.readouterr().err
    P = model.classifier_.predict_proba(model.transform(X))
    np.testing.assert_array_equal(model.predict_proba(X), P)


def test_many_labels_are_for_cross_validation(monkeypatch):
    monkeypatch.setattr("skcontrast._pseudo_labels._MOST_LABELS", 29)
    assert fitted(FEW).accuracy_ is None


def test_many_labels_are_left_out_in_folds(monkeypatch):
    monkeypatch.setattr("skcontrast._pseudo_labels._MOST_FOLDS", 10)
    assert fitted(FEW).accuracy_.value == pytest.approx(MODEL.accuracy_.value, abs=0.05)


def test_classes_may_be_strings_and_weights_count():
    names = np.array(list("abcdefghij"), dtype=object)
    known = np.where(FEW < 0, None, names[FEW])
    model = fitted(known, sample_weight=np.ones(len(X)))
    assert model.accuracy_ == MODEL.accuracy_ and model.temperature_ == MODEL.temperature_


def test_labels_of_weight_0_are_unknown():
    labels = np.where(np.arange(len(FEW)) % 2, FEW, np.where(FEW < 0, Y[::-1], FEW))
    weight = 1.0 * (labels == FEW)
    wrong, model = (fitted(known, sample_weight=weight) for known in (labels, FEW))
    assert wrong.accuracy_ == model.accuracy_
    np.testing.assert_array_equal(wrong.predict_proba(X), model.predict_proba(X))
    assert fitted(Y, sample_weight=weight).accuracy_ is None  # no class is unknown


def test_any_classifier_has_an_estimate_and_only_probabilities_a_temperature():
    model = fitted(FEW, SVC())
    assert 0.6 < model.accuracy_.value < 1
    assert model.temperature_ == 1 and model.uncertainty_ is None
    model = fitted(FEW, KNeighborsClassifier(3))
    assert model.accuracy_ is not None and model.uncertainty_ is not None


def test_a_file_has_the_estimate_and_the_temperature(tmp_path):
    save(MODEL, tmp_path / "f.skc")
    loaded = load(tmp_path / "f.skc")
    assert loaded.accuracy_ == MODEL.accuracy_ and loaded.uncertainty_ is None
    np.testing.assert_array_equal(loaded.predict_proba(X), MODEL.predict_proba(X))


def test_a_fit_that_fails_leaves_no_estimate_of_an_earlier_one():
    model = ContrastiveClassifier(small(max_epochs=1), blocks=[], random_state=0).fit(X, FEW)
    model.blocks = [PartialWhitening()]
    with pytest.raises(ValueError, match="dim 3"):
        model.fit(X, FEW)
    assert not hasattr(model, "accuracy_") and hasattr(model, "embedder_")
