from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skcontrast.augmentation import (
    Augmentation,
    AugmentationDropped,
    ColorJitter,
    FeatureDropout,
    GaussianBlur,
    GaussianNoise,
    MarginalCorruption,
    RandomAffine,
    RandomFlip,
    RandomGrayscale,
    RandomResizedCrop,
    SimCLRAugmentation,
    Unflatten,
    Views,
    compose,
)

VECTOR_AUGMENTATIONS = [FeatureDropout(), GaussianNoise(), MarginalCorruption()]
IMAGE_AUGMENTATIONS = [
    ColorJitter(),
    GaussianBlur(),
    GaussianNoise(),
    RandomAffine(),
    RandomFlip(),
    RandomGrayscale(),
    RandomResizedCrop(),
    SimCLRAugmentation(blur=True),
]
AUGMENTATIONS = VECTOR_AUGMENTATIONS + [a for a in IMAGE_AUGMENTATIONS if a.kind == "images"]
BY_NAME = {"ids": lambda augmentation: type(augmentation).__name__}


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(20, 4))


class Recorder(BaseEstimator):
    """The last step of a pipeline: remembers what it was fitted on."""

    def fit(self, X, y=None):
        self.seen_ = X
        return self


@pytest.mark.filterwarnings("ignore::skcontrast.augmentation.AugmentationDropped")
@parametrize_with_checks([*AUGMENTATIONS, Unflatten((1, 1, -1)), Unflatten((-1, 1, 1))])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# What fit_transform and transform return


@pytest.mark.parametrize("augmentation", AUGMENTATIONS, **BY_NAME)
def test_fit_transform_returns_views_and_transform_returns_the_same_object(augmentation, X):
    augmentation = clone(augmentation)
    views = augmentation.fit_transform(X)
    assert isinstance(views, Views)
    assert views.base is X
    assert views.chain == (augmentation,)
    assert augmentation.transform(X) is X
    assert augmentation.transform(views) is X


def test_a_list_becomes_an_array_and_a_torch_tensor_too(X):
    for given in (X.tolist(), torch.from_numpy(X)):
        views = GaussianNoise().fit_transform(given)
        assert isinstance(views.base, np.ndarray)
        np.testing.assert_array_equal(views.base, X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8, np.int64])
def test_the_dtype_of_numeric_arrays_survives(dtype):
    X = np.arange(12).reshape(4, 3).astype(dtype)
    augmentation = GaussianNoise()
    assert augmentation.fit_transform(X).dtype == dtype
    assert augmentation.transform(X).dtype == dtype


def test_numbers_as_objects_become_floats(X):
    assert GaussianNoise().fit_transform(X.astype(object)).dtype == np.float64


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame], ids=["pandas", "polars"])
def test_a_dataframe_stays_a_dataframe(frame):
    table = frame({"width": [1.0, 2.0, 3.0], "height": [4.0, 5.0, 6.0]})
    augmentation = GaussianNoise()
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
        augmentation = RandomFlip()
        assert augmentation.fit_transform(X).base is X
        assert augmentation.n_features_in_ == np.prod(shape[1:])


def test_set_output_changes_nothing(X):
    augmentation = GaussianNoise()
    assert augmentation.set_output(transform="pandas") is augmentation
    assert augmentation.fit(X).transform(X) is X
    assert isinstance(augmentation.fit_transform(X), Views)


def test_transform_before_fit_raises(X):
    with pytest.raises(NotFittedError):
        GaussianNoise().transform(X)


@pytest.mark.parametrize("augmentation", VECTOR_AUGMENTATIONS, **BY_NAME)
def test_augment_before_fit_raises(augmentation):
    with pytest.raises(NotFittedError):
        clone(augmentation).augment(torch.zeros(2, 3))


def test_transform_refuses_another_shape(X):
    with pytest.raises(ValueError, match="expecting 4 features"):
        GaussianNoise().fit(X).transform(X[:, :3])
    with pytest.raises(ValueError, match=r"\(1, 6, 6\).*\(1, 8, 8\)"):
        RandomFlip().fit(np.zeros((2, 1, 8, 8))).transform(np.zeros((2, 1, 6, 6)))


def test_fit_refuses_what_is_not_finite(X):
    X[3, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        GaussianNoise().fit(X)


# Views


def test_augmentations_in_a_pipeline_form_one_chain(X):
    pipe = make_pipeline(StandardScaler(), GaussianNoise(), FeatureDropout(), Recorder()).fit(X)
    views = pipe[-1].seen_
    assert views.chain == (pipe[1], pipe[2])
    np.testing.assert_array_equal(views.base, pipe[0].transform(X))
    np.testing.assert_array_equal(pipe[:-1].transform(X), views.base)


def test_a_later_augmentation_is_fitted_on_the_base(X):
    views = GaussianNoise().fit_transform(X)
    np.testing.assert_array_equal(MarginalCorruption().fit(views).marginals_, X)


def test_views_look_like_their_base(X):
    views = GaussianNoise().fit_transform(X)
    assert (views.shape, views.ndim, views.dtype, len(views)) == ((20, 4), 2, X.dtype, 20)
    assert repr(views) == "Views(base of shape (20, 4), chain=(GaussianNoise(),))"


@pytest.mark.parametrize("rows", [slice(2, 9, 3), [4, 1, 1], np.arange(20) % 2 == 0])
def test_rows_of_views_are_views_of_the_rows(rows, X):
    views = GaussianNoise().fit_transform(X)
    np.testing.assert_array_equal(views[rows].base, X[rows])
    assert views[rows].chain is views.chain


def test_one_row_of_views_is_a_batch_of_one(X):
    views = GaussianNoise().fit_transform(X)
    np.testing.assert_array_equal(views[-1].base, X[-1:])
    assert len(list(views)) == 20


def test_views_have_no_columns(X):
    with pytest.raises(IndexError, match="samples only"):
        GaussianNoise().fit_transform(X)[:, 1]


def test_views_can_be_split_into_train_and_test(X):
    train, test = train_test_split(GaussianNoise().fit_transform(X), random_state=0)
    assert isinstance(train, Views)
    assert len(train) + len(test) == 20


def test_a_step_between_augmentation_and_embedder_warns(X):
    pipe = make_pipeline(GaussianNoise(), FeatureDropout(), StandardScaler())
    with pytest.warns(AugmentationDropped, match="directly before the embedder.*FeatureDropout"):
        scaled = pipe.fit_transform(X)
    np.testing.assert_allclose(scaled, StandardScaler().fit_transform(X))


def test_views_as_an_array_are_the_base(X):
    views = GaussianNoise().fit_transform(X)
    with pytest.warns(AugmentationDropped, match="GaussianNoise"):
        assert np.asarray(views) is X
    with pytest.warns(AugmentationDropped):
        assert np.asarray(views, dtype=np.float32).dtype == np.float32
    with pytest.warns(AugmentationDropped):
        assert not np.shares_memory(np.array(views), X)


def test_a_pipeline_with_memory_fits_from_its_cache(X, tmp_path):
    pipe = Pipeline(
        [("noise", GaussianNoise()), ("corruption", MarginalCorruption()), ("last", Recorder())],
        memory=str(tmp_path),
    )
    for _ in range(2):
        views = clone(pipe).fit(X)[-1].seen_
        assert [type(a) for a in views.chain] == [GaussianNoise, MarginalCorruption]
        np.testing.assert_array_equal(views.base, X)
        np.testing.assert_array_equal(views.chain[1].marginals_, X)


def test_views_survive_pickling(X):
    views = pickle.loads(pickle.dumps(FeatureDropout(0.3).fit_transform(X)))
    np.testing.assert_array_equal(views.base, X)
    assert views.chain[0].rate == 0.3
    np.testing.assert_array_equal(views.chain[0].mean_, FeatureDropout().fit(X).mean_)


# Composition


def test_an_empty_chain_only_converts_to_floats():
    images = torch.tensor([0, 51, 255], dtype=torch.uint8).reshape(1, 1, 1, 3)
    torch.testing.assert_close(
        compose([], (1, 1, 3))(images), torch.tensor([[[[0.0, 0.2, 1.0]]]]), rtol=0, atol=0
    )
    vectors = torch.rand(3, 2)
    assert compose([], (2,))(vectors).equal(vectors)


def test_a_chain_of_vector_augmentations_is_their_succession(X):
    chain = [GaussianNoise().fit(X), FeatureDropout().fit(X)]
    batch = torch.from_numpy(X)
    together = compose(chain, (4,))(batch, torch.Generator().manual_seed(3))
    generator = torch.Generator().manual_seed(3)
    one_by_one = chain[1].augment(chain[0].augment(batch, generator), generator)
    assert together.equal(one_by_one)


@pytest.mark.parametrize("augmentation", AUGMENTATIONS, **BY_NAME)
def test_the_wrong_kind_of_samples_is_refused_by_name(augmentation):
    name = type(augmentation).__name__
    if augmentation.kind == "images":
        with pytest.raises(ValueError, match=rf"{name} expects images.*\(n, 64\); put Unflatten"):
            compose([augmentation], (64,))
        with pytest.raises(ValueError, match=f"{name} expects images"):
            augmentation.augment(torch.zeros(2, 64))
    if augmentation.kind == "vectors":
        with pytest.raises(ValueError, match=rf"{name} expects vectors.*\(n, 8, 8\)"):
            compose([augmentation], (8, 8))


@pytest.mark.parametrize("augmentation", [ColorJitter(), RandomGrayscale(), SimCLRAugmentation()])
def test_colors_need_one_or_three_channels(augmentation):
    with pytest.raises(ValueError, match=r"1 channel .* or 3 .*got 4 channels"):
        compose([augmentation], (4, 8, 8))
    for shape in ((8, 8), (1, 8, 8), (3, 8, 8)):
        compose([augmentation], shape)


def test_a_new_augmentation_needs_only_augment(X):
    class Negative(Augmentation):
        def augment(self, batch, generator=None):
            return -batch

    views = Negative().fit_transform(GaussianNoise(scale=0.0).fit_transform(X))
    batch = torch.from_numpy(X)
    assert compose(views.chain, (4,))(batch).equal(-batch)


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
def test_one_seed_gives_one_view_and_each_call_a_fresh_one(augmentation, batch):
    generator = torch.Generator().manual_seed(0)
    first, second = (augmentation.augment(batch, generator) for _ in range(2))
    again = augmentation.augment(batch, torch.Generator().manual_seed(0))
    assert first.equal(again)
    assert not first.equal(second)
    assert not augmentation.augment(batch).equal(augmentation.augment(batch))


@pytest.mark.parametrize(("augmentation", "batch"), prepared_cases())
def test_each_sample_gets_its_own_draw(augmentation, batch):
    same = batch[:1].expand_as(batch).contiguous()
    views = augmentation.augment(same, torch.Generator().manual_seed(0))
    assert len(views.flatten(1).unique(dim=0)) > 1


@pytest.mark.parametrize(("augmentation", "batch"), prepared_cases())
def test_shape_and_dtype_stay_and_the_input_is_not_modified(augmentation, batch):
    for dtype in (torch.float32, torch.float64):
        given = batch.to(dtype)
        before = given.clone()
        views = augmentation.augment(given, torch.Generator().manual_seed(0))
        assert (views.shape, views.dtype) == (given.shape, dtype)
        assert given.equal(before)


@pytest.mark.parametrize(("augmentation", "batch"), prepared_cases())
def test_global_random_states_stay_untouched(augmentation, batch):
    numpy_state, torch_state = np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    clone(augmentation).fit_transform(batch.numpy())
    augmentation.augment(batch)
    augmentation.augment(batch, torch.Generator().manual_seed(0))
    assert torch.get_rng_state().equal(torch_state)
    assert pickle.dumps(np.random.get_state()) == pickle.dumps(numpy_state)  # noqa: NPY002


# Unflatten


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_unflatten_is_a_view_of_the_same_values_and_dtype(dtype):
    X = np.arange(24).reshape(2, 12).astype(dtype)
    images = Unflatten((3, 2, 2)).fit_transform(X)
    assert images.dtype == dtype
    assert np.shares_memory(images, X)
    np.testing.assert_array_equal(images, X.reshape(2, 3, 2, 2))


def test_unflatten_works_out_one_missing_side():
    assert Unflatten((1, -1, 4)).fit_transform(np.zeros((2, 12))).shape == (2, 1, 3, 4)


@pytest.mark.parametrize("shape", [(1, 5, 5), (1, -1, 5), (12, 2)])
def test_unflatten_names_the_shape_that_does_not_fit(shape):
    message = rf"12 features.*\({', '.join(map(str, shape))}\) of Unflatten"
    with pytest.raises(ValueError, match=message):
        Unflatten(shape).fit(np.zeros((2, 12)))


@pytest.mark.parametrize("shape", [(), (0, 8, 8), (-1, -1), (2.5, 4), (-2, 6), "12", 12, None])
def test_unflatten_refuses_what_is_no_shape(shape):
    with pytest.raises(ValueError, match="'shape' parameter of Unflatten"):
        Unflatten(shape).fit(np.zeros((2, 12)))


def test_unflatten_stands_before_the_augmentations():
    pipe = make_pipeline(GaussianNoise(), Unflatten((1, 2, 2)))
    with pytest.raises(ValueError, match=r"before the augmentations.*GaussianNoise"):
        pipe.fit(np.zeros((3, 4)))


def test_a_pipeline_of_unflatten_and_augmentation_configures_output_and_names():
    X = np.random.default_rng(0).uniform(size=(5, 4))
    pipe = make_pipeline(Unflatten((1, 2, 2)), RandomFlip()).set_output(transform="pandas").fit(X)
    assert pipe.transform(X).shape == (5, 1, 2, 2)
    assert list(pipe.get_feature_names_out()) == ["x0", "x1", "x2", "x3"]
