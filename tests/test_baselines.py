"""An embedder beside what needs no training: the same draws, and sentences that follow."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

# private: the accuracies are replaced
from skcontrast import ContrastiveEmbedder, ViewWhitening, _baselines, metrics
from skcontrast._model import _defaults  # private: a smaller default
from skcontrast.augmentation import FunctionAugmentation, RandomAffine, Unflatten
from skcontrast.encoders import GIN, PatchNet, Pretrained, SeriesNet
from skcontrast.features import Frozen, GraphProfile, PatchDictionary, WeisfeilerLehman
from skcontrast.losses import Supervised
from tests.common import X_DIGITS, Numbers, small

Y = np.repeat(np.arange(3), 20)
X = np.random.default_rng(0).normal(size=(60, 6)) + 2 * np.eye(6)[Y]
GRAPHS = [nx.gnp_random_graph(8, 0.2 + 0.2 * y, seed=k) for k, y in enumerate(Y)]
FEW, NEAR, LINEAR = "few labels", "neighbours", "linear"


@pytest.fixture(autouse=True)
def with_few_patches(monkeypatch):
    def few(n_patches=None, **kwargs):
        return PatchDictionary(8, 3, **kwargs)

    monkeypatch.setattr(_defaults, "PatchDictionary", few)


@pytest.fixture(scope="module")
def embedder():
    return small().fit(X)


def compared(estimator, X=X, y=Y, **kwargs):
    return metrics.compare_with_baselines(
        estimator, X, y, **{"n_repeats": 2, "random_state": 0, **kwargs}
    )


def few(H, y=Y, **kwargs):
    """Return the accuracies that a row of standardised features has."""
    H = StandardScaler().fit_transform(H)
    return metrics.few_label_accuracy(H, y, n_draws=2, scale=False, **kwargs)


def rows(estimator, X=X, y=Y):
    return list(compared(estimator, X, y).scores)


@pytest.fixture
def without_scores(monkeypatch):
    """Rows are made, but not scored."""
    monkeypatch.setattr(
        _baselines, "_accuracies", lambda *args: dict.fromkeys(_baselines.COLUMNS, np.full(2, 0.5))
    )


@pytest.mark.usefixtures("without_scores")
def test_each_kind_has_its_rows(embedder):
    ours = ["untrained", "embedder", "concatenated"]
    assert rows(embedder) == ["raw", *ours]
    images = np.tile(X_DIGITS[:60].reshape(-1, 1, 8, 8), (1, 1, 2, 2))
    fitted = small(encoder=PatchNet(8, 4, (8,)), max_epochs=1).fit(images)
    assert rows(fitted, images) == ["raw", "PCA", "patches", "gradients", "whitened", *ours]
    graphs = small(encoder=GIN(1, 8), max_epochs=1).fit(GRAPHS)
    assert rows(graphs, GRAPHS) == ["profile", "colours", "whitened", *ours]
    table = pd.DataFrame({"a": X[:, 0], "b": Y == 1})
    assert rows(small().fit(table), table) == ["raw", *ours]
    # All components of few features are these, rotated, and no row of their own.
    many = np.hstack([X] * 11)
    assert rows(small().fit(many), many) == ["raw", "PCA", *ours]


class Spectra(Numbers):
    """A kind of one's own, whose batches are floats of one shape."""

    float_batches = True

    def check(self, X):
        return np.asarray(X, dtype=np.float32)


class Gappy(Spectra):
    has_gaps = True


class Codes(Spectra):
    float_batches = False


@pytest.mark.parametrize(
    "kind, has_columns", [(Spectra(), True), (Gappy(), False), (Codes(), False)], ids=str
)
def test_a_kind_of_ones_own_has_rows_of_its_columns_where_these_are_floats(kind, has_columns):
    columns = np.hstack([X] * 11)
    jitter = FunctionAugmentation(lambda batch, generator: batch + 0.1)
    own = small(kind=kind, encoder=nn.Linear(66, 4), augmentation=jitter, max_epochs=1)
    found = compared(own.fit(columns), columns)
    before, after = (["raw", "PCA"], ["concatenated"]) if has_columns else ([], [])
    assert list(found.scores) == [*before, "untrained", "embedder", *after]
    if has_columns:
        expected = few(columns.astype(np.float32))
        np.testing.assert_allclose(found.scores["raw"][FEW], expected, atol=0.02)


def test_few_labels_are_those_of_few_label_accuracy_on_features_scaled_by_all_samples(embedder):
    found = compared(embedder, n_labels=3, random_state=7)
    expected = few(embedder.transform(X), n_labels=3, random_state=7)
    np.testing.assert_array_equal(found.scores["embedder"][FEW], expected)
    raw = few(X, n_labels=3, random_state=7)
    np.testing.assert_allclose(found.scores["raw"][FEW], raw, atol=0.02)


def test_unlabeled_samples_fit_the_baselines_but_are_no_class(embedder):
    y = np.where(np.arange(60) % 2, Y, -1)
    found = compared(embedder, y=y)
    assert found.n_labeled == 30
    H = StandardScaler().fit_transform(embedder.transform(X))[1::2]
    expected = metrics.few_label_accuracy(H, Y[1::2], n_draws=2, scale=False)
    np.testing.assert_array_equal(found.scores["embedder"][FEW], expected)


def test_rows_without_training_are_those_of_the_public_features():
    graphs = small(encoder=GIN(1, 8), max_epochs=1).fit(GRAPHS)
    found = compared(graphs, GRAPHS)
    expected = few(WeisfeilerLehman().fit_transform(GRAPHS))
    np.testing.assert_array_equal(found.scores["colours"][FEW], expected)
    expected = few(ViewWhitening(GraphProfile(), random_state=0).fit_transform(GRAPHS))
    np.testing.assert_array_equal(found.scores["whitened"][FEW], expected)


@pytest.mark.usefixtures("without_scores")
def test_series_of_one_channel_need_no_axis_for_it():
    series = np.random.default_rng(0).normal(size=(60, 25))
    embedder = small(encoder=SeriesNet(), kind="series")
    assert rows(embedder, series) == rows(embedder, series[:, None])


def test_a_frozen_embedder_is_the_embedder(embedder):
    found, frozen = compared(embedder), compared(FrozenEstimator(embedder))
    for row, columns in found.scores.items():
        for column, values in columns.items():
            np.testing.assert_array_equal(frozen.scores[row][column], values)


@pytest.mark.parametrize("augmentation", [None, RandomAffine(rotation=90)])
def test_whitened_images_are_patches_by_the_views_of_the_embedder(augmentation):
    images = X_DIGITS[:60].reshape(-1, 1, 8, 8)
    found = compared(small(max_epochs=1, augmentation=augmentation).fit(images), images)
    patches = _defaults.PatchDictionary(random_state=0)
    whitening = ViewWhitening(patches, augmentation, random_state=0)
    expected = few(whitening.fit_transform(images))
    np.testing.assert_allclose(found.scores["whitened"][FEW], expected, atol=0.05)


@pytest.mark.parametrize("is_frozen", [True, False])
def test_a_pipeline_is_fitted_where_one_of_its_steps_is_not(embedder, is_frozen):
    last = FrozenEstimator(embedder) if is_frozen else embedder
    assert compared(make_pipeline(StandardScaler(), last)).n_labeled == 60
    whole = make_pipeline(StandardScaler(), small()).fit(X)
    assert str(compared(FrozenEstimator(whole)))[:300] == str(compared(whole))[:300]


def test_the_concatenation_has_standardised_blocks_of_equal_weight(embedder):
    blocks = [StandardScaler().fit_transform(one) for one in (embedder.transform(X), X)]
    n_learned, n_raw = (one.shape[1] for one in blocks)
    mean = (n_learned + n_raw) / 2
    H = np.hstack([one * (mean / one.shape[1]) ** 0.5 for one in blocks])
    assert H[:, :n_learned].var(0).sum() == pytest.approx(H[:, n_learned:].var(0).sum())
    expected = metrics.few_label_accuracy(H, Y, n_draws=2, scale=False)
    np.testing.assert_allclose(compared(embedder).scores["concatenated"][FEW], expected, atol=0.02)


def test_the_untrained_row_has_the_first_weights(embedder):
    found = compared(embedder)
    untrained = small(max_epochs=1, lr=1e-12).fit_transform(X)
    expected = few(untrained)
    np.testing.assert_array_equal(found.scores["untrained"][FEW], expected)


def test_a_recipe_is_fitted_once_without_labels_and_is_not_changed(embedder):
    recipe = small()
    found, expected = compared(recipe), compared(embedder)
    assert not recipe.__sklearn_is_fitted__()
    for row, scores in expected.scores.items():
        np.testing.assert_array_equal(found.scores[row][LINEAR], scores[LINEAR])
    assert found.seconds["embedder"] > 0 and set(found.seconds) == set(found.scores)
    with pytest.raises(ValueError, match="requires y"):
        compared(small(loss=Supervised()))


@pytest.mark.usefixtures("without_scores")
def test_a_pipeline_prepares_x_for_all_rows(embedder):
    images = X_DIGITS[:60]
    pipe = make_pipeline(Unflatten((1, 8, 8)), RandomAffine(), small(max_epochs=1))
    expected = ["raw", "patches", "gradients", "whitened", "untrained", "embedder", "concatenated"]
    assert rows(pipe, images) == rows(pipe.fit(images), images) == expected
    assert rows(make_pipeline(embedder)) == rows(embedder)


def test_the_same_seed_gives_the_same_table_and_another_one_other_draws(embedder):
    first, again, other = (compared(embedder, random_state=seed) for seed in (0, 0, 2**32 - 1))
    for row in first.scores:
        for column in (FEW, NEAR, LINEAR):
            np.testing.assert_array_equal(first.scores[row][column], again.scores[row][column])
    assert not np.array_equal(first.scores["raw"][FEW], other.scores["raw"][FEW])


def made(baseline=None, **rows):
    """Return a comparison of rows whose columns have the same accuracies."""
    scores = {
        row: {column: np.array(values) for column in (FEW, NEAR, LINEAR)}
        for row, values in rows.items()
    }
    return metrics.BaselineComparison(scores, dict.fromkeys(rows, 1.0), 5, 60, baseline)


LOW, HIGH = [0.70, 0.72, 0.71, 0.70], [0.80, 0.83, 0.82, 0.80]
NO_HELP, UNDECIDED = "The embedding does not help:", "It is undecided whether the embedding helps:"


@pytest.mark.parametrize(
    "ours, theirs, begin, place",
    [
        (HIGH, LOW, "The embedding helps:", "ahead of raw"),
        (LOW, HIGH, NO_HELP, "behind raw"),
        (LOW, [0.60, 0.83, 0.71, 0.70], UNDECIDED, "undecided against raw"),
        (HIGH, np.subtract(HIGH, 0.1), "The embedding helps:", "ahead of raw (+0.100, +0.100"),
        (LOW, [0.701, 0.719, 0.711, 0.699], NO_HELP, "as good as raw (+0.000, "),
        (LOW, LOW, NO_HELP, "as good as raw (+0.000, +0.000 to +0.000)"),
    ],
    ids=["ahead", "behind", "chance", "always by the same", "nearly equal", "equal"],
)
def test_the_verdict_follows_from_the_best_row_without_training(ours, theirs, begin, place):
    found = made(raw=theirs, PCA=[0.1] * 4, embedder=ours, concatenated=[0.9] * 4)
    assert found.best_baseline(FEW) == "raw"
    assert found.verdict.startswith(begin) and found.verdict.count(place) == 3


def test_ahead_here_and_behind_there_helps_in_part():
    found = made(raw=LOW, embedder=HIGH)
    found.scores["raw"][NEAR] = np.add(HIGH, [0.1, 0.11, 0.1, 0.12])
    assert found.verdict.startswith("The embedding helps in part: few labels ahead")


def test_halves_that_overlap_widen_the_test_and_drawn_labels_do_not():
    found = made(raw=[0.70, 0.74, 0.71, 0.72], embedder=HIGH)
    pair = found.scores["embedder"][FEW], found.scores["raw"][FEW]
    assert found.compare("raw", FEW).p_t == metrics.compare_paired(*pair).p_t
    for column in (NEAR, LINEAR):
        expected = metrics.compare_paired(*pair, test_train_ratio=1.0).p_t
        assert found.compare("raw", column).p_t == expected


def test_the_table_is_text_and_a_data_frame():
    found = made(raw=LOW, embedder=HIGH)
    title, head, *lines, verdict = str(found).splitlines()
    assert title.startswith("Accuracy on 60 labeled samples, 4 repeats; few: 5 labels per class")
    assert head.split() == ["few", "labels", "p", "neighbours", "p", "linear", "p", "seconds"]
    assert [line.split()[0] for line in lines] == ["raw", "embedder"]
    assert lines[0].split()[1] == "0.708" and verdict == found.verdict
    frame = found.to_frame()
    assert list(frame.index) == ["raw", "embedder"]
    assert frame.loc["embedder", LINEAR] == pytest.approx(np.mean(HIGH))
    assert np.isnan(frame.loc["embedder", f"p, {LINEAR}"])


@pytest.mark.parametrize(
    "change, message",
    [
        ({"estimator": LogisticRegression()}, "embedder must be a ContrastiveEmbedder"),
        ({"estimator": ContrastiveEmbedder}, "embedder must be a ContrastiveEmbedder"),
        ({"y": None}, "target y is None"),
        ({"y": Y[:-1]}, "y must have one entry per sample, 60, got 59"),
        ({"y": np.where(Y, -1, 0)}, "y must hold 2 or more known classes, got 1"),
        ({"y": np.r_[9, Y[1:]]}, "got a class of one sample"),
        ({"n_labels": 20}, "n_labels must be at most 19"),
        ({"n_labels": 0}, "'n_labels' parameter of compare_with_baselines"),
        ({"n_repeats": 1}, "'n_repeats' parameter of compare_with_baselines"),
        ({"random_state": -1}, "'random_state' parameter of compare_with_baselines"),
    ],
)
def test_refusals_name_the_argument(embedder, change, message):
    with pytest.raises(TypeError if "estimator" in change else ValueError, match=message):
        compared(**{"estimator": embedder, **change})


def test_unknown_rows_and_columns_are_refused():
    found = made(raw=LOW, embedder=HIGH)
    with pytest.raises(ValueError, match="'row' parameter of compare"):
        found.compare("HOG", FEW)
    with pytest.raises(ValueError, match="'column' parameter of best_baseline"):
        found.best_baseline("few")


def test_a_pretrained_network_has_a_row_unchanged():
    images = np.tile(X_DIGITS[:60].reshape(-1, 1, 8, 8), (1, 1, 2, 2))
    with torch.random.fork_rng(devices=[]):
        net = nn.Sequential(nn.Conv2d(3, 4, 3, 2), nn.ReLU(), nn.Conv2d(4, 6, 3, 2))
    encoder = Pretrained(net, mean=0.5, std=0.5, size=16)
    embedder = small(encoder=encoder, max_epochs=1).fit(images / images.max())
    found = compared(embedder, images / images.max())
    expected = few(Frozen(encoder).fit_transform(images / images.max()))
    np.testing.assert_allclose(found.scores["pretrained"][FEW], expected)
    assert "untrained" not in found.scores  # its first weights are those of "pretrained"


def test_repeats_that_are_asked_for_are_made():
    found = compared(small(max_epochs=1).fit(X), n_repeats=5).scores
    assert {len(values) for row in found.values() for values in row.values()} == {5}


def test_a_long_comparison_shows_a_bar(embedder, monkeypatch, capfd):
    compared(embedder)
    assert not capfd.readouterr().err
    monkeypatch.setattr("skcontrast._warnings._SILENT", 1e-9)
    compared(embedder)
    assert "row [" in capfd.readouterr().err


def test_the_choice_of_the_best_row_widens_the_interval_and_a_named_row_does_not():
    rows = {"raw": [0.70, 0.74, 0.71, 0.72], "PCA": [0.5] * 4, "embedder": HIGH}
    for baseline, confidence in ((None, 0.975), ("raw", 0.95)):
        low = metrics.compare_paired(HIGH, rows["raw"], confidence=confidence).low
        verdict = made(baseline, **rows).verdict
        assert f"few labels ahead of raw (+0.095, {low:+.3f} to " in verdict


def test_a_baseline_is_named_before_and_an_unfitted_frozen_embedder_refused(embedder):
    assert compared(embedder, baseline="raw").baseline == "raw"
    with pytest.raises(ValueError, match="'baseline' parameter of compare_with"):
        compared(embedder, baseline="row")
    with pytest.raises(ValueError, match="'baseline'"):
        compared(embedder, baseline="colours")  # of graphs
    with pytest.raises(NotFittedError):
        metrics.compare_with_baselines(FrozenEstimator(clone(embedder)), X, Y)
    assert metrics.compare_with_baselines(FrozenEstimator(embedder), X, Y, n_labels=3, n_repeats=2)
