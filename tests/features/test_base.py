"""What holds for all features: scikit-learn's contract, rows, seeds, sources, refusals."""

import pickle

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler
from torch import nn
from torch.utils.data import TensorDataset

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import RandomAffine
from skcontrast.encoders import ConvNet
from skcontrast.features import (
    Features,
    Frozen,
    GraphProfile,
    MiniRocket,
    OrientedGradients,
    PartialWhitening,
    PatchDictionary,
    Raw,
    WeisfeilerLehman,
)
from skcontrast.graphs import pack_graphs
from skcontrast.kinds import Images
from tests.common import images

X = images(24, side=8)
Y = np.arange(24) % 2
GRAPHS = [nx.gnp_random_graph(4 + k % 5, 0.3 + 0.3 * (k % 2), seed=k) for k in range(24)]
PATCHES = PatchDictionary(n_patches=6, patch_size=3, random_state=0)
SERIES = np.random.default_rng(0).normal(size=(24, 2, 30))
SERIES[1::2, :, :15] += 3
KERNELS = MiniRocket(n_features=84, random_state=0)
CASES = [
    (PATCHES, X),
    (OrientedGradients(), X),
    (GraphProfile(), GRAPHS),
    (WeisfeilerLehman(2), GRAPHS),
    (KERNELS, SERIES),
]
every_case = pytest.mark.parametrize(
    "features, data", CASES, ids=["patches", "gradients", "profile", "wl", "series"]
)


class Means(Features):
    """The mean of each channel, of the user's own."""

    kind = "images"

    def learn(self, batch, rng):
        return nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten())


class OfEither(Features):
    """Of two kinds."""

    kind = ("vectors", "images")

    def learn(self, batch, rng):
        return nn.Flatten()


@every_case
def test_features_are_a_transformer(features, data):
    features = clone(features)
    found = features.fit(data).transform(data)
    assert found.shape == (24, len(features.get_feature_names_out()))
    assert found.dtype == np.float32 and np.isfinite(found).all()
    assert features.get_feature_names_out()[0] == f"{type(features).__name__.lower()}0"
    np.testing.assert_array_equal(clone(features).fit_transform(data), found)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(features)).transform(data), found)
    assert eval(repr(features)).get_params() == features.get_params()


@every_case
def test_a_row_does_not_depend_on_the_others(features, data):
    features = clone(features).fit(data)
    found = features.transform(data)
    for rows in ([7], [5, 3], list(range(20))):
        some = features.transform([data[row] for row in rows])
        np.testing.assert_allclose(some, found[rows], rtol=1e-5, atol=1e-6)


@every_case
def test_frames_have_the_names_of_features_and_keep_the_index(features, data):
    features = clone(features).set_output(transform="pandas")
    found = features.fit_transform(data)
    assert isinstance(found, pd.DataFrame)
    assert list(found.columns) == list(features.get_feature_names_out())
    if data is GRAPHS:
        index = [f"graph {k}" for k in range(24)]
        found = features.transform(pd.Series(data, index=index))
        assert list(found.index) == index


@every_case
def test_a_pipeline_with_a_classifier_is_better_than_chance(features, data):
    if data is X:  # the odd ones are darker at the top
        data = X.copy()
        data[1::2, :, :4] //= 4
    pipeline = make_pipeline(clone(features), StandardScaler(), LogisticRegression())
    assert pipeline.fit(data, Y).score(data, Y) > 0.9
    assert pipeline[:-1].get_feature_names_out()[0].endswith("0")


@every_case
def test_what_is_not_fitted_says_so(features, data):
    with pytest.raises(NotFittedError, match=f"This {type(features).__name__} instance"):
        clone(features).transform(data)
    with pytest.raises(NotFittedError):
        clone(features).get_feature_names_out()


@pytest.mark.parametrize(
    "features, data, other, expected, held, after_fit",
    [
        (PATCHES, X, GRAPHS, "images", "graphs", "X .* PatchDictionary expects images"),
        (PATCHES, X, X.reshape(24, -1), "images", "vectors", "X .* PatchDictionary was fitted on"),
        (GraphProfile(), GRAPHS, X, "graphs", "images", "X must hold graphs only"),
        (WeisfeilerLehman(), GRAPHS, X.reshape(24, -1), "graphs", "vectors", "X must hold graphs"),
    ],
    ids=["patches of graphs", "patches of vectors", "profile of images", "wl of vectors"],
)
def test_samples_of_another_kind_are_refused_by_name(
    features, data, other, expected, held, after_fit
):
    name, fitted = type(features).__name__, clone(features).fit(data)
    with pytest.raises(ValueError, match=f"{name} expects {expected}.*, but X holds {held}"):
        clone(features).fit(other)
    with pytest.raises((TypeError, ValueError), match=f"^{after_fit}"):
        fitted.transform(other)


def test_images_of_another_shape_or_with_nan_are_refused_by_name():
    features = clone(PATCHES).fit(X / 255)
    with pytest.raises(ValueError, match=r"X has samples of shape \(3, 8, 7\), but PatchDict"):
        features.transform(X[:, :, :, :7])
    bad = X / 255
    bad[3, 0, 1, 1] = np.nan
    for call in (features.transform, clone(PATCHES).fit):
        with pytest.raises(ValueError, match="contains NaN"):
            call(bad)


@pytest.mark.parametrize("bad", [None, "abc", 3, GRAPHS[0], [], X[:0]], ids=str)
def test_what_holds_no_samples_is_refused_by_name(bad):
    for features, _ in CASES:
        with pytest.raises((TypeError, ValueError), match=r"\bX\b"):
            clone(features).fit(bad)


def test_graphs_may_be_packed():
    for features in (GraphProfile(), WeisfeilerLehman()):
        expected = features.fit_transform(GRAPHS)
        np.testing.assert_array_equal(features.transform(pack_graphs(GRAPHS)), expected)
        np.testing.assert_array_equal(features.fit_transform(pack_graphs(GRAPHS)), expected)


def test_images_may_be_on_the_disk_or_in_a_dataset(tmp_path):
    expected = clone(PATCHES).fit_transform(X)
    np.save(tmp_path / "X.npy", X)
    for source in (np.load(tmp_path / "X.npy", mmap_mode="r"), TensorDataset(torch.from_numpy(X))):
        np.testing.assert_array_equal(clone(PATCHES).fit_transform(source), expected)


def test_features_of_ones_own_need_a_kind_and_learn():
    found = Means().fit_transform(X)
    assert found.shape == (24, 3)
    channels = X.mean(axis=(0, 2, 3)), (X / 255).std(axis=(0, 2, 3))
    expected = (X.mean(axis=(2, 3)) - channels[0]) / 255 / channels[1]
    np.testing.assert_allclose(found, expected, atol=1e-4)
    with pytest.raises(NotImplementedError, match="Features does not implement learn"):
        Features().fit(X)


def test_the_kind_is_a_parameter_of_generated_constructors():
    kind = Images(standardize=False)
    for features in (Means(kind=kind), Means().set_params(kind=kind), clone(Means(kind=kind))):
        assert repr(features) == "Means(kind=Images(standardize=False))"
        expected = X.mean(axis=(2, 3)) / 255
        np.testing.assert_allclose(features.fit_transform(X), expected, atol=1e-5)
    assert "kind" not in RandomProjection().get_params()  # has its own __init__
    assert clone(Frozen(ConvNet((4,)), kind=kind)).fit(X)._schema.kind is not kind
    lines = SERIES[:, 0]
    assert Raw(kind="series").fit(lines[:, None])._schema.kind.name == "series"
    assert PatchDictionary.kind == "images" and PatchDictionary().kind is None


def test_a_declared_kind_is_not_questioned():
    long = np.random.default_rng(0).normal(size=(12, 8, 30))
    with pytest.warns(UserWarning, match="looks like series"):
        clone(PATCHES).fit(long)
    clone(PATCHES).set_params(kind="images").fit(long)  # a warning is an error


@pytest.mark.parametrize(
    "features, data, message",
    [
        (PatchDictionary(kind="series"), SERIES, "PatchDictionary expects images.* holds series"),
        (Raw(kind="images"), GRAPHS, "Raw expects images.* holds graphs"),
        (Frozen(ConvNet(), kind="series"), SERIES, "Frozen expects images.* holds series"),
        (Raw(kind="image"), X, "'kind' parameter of Raw must be"),
    ],
)
def test_a_kind_that_the_class_is_not_for_is_refused(features, data, message):
    with pytest.raises(ValueError, match=message):
        features.fit(data)


def test_features_may_be_of_two_kinds():
    assert OfEither().fit_transform(X).shape == (24, 192)
    assert OfEither().fit_transform(X.reshape(24, -1)).shape == (24, 192)
    with pytest.raises(ValueError, match=r"OfEither expects .* or .*, but X holds graphs"):
        OfEither().fit(GRAPHS)


class RandomProjection(Features):
    """Draws from torch's generator."""

    kind = "images"

    def __init__(self, random_state=None):
        self.random_state = random_state

    def learn(self, batch, rng):
        return nn.Sequential(nn.Flatten(), nn.Linear(batch[0].numel(), 3))


def test_the_seed_reaches_the_generator_of_torch():
    first, second, other = (RandomProjection(seed).fit_transform(X) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, other)


def test_images_with_their_channels_last_are_refused():
    with pytest.raises(ValueError, match="looks like channels-last images"):
        PATCHES.fit(images(24, side=16).transpose(0, 2, 3, 1))


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda x: x[:1], r"shape \(2, width\), got a tensor of shape \(1, 192\)"),
        (lambda x: x[:, 0], r"got a tensor of shape \(2,\)"),
        (lambda x: x.int(), "dtype torch.int32"),
        (lambda x: x / 0, r"module of Own\.learn returns NaN or infinity"),
        (lambda x: x @ x[0, :7], "module of Own.learn failed on samples as learn gets"),
        (None, r"Own\.learn must return a torch\.nn\.Module"),
    ],
)
def test_a_module_that_gives_no_row_to_each_sample_is_refused(function, message):
    class Rows(nn.Module):
        def forward(self, x):
            return function(x.flatten(1))

    class Own(Features):
        kind = "images"

        def learn(self, batch, rng):
            return 3 if function is None else Rows()

    with pytest.raises(TypeError if function is None else ValueError, match=message):
        Own().fit(X)


@pytest.mark.parametrize(
    "features, data, name",
    [
        (PatchDictionary(threshold=-0.1), X, "threshold"),
        (PatchDictionary(random_state="a"), X, "random_state"),
        (PartialWhitening(power=1.5), np.eye(3), "power"),
    ],
    ids=lambda value: repr(value)[:40] if isinstance(value, BaseEstimator) else "",
)
def test_a_parameter_outside_its_range_is_named(features, data, name):
    with pytest.raises(ValueError, match=f"'{name}' parameter of {type(features).__name__}"):
        features.fit(data)


def test_raw_features_of_graphs_and_of_unequal_series_are_refused():
    with pytest.raises(TypeError, match="not graphs or samples of several sizes"):
        Raw().fit([nx.path_graph(3), nx.path_graph(4)])
    with pytest.raises(TypeError, match="arrays of one shape"):
        Raw().fit([np.arange(3.0), np.arange(4.0)])


EMBEDDER = ContrastiveEmbedder(ConvNet((4,)), max_epochs=2, random_state=0)


@pytest.mark.parametrize("is_scaled", [False, True])
def test_in_a_union_after_an_augmentation_the_embedder_gets_views_and_features_get_samples(
    is_scaled,
):
    blocks = [clone(EMBEDDER), clone(PATCHES)]
    if is_scaled:
        blocks = [make_pipeline(block, StandardScaler()) for block in blocks]
    embedder, patches = clone(EMBEDDER), clone(PATCHES)
    augmentation = RandomAffine(rotation=90)
    expected = [embedder.set_params(augmentation=augmentation), patches]
    expected = [block.fit_transform(X) for block in expected]
    if is_scaled:
        expected = [StandardScaler().fit_transform(block) for block in expected]
    pipe = make_pipeline(clone(augmentation), make_union(*blocks))
    np.testing.assert_allclose(pipe.fit_transform(X), np.hstack(expected), atol=1e-5)
    np.testing.assert_allclose(pipe.transform(X[:3]), np.hstack(expected)[:3], atol=1e-5)


@pytest.mark.parametrize("is_scaled", [False, True])
def test_groups_reach_the_embedder_of_a_union_by_metadata_routing(is_scaled):
    groups = np.repeat(np.arange(12), 2)
    expected = clone(EMBEDDER).set_params(same_group="positive").fit(X, groups=groups)
    with sklearn.config_context(enable_metadata_routing=True):
        embedder = clone(EMBEDDER).set_params(same_group="positive").set_fit_request(groups=True)
        block = make_pipeline(embedder, FunctionTransformer()) if is_scaled else embedder
        pipe = make_pipeline(make_union(block, clone(PATCHES)), LogisticRegression())
        H = pipe.fit(X, Y, groups=groups)[0].transform(X)
    np.testing.assert_array_equal(H[:, :-24], expected.transform(X))
    assert not np.allclose(H[:, :-24], clone(EMBEDDER).fit_transform(X))
