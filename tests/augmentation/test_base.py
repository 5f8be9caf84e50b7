"""What holds for every augmentation: the contract of scikit-learn, types, randomness."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline

from skcontrast import ContrastiveEmbedder
from skcontrast import augmentation as augmentations

# private: batches without an augmentation
from skcontrast.augmentation._base import generator_for
from tests.augmentation.common import BUILT_IN, IMAGE_AUGMENTATIONS, VECTOR_AUGMENTATIONS, seeded
from tests.common import check_sklearn_contract, small

AUGMENTATIONS = VECTOR_AUGMENTATIONS + BUILT_IN["images"]
BY_NAME = {"ids": lambda augmentation: type(augmentation).__name__}


@pytest.mark.filterwarnings("ignore::skcontrast.augmentation.AugmentationDropped")
@pytest.mark.parametrize(
    "estimator",
    [
        *VECTOR_AUGMENTATIONS,
        *(pytest.param(one, marks=pytest.mark.slow) for one in BUILT_IN["images"][1:]),
        BUILT_IN["images"][0],
        augmentations.Unflatten((1, 1, -1)),
        pytest.param(augmentations.Unflatten((-1, 1, 1)), marks=pytest.mark.slow),
    ],
    ids=repr,
)
def test_scikit_learn_contract(estimator):
    check_sklearn_contract(estimator)


# What fit_transform and transform return


@pytest.mark.parametrize("augmentation", AUGMENTATIONS, **BY_NAME)
def test_fit_transform_returns_views_and_transform_returns_the_same_object(augmentation, X):
    augmentation = clone(augmentation)
    views = augmentation.fit_transform(X)
    assert isinstance(views, augmentations.Views)
    assert views.base is X
    assert views.chain == (augmentation,)
    assert augmentation.transform(X) is X
    assert augmentation.transform(views) is X


def test_a_list_becomes_an_array_and_a_torch_tensor_too(X):
    for given in (X.tolist(), torch.from_numpy(X)):
        views = augmentations.GaussianNoise().fit_transform(given)
        assert isinstance(views.base, np.ndarray)
        np.testing.assert_array_equal(views.base, X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.int64])
def test_the_dtype_of_numeric_arrays_survives(dtype):
    X = np.arange(12).reshape(4, 3).astype(dtype)
    augmentation = augmentations.GaussianNoise()
    assert augmentation.fit_transform(X).dtype == dtype
    assert augmentation.transform(X).dtype == dtype


def test_numbers_as_objects_become_floats(X):
    assert augmentations.GaussianNoise().fit_transform(X.astype(object)).dtype == np.float64


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_a_dataframe_stays_a_dataframe(frame):
    table = frame({"width": [1.0, 2.0, 3.0], "height": [4.0, 5.0, 6.0]})
    augmentation = augmentations.GaussianNoise()
    views = augmentation.fit_transform(table)
    assert views.base is table
    assert augmentation.transform(table) is table
    assert (views.shape, views.ndim, views.dtype) == ((3, 2), 2, np.dtype(float))
    assert list(augmentation.get_feature_names_out()) == ["width", "height"]
    for rows in ([2, 0], slice(1, 3), np.array([True, False, True])):
        assert isinstance(views[rows].base, frame)
        np.testing.assert_array_equal(views[rows].base, np.asarray(table)[rows])


def test_images_of_any_kind_are_accepted():
    for shape in ((3, 8, 8), (3, 1, 8, 8), (3, 3, 8, 8)):
        X = np.zeros(shape, dtype=np.uint8)
        augmentation = augmentations.RandomFlip()
        assert augmentation.fit_transform(X).base is X
        assert augmentation.n_features_in_ == np.prod(shape[1:])


@pytest.mark.parametrize("augmentation", VECTOR_AUGMENTATIONS, **BY_NAME)
def test_augment_and_transform_before_fit_raise(augmentation, X):
    for call in (clone(augmentation).augment, clone(augmentation).transform):
        with pytest.raises(NotFittedError):
            call(torch.zeros(2, 3))


def test_transform_refuses_a_different_shape(X):
    with pytest.raises(ValueError, match="expecting 4 features"):
        augmentations.GaussianNoise().fit(X).transform(X[:, :3])
    with pytest.raises(ValueError, match=r"\(1, 6, 6\).*\(1, 8, 8\)"):
        augmentations.RandomFlip().fit(np.zeros((2, 1, 8, 8))).transform(np.zeros((2, 1, 6, 6)))


def test_fit_refuses_numbers_that_are_not_finite(X):
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        augmentations.GaussianNoise().fit(X)


@pytest.mark.parametrize("augmentation", AUGMENTATIONS, **BY_NAME)
def test_the_wrong_kind_of_samples_is_refused_by_name(augmentation):
    name = type(augmentation).__name__
    if augmentation.kind == "images":
        with pytest.raises(ValueError, match=rf"{name} expects images.*\(n, 64\).* put Unflatten"):
            augmentations.compose([augmentation], (64,))
        with pytest.raises(ValueError, match=f"{name} expects images"):
            augmentation.augment(torch.zeros(2, 64))
    if augmentation.kind == "vectors":
        with pytest.raises(ValueError, match=rf"{name} expects vectors.*\(n, 8, 8\)"):
            augmentations.compose([augmentation], (8, 8))


def test_a_new_augmentation_needs_only_augment(X):
    class Negative(augmentations.Augmentation):
        def augment(self, batch, generator=None):
            return -batch

    views = Negative().fit_transform(augmentations.GaussianNoise(scale=0.0).fit_transform(X))
    batch = torch.from_numpy(X)
    assert augmentations.compose(views.chain, (4,))(batch).equal(-batch)


# Randomness: the same rules for every augmentation


def prepared_cases():
    table = np.random.default_rng(1).normal(size=(50, 6))
    images = np.random.default_rng(2).uniform(size=(50, 3, 16, 16)).astype(np.float32)
    cases = [(a, table) for a in VECTOR_AUGMENTATIONS] + [(a, images) for a in IMAGE_AUGMENTATIONS]
    return [
        pytest.param(clone(a).fit(X), torch.from_numpy(X), id=f"{type(a).__name__}-{X.ndim}d")
        for a, X in cases
    ]


@pytest.mark.parametrize(("augmentation", "batch"), prepared_cases())
def test_shape_and_dtype_stay_and_each_call_draws_a_fresh_view(augmentation, batch):
    for dtype in (torch.float32, torch.float64):
        given = batch.to(dtype)
        before = given.clone()
        views = augmentation.augment(given, torch.Generator().manual_seed(0))
        assert (views.shape, views.dtype) == (given.shape, dtype)
        assert given.equal(before)
    assert not augmentation.augment(batch).equal(augmentation.augment(batch))


class Learns(augmentations.GaussianNoise):
    """Overrides fit, calls the base class's, and learns something more."""

    def fit(self, X, y=None):
        super().fit(X)
        samples = X.base if isinstance(X, augmentations.Views) else X
        self.largest_ = float(np.abs(samples).max())
        return self


def test_an_augmentation_may_override_fit(X):
    assert Learns().fit(X).largest_ == np.abs(X).max()
    assert Learns().fit_transform(X).chain[0].largest_ == np.abs(X).max()
    chained = Learns().fit_transform(augmentations.GaussianNoise().fit_transform(X))
    assert len(chained.chain) == 2 and chained.chain[1].largest_ == np.abs(X).max()
    embedder = ContrastiveEmbedder(augmentation=Learns(), max_epochs=1, random_state=0).fit(X)
    assert embedder.augmentation_[0].largest_ == np.abs(X).max()
    pipe = make_pipeline(Learns(), ContrastiveEmbedder(max_epochs=1, random_state=0))
    assert pipe.fit(X)[0].largest_ == np.abs(X).max()


def test_an_augmentation_with_a_fit_of_its_own_is_fitted_by_it():
    class Centred(augmentations.Augmentation):
        def fit(self, X, y=None):
            self.mean_ = X.mean(0)
            return self

        def augment(self, batch, generator=None):
            return batch - torch.from_numpy(self.mean_).float()

    X = np.random.default_rng(0).normal(2, 1, size=(30, 4))
    embedder = ContrastiveEmbedder(
        augmentation=Centred(), max_epochs=1, random_state=0, device="cpu"
    )
    (augmentation,) = embedder.fit(X).augmentation_
    np.testing.assert_allclose(augmentation.mean_, X.mean(0))


class Returns(augmentations.Augmentation):
    """An augmentation that makes a mistake."""

    def __init__(self, what=None):
        self.what = what

    def augment(self, batch, generator=None):
        return self.what(batch)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (lambda x: x[..., 1:], r"must return a tensor of shape \(20, 4\), got shape \(20, 3\)"),
        (lambda x: x[1:], r"must return a tensor of shape \(20, 4\), got shape \(19, 4\)"),
        (lambda x: x / 0, "hold NaN or infinity"),
        (lambda x: x.numpy(), r"tensor of shape \(20, 4\), got ndarray"),
        (lambda x: None, "got NoneType"),
        (lambda x: x.long(), "must return torch.float32, got torch.int64"),
    ],
)
def test_what_an_augmentation_of_your_own_returns_is_checked_by_name(what, message, X):
    with pytest.raises((TypeError, ValueError), match=f"Returns.augment .*{message}"):
        small(augmentation=Returns(what)).fit(X)
    with pytest.raises((TypeError, ValueError), match=f"Returns.augment .*{message}"):
        make_pipeline(Returns(what), small()).fit(X)


def test_views_get_the_precision_of_the_batch(X):
    outputs = [
        small(augmentation=Returns(what)).fit_transform(X)
        for what in (lambda x: 2 * x, lambda x: 2 * x.double())
    ]
    np.testing.assert_array_equal(*outputs)


def test_a_generator_is_passed_on_and_a_new_one_is_unpredictable():
    generator, batch = seeded(), torch.zeros(3)
    assert generator_for(batch, generator) is generator
    draws = [torch.rand(4, generator=generator_for(batch, None)) for _ in range(2)]
    assert not draws[0].equal(draws[1])
