"""ViewWhitening: laws of its covariance, the transformers that it takes, and files."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import skcontrast

# private: sizes of the parts
from skcontrast import ContrastiveEmbedder, ViewWhitening, _whitening
from skcontrast.augmentation import (
    FunctionAugmentation,
    GaussianNoise,
    MarginalCorruption,
    RandomAffine,
    TimeMask,
)
from skcontrast.features import GraphProfile, MiniRocket, OrientedGradients, PatchDictionary, Raw
from tests.common import check_sklearn_contract, reloaded

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(60, 5)) @ RNG.normal(size=(5, 5))
SERIES = RNG.normal(size=(30, 2, 40)).cumsum(axis=2)
IMAGES = RNG.uniform(size=(30, 16, 16))
MIXING = RNG.normal(size=(5, 5)) / 4


def noisy(x, rng):
    """Add noise, of one covariance, to each sample."""
    return x + rng.normal(size=x.shape) @ MIXING[: x.shape[1], : x.shape[1]]


NOISE = FunctionAugmentation(noisy, kind="vectors", backend="numpy")


class Kept(FunctionTransformer):
    """Returns X, and keeps a copy of all that it has been given."""

    def __init__(self):
        super().__init__(np.array)

    def fit(self, X, y=None):
        self.given = []
        return super().fit(X, y)

    def transform(self, X):
        self.given.append(np.array(X))
        return super().transform(X)


def with_views(shrinkage, X=VECTORS):
    """Return a fitted whitening and the standardised views that it has drawn, (V, n, d)."""
    model = ViewWhitening(Kept(), NOISE, shrinkage=shrinkage, random_state=0).fit(X)
    return model, np.stack(
        [model.scaler_.transform(view) for view in model.transformer_.given[1:]]
    )


def within(views):
    """Return the mean over samples of the covariance between their views."""
    return np.mean([np.cov(sample, rowvar=False) for sample in views.swapaxes(0, 1)], axis=0)


@pytest.mark.parametrize(
    "estimator", [ViewWhitening(Raw()), ViewWhitening(StandardScaler(), n_views=2)], ids=repr
)
def test_estimator_checks(estimator):
    check_sklearn_contract(estimator)


def shrunk_root(W, shrinkage):
    """Return the inverse root of a shrunk covariance."""
    d = len(W)
    e, V = np.linalg.eigh((1 - shrinkage) * W + shrinkage * np.trace(W) / d * np.eye(d))
    return (V * e**-0.5) @ V.T


@pytest.mark.parametrize("shrinkage", [0.1, 0.75, 1.0])
@pytest.mark.parametrize("n_samples", [3, 60])  # of 40 features: fewer views than these, and more
def test_the_map_is_the_inverse_root_of_the_shrunk_covariance(shrinkage, n_samples):
    X = np.random.default_rng(1).normal(size=(n_samples, 40))
    model = ViewWhitening(Kept(), MarginalCorruption(), shrinkage=shrinkage, random_state=0).fit(X)
    views = np.stack([model.scaler_.transform(view) for view in model.transformer_.given[1:]])
    expected = model.scaler_.transform(X) @ shrunk_root(within(views), shrinkage)
    np.testing.assert_allclose(model.transform(X), expected, rtol=1e-6, atol=1e-7)


def test_components_beyond_the_first_have_their_mean_variance(monkeypatch):
    monkeypatch.setattr(_whitening, "_MOST_COMPONENTS", 3)
    model, views = with_views(0.25)
    e, V = np.linalg.eigh(within(views))
    e[:2] = e[:2].mean()
    expected = model.scaler_.transform(VECTORS) @ shrunk_root((V * e) @ V.T, 0.25)
    np.testing.assert_allclose(model.transform(VECTORS), expected, rtol=1e-6)
    assert model.components_.shape == (3, 5)


def test_units_and_order_of_features_do_not_matter():
    model, _ = with_views(0.5)
    factors, order = np.array([1e-3, 1, 7, 1e4, 2]), [3, 1, 0, 4, 2]
    other = make_pipeline(FunctionTransformer(lambda X: (X * factors)[:, order]))
    other = ViewWhitening(other, NOISE, shrinkage=0.5, random_state=0).fit(VECTORS)
    expected = model.transform(VECTORS)[:, order]
    np.testing.assert_allclose(other.transform(VECTORS), expected, rtol=1e-7)


def test_a_seed_decides_the_views():
    first, second, third = (
        ViewWhitening(Raw(), NOISE, random_state=seed).fit_transform(VECTORS) for seed in (0, 0, 1)
    )
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, third)


def test_of_many_numbers_some_samples_are_enough(monkeypatch):
    monkeypatch.setattr(_whitening, "_MOST_NUMBERS", 10 * 3 * 5)
    model, views = with_views(0.5)
    assert views.shape == (3, 10, 5)
    assert model.transform(VECTORS).shape == VECTORS.shape


@pytest.mark.parametrize(
    "transformer, X, width",
    [
        (MiniRocket(random_state=0), SERIES, 2016),
        (PatchDictionary(16, random_state=0), IMAGES, 64),
        (GraphProfile(), [nx.gnp_random_graph(9, 0.4, seed=k) for k in range(20)], 39),
        (make_union(OrientedGradients(), PatchDictionary(16, random_state=0)), IMAGES, 208),
        (make_pipeline(StandardScaler(), PCA(3)), VECTORS, 3),
    ],
)
def test_every_kind_has_default_views(transformer, X, width):
    model = ViewWhitening(transformer, random_state=0)
    Z = model.fit_transform(X)
    assert Z.shape == (len(X), width)
    np.testing.assert_allclose(model.transform(X[:3]), Z[:3], rtol=1e-4, atol=1e-5)
    assert list(model.get_feature_names_out())[-1] == f"viewwhitening{width - 1}"


def test_a_column_of_series_of_pandas_is_a_list_of_series():
    X = [x[:, : 20 + k] for k, x in enumerate(SERIES[:20])]
    model = ViewWhitening(MiniRocket(random_state=0), random_state=0)
    np.testing.assert_array_equal(model.fit_transform(pd.Series(X)), model.fit_transform(X))


def test_views_have_the_shape_of_x():
    """TimeMask reads rows as series of one channel, other transformers read them as vectors."""
    X = SERIES[:, 0]
    for transformer in (Raw(), StandardScaler()):
        assert ViewWhitening(transformer, TimeMask()).fit_transform(X).shape == X.shape


def test_an_embedder_without_views_has_the_default_ones():
    embedder = ContrastiveEmbedder(augmentation=[], max_epochs=1, random_state=0)
    Z = ViewWhitening(embedder, random_state=0).fit_transform(VECTORS)
    assert np.isfinite(Z).all()


def test_an_embedder_draws_its_own_views_and_may_be_fitted_before():
    embedder = ContrastiveEmbedder(augmentation=TimeMask(0.5), max_epochs=1, random_state=0)
    frozen = FrozenEstimator(clone(embedder).fit(SERIES))
    expected = ViewWhitening(embedder, random_state=0).fit_transform(SERIES)
    np.testing.assert_array_equal(
        ViewWhitening(frozen, random_state=0).fit_transform(SERIES), expected
    )
    given = ViewWhitening(frozen, TimeMask(0.5), random_state=0).fit_transform(SERIES)
    np.testing.assert_array_equal(given, expected)
    other = ViewWhitening(frozen, GaussianNoise(), random_state=0).fit_transform(SERIES)
    assert not np.allclose(other, expected)


def test_views_that_come_with_x_are_taken():
    model = ViewWhitening(PatchDictionary(16, random_state=0), random_state=0)
    piped = make_pipeline(RandomAffine(), model).fit_transform(IMAGES)
    given = clone(model).set_params(augmentation=RandomAffine()).fit_transform(IMAGES)
    np.testing.assert_array_equal(piped, given)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_transformers_get_views_of_tables_with_their_names(library):
    frames = pytest.importorskip(library)
    X = frames.DataFrame(dict(zip("abcde", VECTORS.T, strict=True)))
    Z = ViewWhitening(Raw(), NOISE, random_state=0).fit(X).transform(X)
    expected = ViewWhitening(Raw(), NOISE, random_state=0).fit(VECTORS).transform(VECTORS)
    np.testing.assert_allclose(Z, expected, rtol=1e-5, atol=1e-6)


def test_tables_keep_their_names_and_index():
    X = pd.DataFrame(VECTORS, columns=list("abcde"), index=range(100, 160))
    model = ViewWhitening(StandardScaler(), NOISE, random_state=0).set_output(transform="pandas")
    Z = model.fit_transform(X)
    assert list(Z.index) == list(X.index) and list(model.feature_names_in_) == list("abcde")
    np.testing.assert_allclose(Z, clone(model).fit(VECTORS).transform(VECTORS), rtol=1e-6)


@pytest.mark.parametrize("whitens", [True, False])
def test_a_file_keeps_it(whitens, tmp_path):
    model = PatchDictionary(16, random_state=0)
    model = ViewWhitening(model, RandomAffine(), random_state=0) if whitens else model
    model.set_output(transform="pandas").fit(IMAGES)
    loaded = reloaded(model, tmp_path)
    pd.testing.assert_frame_equal(loaded.transform(IMAGES), model.transform(IMAGES))
    assert repr(loaded) == repr(model)


@pytest.mark.parametrize("is_frozen", [True, False])
def test_a_file_keeps_a_whitened_embedder(is_frozen, tmp_path):
    embedder = ContrastiveEmbedder(max_epochs=1, random_state=0)
    model = ViewWhitening(FrozenEstimator(embedder.fit(VECTORS)) if is_frozen else embedder)
    skcontrast.save(model.fit(VECTORS), tmp_path / "model.safetensors")
    loaded = skcontrast.load(tmp_path / "model.safetensors")
    np.testing.assert_array_equal(loaded.transform(VECTORS), model.transform(VECTORS))
    assert isinstance(loaded.transformer.estimator, ContrastiveEmbedder)


def test_files_of_others_are_refused(tmp_path):
    class Custom(Raw):
        pass

    for model in (Custom(), ViewWhitening(Custom())):
        with pytest.raises(TypeError, match="save writes features of skcontrast"):
            skcontrast.save(model.fit(VECTORS), tmp_path / "model.safetensors")
    with pytest.raises(TypeError, match="ViewWhitening of skcontrast, got StandardScaler"):
        skcontrast.save(ViewWhitening(StandardScaler()).fit(VECTORS), tmp_path / "a")
    with pytest.raises(NotFittedError):
        skcontrast.save(Raw(), tmp_path / "model.safetensors")


@pytest.mark.parametrize(
    "name, bad", [("shrinkage", 0), ("shrinkage", 1.5), ("n_views", 1), ("random_state", "a")]
)
def test_a_parameter_outside_its_range_is_named(name, bad):
    with pytest.raises(ValueError, match=f"'{name}' parameter of ViewWhitening"):
        ViewWhitening(Raw(), **{name: bad}).fit(VECTORS)


@pytest.mark.parametrize("bad", [LogisticRegression(), "raw", None])
def test_what_is_no_transformer_is_refused(bad):
    match = "'transformer' parameter of ViewWhitening must be an object implementing 'fit' and"
    with pytest.raises(ValueError, match=match):
        ViewWhitening(bad).fit(VECTORS)
    with pytest.raises(TypeError, match="instead of a class"):
        ViewWhitening(Raw).fit(VECTORS)


def test_views_that_do_not_differ_are_refused():
    with pytest.raises(ValueError, match=r"augmentation=\[\]: pass an augmentation that changes"):
        ViewWhitening(Raw(), []).fit(VECTORS)
    with pytest.raises(NotFittedError):
        ViewWhitening(Raw()).transform(VECTORS)


def test_a_column_of_paths_is_images(tmp_path):
    pixels = pytest.importorskip("PIL.Image")
    paths = [str(tmp_path / f"{i}.png") for i in range(20)]
    for path, image in zip(paths, IMAGES, strict=False):
        pixels.fromarray((255 * image).astype(np.uint8)).save(path)
    table = pd.DataFrame({"file": paths})
    whitening = ViewWhitening(PatchDictionary(8, random_state=0), random_state=0)
    Z = whitening.fit(table).transform(table)
    np.testing.assert_array_equal(Z, whitening.fit(paths).transform(paths))


def test_views_that_are_brighter_than_the_samples_do_not_warn():
    X = np.round(16 * IMAGES)  # a warning is an error here
    whitening = ViewWhitening(PatchDictionary(8, random_state=0), GaussianNoise(0.5))
    whitening.fit(X)
    with pytest.warns(UserWarning, match="X has values from"):
        whitening.transform(16 * X)
