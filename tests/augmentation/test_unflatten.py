"""Unflatten: vectors that are images."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.pipeline import make_pipeline

from skcontrast.augmentation import GaussianNoise, RandomFlip, Unflatten


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
    message = rf"12 features.*\({', '.join(map(str, shape))}"
    with pytest.raises(ValueError, match=message):
        Unflatten(shape).fit(np.zeros((2, 12)))


@pytest.mark.parametrize("shape", [(), (0, 8, 8), (-1, -1), (2.5, 4), (-2, 6), "12", 12, None])
def test_unflatten_refuses_a_bad_shape(shape):
    with pytest.raises(ValueError, match="'shape' parameter "):
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
