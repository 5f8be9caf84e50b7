"""Views, and flattened images that become images."""

import numpy as np
import pytest
import torch
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from skcontrast.augmentation import (
    AugmentationDropped,
    GaussianNoise,
    MarginalCorruption,
    RandomFlip,
    Unflatten,
    Views,
)


class Recorder(BaseEstimator):
    """The last step of a pipeline: remembers what it was fitted on."""

    def fit(self, X, y=None):
        self.seen_ = X
        return self


def test_augmentations_in_a_pipeline_form_one_chain(X):
    pipe = make_pipeline(StandardScaler(), GaussianNoise(), MarginalCorruption(), Recorder()).fit(
        X
    )
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
    with pytest.raises(IndexError, match="indexed by samples"):
        GaussianNoise().fit_transform(X)[:, 1]


def test_views_can_be_split_into_train_and_test(X):
    train, test = train_test_split(GaussianNoise().fit_transform(X), random_state=0)
    assert isinstance(train, Views)
    assert len(train) + len(test) == 20


def test_a_step_between_augmentation_and_embedder_warns(X):
    pipe = make_pipeline(GaussianNoise(), MarginalCorruption(), StandardScaler())
    with pytest.warns(
        AugmentationDropped, match="MarginalCorruption directly before the embedder"
    ):
        scaled = pipe.fit_transform(X)
    np.testing.assert_allclose(scaled, StandardScaler().fit_transform(X))


def test_views_as_an_array_are_the_base(X):
    views = GaussianNoise().fit_transform(X)
    with pytest.warns(AugmentationDropped, match="GaussianNoise"):
        assert np.asarray(views) is X
    assert np.asarray(views, dtype=np.float32).dtype == np.float32
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


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_unflatten_is_a_view_of_the_same_values_and_dtype(dtype):
    X = np.arange(24).reshape(2, 12).astype(dtype)
    images = Unflatten((3, 2, 2)).fit_transform(X)
    assert images.dtype == dtype
    assert np.shares_memory(images, X)
    np.testing.assert_array_equal(images, X.reshape(2, 3, 2, 2))


def test_unflatten_works_out_one_missing_side():
    assert Unflatten((1, -1, 4)).fit_transform(np.zeros((2, 12))).shape == (2, 1, 3, 4)


@pytest.mark.parametrize("shape", [(1, 5, 5), (1, -1, 5), (12, 2), (0, 8, 8), (-1, -1)])
def test_unflatten_refuses_a_shape_that_does_not_fit(shape):
    with pytest.raises(ValueError, match="12 features, which do not fit the 'shape' parameter"):
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


def test_unflatten_takes_tensors():
    X = torch.arange(12.0, requires_grad=True).reshape(3, 4)
    images = Unflatten((1, 2, 2)).fit_transform(X)
    np.testing.assert_array_equal(images, X.detach().numpy().reshape(3, 1, 2, 2))
