"""Moments of columns."""

import numpy as np
import pytest

from skcontrast._data._statistics import moments


def rng():
    return np.random.default_rng(0)


def test_moments_are_mean_and_standard_deviation():
    X = rng().normal(3, 2, size=(5000, 4))
    mean, std = moments(X)
    np.testing.assert_allclose(mean, X.mean(0), rtol=1e-12)
    np.testing.assert_allclose(std, X.std(0), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_moments_scale_with_the_data(scale):
    X = rng().normal(size=(100, 3))
    for scaled, plain in zip(moments(X * scale), moments(X), strict=True):
        np.testing.assert_allclose(scaled / scale, plain, rtol=1e-10)
