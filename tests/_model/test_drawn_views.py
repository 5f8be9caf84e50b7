"""Views in the units of X: of embedders before and after a fit, of every kind of data."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.pipeline import make_pipeline
from torch.utils.data import TensorDataset

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import (
    AttributeMask,
    Augmentation,
    GaussianNoise,
    MarginalCorruption,
    RandomAffine,
    Unflatten,
)
from skcontrast.frameworks import CMC
from skcontrast.graphs import PackedGraphs
from skcontrast.kinds import Series
from tests.common import IMAGES, X_DIGITS, Items, Numbers, images, small, small_images, vectors

FAR = vectors() * [1, 1e9, 1e-9, 1, 1] + [1e8, 0, 0, 1e-5, 0]


def named_graphs():
    """Return cycles whose nodes have two attributes and a category."""
    graphs = [nx.cycle_graph(5 + k % 4) for k in range(12)]
    for graph in graphs:
        for node in graph:
            graph.nodes[node].update(label="ab"[node % 2], x=[float(node), 1.0])
    return graphs


@pytest.mark.parametrize(
    "X",
    [
        images(),
        images(channels=1)[:, 0],
        IMAGES,
        IMAGES.astype("float32") * 3 - 7,
        vectors(),
        vectors().astype("float32"),
        FAR,
    ],
    ids=["uint8", "grey uint8", "float64", "float32", "vectors", "float32 vectors", "far vectors"],
)
def test_without_augmentation_views_are_the_samples_in_their_own_units_shape_and_dtype(X):
    for embedder in (small(augmentation=[]), small(augmentation=[], max_epochs=1).fit(X)):
        for view in embedder.views(X):
            assert view.dtype == X.dtype and view.shape == X.shape
            np.testing.assert_allclose(view, X, rtol=1e-5, atol=1e-5 * X.std(axis=0).max())


def test_views_of_images_stay_within_their_intensities():
    X = IMAGES * 100 - 300
    first, second = small(augmentation=RandomAffine()).views(X, random_state=0)
    assert not np.array_equal(first, second)
    for view in (first, second):
        assert view.min() >= X.min() - 1e-3 and view.max() <= X.max() + 1e-3


def test_corrupted_features_come_from_other_rows():
    (view,) = small(augmentation=MarginalCorruption(rate=0.5)).views(FAR, 1, random_state=0)
    is_changed = ~np.isclose(view, FAR, rtol=1e-6, atol=0)
    assert 0.3 < is_changed.mean() < 0.7
    for column in range(FAR.shape[1]):
        gaps = np.abs(view[:, column, None] - FAR[:, column]).min(axis=1)
        assert gaps.max() <= 1e-6 * np.abs(FAR[:, column]).max()


def test_views_before_a_fit_are_those_after_it():
    X = vectors()
    embedder = small(augmentation=GaussianNoise(0.3))
    before = embedder.views(X, random_state=3)
    assert not hasattr(embedder, "encoder_")
    np.testing.assert_array_equal(before, embedder.fit(X).views(X, random_state=3))


def test_the_seed_decides_and_more_views_start_with_the_same():
    embedder, X = small(), vectors()
    np.testing.assert_array_equal(
        embedder.views(X, random_state=0), embedder.views(X, 4, random_state=0)[:2]
    )
    assert not np.array_equal(embedder.views(X, 1), embedder.views(X, 1))
    before = torch.get_rng_state()
    embedder.views(X)
    assert torch.get_rng_state().equal(before)


@pytest.mark.parametrize("rows", [[3, 5], slice(3, 7, 2), 3, np.arange(60) < 4, range(2)])
def test_rows_choose_samples_and_all_of_x_decides_about_the_scale(rows):
    X = vectors()
    (view,) = small(augmentation=[]).views(X, 1, rows=rows)
    np.testing.assert_allclose(view, X[np.atleast_1d(np.arange(60)[rows])], rtol=1e-6)
    noise = small(augmentation=GaussianNoise(1.0))
    (view,) = noise.views(X * 1000, 1, rows=[0], random_state=0)
    assert np.abs(view - X[:1] * 1000).max() > 100


def test_views_of_augmentation_steps_are_those_of_the_steps():
    lazy = make_pipeline(Unflatten((1, 8, 8)), RandomAffine()).fit_transform(X_DIGITS)
    expected = small(augmentation=RandomAffine()).views(IMAGES, random_state=0)
    np.testing.assert_array_equal(small().views(lazy, random_state=0), expected)
    fitted = small_images(max_epochs=1).fit(lazy)
    np.testing.assert_array_equal(fitted.views(lazy, random_state=0), expected)


def test_tables_and_pairs_and_single_samples_have_views():
    table = pd.DataFrame(vectors(), columns=list("abcde"))
    assert small().views(table)[0].shape == (60, 5)
    pair = vectors(d=3), vectors(d=4, seed=1)
    drawn = small(framework=CMC()).views(pair)[0]
    assert [part.shape for part in drawn.modalities] == [(60, 3), (60, 4)]
    assert small().fit(table).views(table[:1])[0].shape == (1, 5)


def test_graphs_keep_attributes_and_categories_and_a_masked_label_is_none():
    graphs = named_graphs()
    embedder = small(encoder=None, augmentation=[])
    for one in (embedder, embedder.fit(graphs)):
        (view,) = one.views(graphs, 1)
        assert isinstance(view, PackedGraphs) and len(view) == 12
        expected = [[float(node), 1.0] for graph in graphs for node in graph]
        np.testing.assert_allclose(view.attributes, expected, atol=1e-5)
        categories = [view.categories[k] for k in view.labels]
        assert categories == ["ab"[node % 2] for graph in graphs for node in graph]
    masked = small(encoder=None, augmentation=AttributeMask(rate=0.5)).views(graphs, 1)[0]
    assert None in [masked.categories[k] for k in masked.labels]


def test_graphs_without_attributes_have_views_of_their_structure():
    graphs = [nx.cycle_graph(5 + k % 4) for k in range(12)]
    first, second = small(encoder=None).views(graphs, rows=[0, 1], random_state=0)
    assert first.attributes is None and first.labels is None
    assert 0 < first.sizes.sum() < 11 and len(second) == 2


class OwnScaler:
    """A scaler without a way back."""

    def fit(self, X):
        return self

    def to_tensor(self, X, device):
        return torch.from_numpy(X).float().to(device) + 1


class Shifted(Numbers):
    def scaler(self):
        return OwnScaler()


@pytest.mark.parametrize(("kind", "shift"), [(Numbers(), 0), (Shifted(), 1)])
def test_a_kind_of_ones_own_has_its_batches_as_views(kind, shift):
    X = np.arange(24).reshape(8, 3)
    encoder = torch.nn.Sequential(torch.nn.Linear(3, 4))
    embedder = small(kind=kind, encoder=encoder, augmentation=[])
    if shift == 0:
        X = X.astype("float32")
    np.testing.assert_array_equal(embedder.views(X, 1)[0], X + shift)


@pytest.mark.parametrize("n_views", [0, 1.5, True, "2"])
def test_a_number_of_views_that_is_none_is_refused(n_views):
    with pytest.raises(ValueError, match="'n_views' parameter of views must be an int in "):
        small().views(vectors(), n_views)


def test_no_rows_are_refused():
    with pytest.raises(ValueError, match="'rows' parameter of views must choose at least one"):
        small().views(vectors(), rows=[])


class Darkest(Augmentation):
    """Paints everything in the darkest intensity of the training samples."""

    kind = "images"

    def learn(self, X):
        self.darkest_ = int(X.min())

    def augment(self, batch, generator=None):
        return torch.full(batch.shape, self.darkest_ / 255)


def test_an_augmentation_that_learns_sees_all_images_of_a_dataset():
    X = images().clip(50)
    X[10, 0, 0, 0] = 7
    dataset = TensorDataset(torch.from_numpy(X))
    (view,) = small_images(augmentation=Darkest()).views(dataset, 1, rows=[3])
    assert np.all(view == 7)


@pytest.mark.parametrize("standardize", [True, False])
def test_views_of_a_dataset_of_series_of_different_lengths(standardize, monkeypatch):
    lengths = range(200, 240)
    series = [np.random.default_rng(n).normal(size=(2, n)).astype(np.float32) for n in lengths]
    monkeypatch.setattr(Series, "rows_per_call", lambda self, X: 15)  # in three parts
    embedder = ContrastiveEmbedder(kind=Series(standardize), augmentation=[], random_state=0)
    for views in embedder.views(Items([torch.from_numpy(x) for x in series])):
        for one, other in zip(views, series, strict=True):
            np.testing.assert_allclose(one[:, : other.shape[1]], other, rtol=1e-5, atol=1e-5)
