"""Groups of a classifier: labels spread in groups whose labels agree."""

import warnings

import numpy as np
import pytest
import torch
from scipy.stats import beta
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_val_score
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

from skcontrast import (
    ContrastiveClassifier,
    ContrastiveEmbedder,
    GroupWhitening,
    LabeledFolds,
    export,
    load,
    save,
)
from skcontrast._blocks import Labels
from skcontrast._pseudo_labels import pooled, spread_in_groups  # private: inside of fit
from skcontrast.encoders import MLP, Pretrained

N_GROUPS, SIZE = 60, 4
GROUPS = np.repeat(np.arange(N_GROUPS), SIZE)
Y = np.arange(N_GROUPS)[GROUPS] % 3
RNG = np.random.default_rng(0)
# A group has a place of its own, which is near to that of its class.
X = np.eye(3)[Y] @ np.ones((3, 8)).cumsum(0) * 0.7
X = X + RNG.normal(size=(N_GROUPS, 8))[GROUPS] + 0.8 * RNG.normal(size=(len(Y), 8))
EMBEDDER = FrozenEstimator(
    ContrastiveEmbedder(MLP(widths=(16,)), max_epochs=2, random_state=0, device="cpu").fit(X)
)
# Two labels in each of twelve groups
FEW = np.where((np.arange(len(Y)) % SIZE < 2) & (GROUPS < 12), Y, -1)


def fitted(groups=GROUPS, codes=FEW, **parameters):
    given = {} if groups is None else {"groups": groups}
    return ContrastiveClassifier(EMBEDDER, random_state=0, **parameters).fit(X, codes, **given)


def spread(model, groups=GROUPS, codes=FEW, weight=None):
    """Return codes and weights after labels are spread in groups."""
    labels = Labels(codes, np.arange(3), weight, groups)
    spread = spread_in_groups(model.classifier_, model.transform(X), labels)
    return spread.codes, spread.weight


def disagreeing():
    """Return groups whose labels have all classes."""
    return np.arange(len(Y)) % 2


def test_the_agreement_counts_labeled_pairs_of_a_group():
    model = fitted()
    assert model.group_agreement_.n_pairs == 12
    assert model.group_agreement_.value == 1
    assert model.group_agreement_.low == pytest.approx((beta.ppf(0.025, 12.5, 0.5) - 1 / 3) * 1.5)
    codes = FEW.copy()
    codes[0] = (codes[0] + 1) % 3
    chance = ((np.bincount(codes[codes >= 0]) / 24) ** 2).sum()
    expected = (13 / 14 - chance) / (1 - chance)
    with pytest.warns(UserWarning, match="Label about 10 more samples whose group has a label"):
        assert fitted(codes=codes).group_agreement_.value == pytest.approx(expected)
    assert fitted(None).group_agreement_ is None


def test_without_pairs_the_agreement_is_unknown():
    with pytest.warns(UserWarning, match=r"Label two samples of each of about \d+ groups"):
        agreement = fitted(np.arange(len(Y))).group_agreement_
    assert str(agreement) == "unknown (0 labeled pairs)" and not agreement.is_known


def test_predictions_of_groups_need_probabilities():
    with pytest.raises(NotFittedError):
        ContrastiveClassifier(EMBEDDER).predict(X, groups=GROUPS)
    with pytest.raises(TypeError, match=r"groups need .* predict_proba, got LinearSVC\(\)"):
        ContrastiveClassifier(EMBEDDER, LinearSVC()).predict(X, groups=GROUPS)


def test_labels_of_one_group_count_as_one_fewer_than_they_are():
    codes = np.where((GROUPS == 0) | (np.arange(len(Y)) % 40 == 9), Y, -1)
    with pytest.warns(UserWarning, match="Labels are not spread in groups"):
        assert fitted(codes=codes).group_agreement_.n_pairs == 3


def test_groups_that_agree_by_chance_are_ignored():
    y = (np.arange(len(Y)) % 11 == 0).astype(int)  # one in eleven, whatever the group
    codes = np.where(np.arange(len(Y)) < 200, y, -1)
    with pytest.warns(UserWarning, match="groups are ignored, .* agree, beyond chance"):
        assert fitted(codes=codes).group_agreement_.value < 0.4


def test_a_file_knows_the_agreement_and_an_exported_model_has_the_block(tmp_path):
    model = fitted()
    save(model, tmp_path / "f.skc")
    loaded = load(tmp_path / "f.skc")
    assert loaded.group_agreement_ == model.group_agreement_
    P = model.predict_proba(X, groups=GROUPS)
    np.testing.assert_array_equal(loaded.predict_proba(X, groups=GROUPS), P)
    export(model, tmp_path / "f.onnx", X)
    onnxruntime = pytest.importorskip("onnxruntime")
    network = onnxruntime.InferenceSession(tmp_path / "f.onnx")
    exported = network.run(None, {"X": X})[0]
    np.testing.assert_allclose(exported, model.predict_proba(X), atol=1e-4)


def test_labels_reach_the_rest_of_their_group():
    # Labels of rows that are not known otherwise: the last two of each labeled group.
    model = fitted(pseudo_labels=False, blocks=[])
    alone = fitted(None, pseudo_labels=False, blocks=[])
    assert not np.array_equal(model.classifier_.coef_, alone.classifier_.coef_)
    Z = alone.transform(X)
    codes, weights = spread(alone)
    assert (codes[GROUPS < 12] == Y[GROUPS < 12]).all() and (codes[GROUPS >= 12] == -1).all()
    mates = (FEW < 0) & (GROUPS < 12)
    p = alone.classifier_.predict_proba(Z)
    np.testing.assert_allclose(weights[mates], p[np.arange(len(Y)), Y][mates])
    assert (weights[FEW >= 0] == 1).all()


def test_labels_of_weight_0_neither_count_nor_spread():
    place = np.arange(len(Y)) % SIZE
    codes = np.where((GROUPS < 12) & (place == 2), (Y + 1) % 3, FEW)
    model = ContrastiveClassifier(EMBEDDER, pseudo_labels=False, blocks=[], random_state=0)
    model.fit(X, codes, groups=GROUPS, sample_weight=place < 2)
    assert model.group_agreement_ == fitted().group_agreement_
    found, _ = spread(model, codes=codes, weight=(place < 1).astype(float))
    np.testing.assert_array_equal(found[place == 3], np.where(GROUPS < 12, Y, -1)[place == 3])


def test_rows_without_a_group_get_no_label():
    model = fitted(None, pseudo_labels=False)
    groups = np.where(np.arange(len(Y)) % SIZE == 3, -1, GROUPS)
    codes, _ = spread(model, groups)
    assert (codes[groups < 0] == -1).all()


def test_a_group_with_equally_many_labels_of_two_classes_keeps_its_rows_unlabeled():
    model, codes = fitted(None, pseudo_labels=False), FEW.copy()
    codes[:2] = 0, 1
    np.testing.assert_array_equal(spread(model, codes=codes)[0][:SIZE], codes[:SIZE])


def test_without_weights_a_label_spreads_where_the_classifier_predicts_it():
    svm = LinearSVC(max_iter=10_000, random_state=0)
    model = fitted(None, classifier=svm, pseudo_labels=False)
    codes, weights = spread(model)
    mates = (FEW < 0) & (GROUPS < 12)
    predicted = model.predict(X)
    np.testing.assert_array_equal(codes[mates], np.where(predicted == Y, Y, -1)[mates])
    assert weights is None


def test_groups_that_disagree_change_nothing_but_the_warning():
    with pytest.warns(UserWarning, match="groups are ignored, because fewer than 0.7"):
        model = fitted(disagreeing())
    assert model.group_agreement_.value < 0.75
    np.testing.assert_array_equal(model.predict_proba(X), fitted(None).predict_proba(X))


def test_with_few_pairs_no_label_spreads_and_the_warning_says_how_many_are_missing():
    codes = np.where(np.arange(len(Y)) % SIZE == 0, FEW, -1)
    codes[: SIZE * 2] = FEW[: SIZE * 2]
    with pytest.warns(UserWarning, match="Label about 10 more samples whose group"):
        model = fitted(codes=codes, pseudo_labels=False, blocks=[])
    more = np.where(GROUPS < 12, FEW, -1)  # ten more pairs
    assert fitted(codes=more, pseudo_labels=False, blocks=[]).group_agreement_.is_known
    with pytest.raises(ValueError, match=r"groups must be None.* 2 labeled pairs"):
        model.predict(X, groups=GROUPS)
    alone = fitted(None, codes, pseudo_labels=False, blocks=[])
    np.testing.assert_array_equal(model.predict_proba(X), alone.predict_proba(X))


def assert_one_scale(block, expected):
    """Assert that a block is these rows, centred and multiplied by a number."""
    expected = expected - expected.mean(axis=0)
    np.testing.assert_allclose(
        block / np.linalg.norm(block), expected / np.linalg.norm(expected), atol=1e-5
    )


def test_vectors_get_a_block_of_their_groups_which_keeps_its_scale():
    model = fitted()
    assert list(model.blocks_) == ["embedding", "Raw", "GroupWhitening(Raw)"]
    assert_one_scale(model.transform(X)[:, -8:], model.transformers_[-1].transform(X))


def test_folds_warn_equally_at_the_line_of_the_user():
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model = ContrastiveClassifier(EMBEDDER, blocks=[], pseudo_labels=False)
        groups = np.arange(len(Y)) % 20  # of several classes
        folds = LabeledFolds(3).split(X, FEW, groups)
        cross_val_score(model, X, FEW, cv=folds, params={"groups": groups})
    assert {(str(one.message), one.filename) for one in found} == {
        (str(found[0].message), __file__)
    }


def frozen_network(images):
    """Return a fitted embedder, whose network is pretrained and not adapted."""
    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 12, 4, 4), torch.nn.ReLU())
    encoder = Pretrained(network, mean=0.5, std=0.5, adapt=False)
    return ContrastiveEmbedder(encoder, max_epochs=1, random_state=0).fit(images)


@pytest.mark.parametrize("codes", [FEW, np.where(np.arange(len(Y)) < 5, FEW, -1)])
def test_groups_whiten_a_frozen_network(codes, tmp_path):
    images = np.random.default_rng(0).random((len(Y), 3, 8, 8), dtype=np.float32) / 4
    images[:, 0] += 0.2 * Y[:, None, None]
    embedder = frozen_network(images)
    codes = np.where(GROUPS < 6, codes, -1)  # of three groups and more, with too few pairs
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Labels are not spread")
        model = ContrastiveClassifier(embedder, random_state=0).fit(images, codes, groups=GROUPS)
    assert list(model.blocks_) == ["embedding", "GroupWhitening"]
    H = embedder.transform(images)
    expected = GroupWhitening().fit_transform(H, groups=GROUPS)
    assert_one_scale(model.transform(images)[:, H.shape[1] :], normalize(expected))
    save(model, tmp_path / "f.skc")
    loaded = load(tmp_path / "f.skc")
    np.testing.assert_array_equal(loaded.predict_proba(images), model.predict_proba(images))
    pytest.importorskip("onnxruntime")
    export(model, tmp_path / "f.onnx", images)  # compares the output
    given = ContrastiveClassifier(embedder, blocks=[GroupWhitening()], random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Labels are not spread")
        given.fit(images, codes, groups=GROUPS)
    np.testing.assert_array_equal(given.transform(images), model.transform(images))


def test_few_groups_do_not_whiten_a_frozen_network():
    images = np.random.default_rng(0).random((len(Y), 3, 8, 8), dtype=np.float32)
    model = ContrastiveClassifier(frozen_network(images), random_state=0)
    few_groups = np.where(GROUPS < 39, GROUPS, -1)
    assert list(model.fit(images, FEW, groups=few_groups).blocks_) == ["embedding"]


def test_pooled_probabilities_are_products_over_groups():
    p = RNG.dirichlet(np.ones(3), size=5)
    groups = np.array([0, 1, 0, -1, -1])
    product = p[0] * p[2] / (p[0] * p[2]).sum()
    expected = np.array([product, p[1], product, p[3], p[4]])
    np.testing.assert_allclose(pooled(p, groups), expected)


def test_pooled_predictions_are_the_same_in_a_group():
    model = fitted()
    together = model.predict(X, groups=GROUPS)
    assert all(len(set(together[k == GROUPS])) == 1 for k in range(N_GROUPS))
    P = model.predict_proba(X, groups=GROUPS)
    np.testing.assert_allclose(P.sum(1), 1)
    assert (model.classes_[P.argmax(1)] == together).all()
