"""PartialWhitening: PCA at one end, white at the other."""

import numpy as np
import pandas as pd
import pytest
from sklearn.decomposition import PCA

from skcontrast.features import PartialWhitening
from tests.common import check_sklearn_contract

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 6)) @ RNG.normal(size=(6, 6)) * [9, 4, 1, 1, 2, 0.1] + 3


@pytest.mark.parametrize(
    "estimator", [PartialWhitening(), PartialWhitening(2, power=1.0)], ids=repr
)
def test_estimator_checks(estimator):
    check_sklearn_contract(estimator)


@pytest.mark.parametrize("power", [0, 0.3, 0.5, 1])
def test_spread_is_raised_to_one_minus_power(power):
    Z = PartialWhitening(power=power).fit_transform(X)
    expected = PCA().fit(X)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-10)
    covariance = np.diag(expected.explained_variance_ ** (1 - power))
    np.testing.assert_allclose(np.cov(Z, rowvar=False), covariance, atol=1e-9)


def test_power_zero_is_pca_and_power_one_whitens():
    np.testing.assert_allclose(
        PartialWhitening(4, power=0).fit_transform(X), PCA(4).fit_transform(X), atol=1e-10
    )
    whole = PCA(4, whiten=True).fit_transform(X)
    np.testing.assert_allclose(PartialWhitening(4, power=1).fit_transform(X), whole, atol=1e-10)


def test_names_of_features_in_another_order_are_refused_as_by_scikit_learn():
    table = pd.DataFrame(X).rename(columns=str)
    with pytest.raises(ValueError, match=r"^The feature names [^:]*must be in the same order"):
        PartialWhitening(2).fit(table).transform(table[table.columns[::-1]])


@pytest.mark.parametrize("n_components, width", [(3, 3), (6, 6), (256, 6)])
def test_there_are_at_most_as_many_components_as_features(n_components, width):
    whitening = PartialWhitening(n_components).fit(X)
    assert whitening.transform(X).shape == (300, width)
    assert whitening.scale_.shape == (width,)
    assert list(whitening.get_feature_names_out()) == [
        f"partialwhitening{k}" for k in range(width)
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("power", [0, 0.5, 1])
def test_directions_that_do_not_vary_stay_near_zero(power, dtype):
    flat = np.column_stack([X[:, :2], np.full(300, 7.0), X[:, :2].sum(axis=1)]).astype(dtype)
    Z = PartialWhitening(power=power).fit_transform(flat)
    assert Z.dtype == dtype and Z.shape == (300, 4)
    assert np.abs(Z[:, 2:]).max() < 0.01 * np.abs(Z[:, :2]).max()


@pytest.mark.parametrize("power", [0, 0.5, 1])
def test_fewer_samples_than_components_are_enough(power):
    Z = PartialWhitening(power=power).fit_transform(X[:3])
    assert Z.shape == (3, 3)
    np.testing.assert_allclose(Z[:, 2], 0, atol=1e-6)


@pytest.mark.parametrize("power", [0, 0.5, 1])
def test_equal_rows_are_zero(power):
    Z = PartialWhitening(power=power).fit_transform(np.full((5, 3), 2.5))
    np.testing.assert_array_equal(Z, np.zeros((5, 3)))


@pytest.mark.parametrize("factor, dtype", [(1e155, "f8"), (1e200, "f8"), (1e30, "f4")])
def test_numbers_whose_variance_overflows_are_refused(factor, dtype):
    X = (np.random.default_rng(0).normal(size=(40, 4)) * factor).astype(dtype)
    with pytest.raises(ValueError, match="X must be numbers of finite variance"):
        PartialWhitening(2).fit(X)


def test_the_scale_is_that_of_fit():
    whitening = PartialWhitening(power=1).fit(X)
    np.testing.assert_allclose(
        whitening.transform(2 * X - X.mean(axis=0)), 2 * whitening.transform(X), atol=1e-9
    )


def test_the_seed_decides_the_randomised_solver():
    wide = np.random.default_rng(1).normal(size=(600, 1200)).astype(np.float32)
    first, second = (PartialWhitening(5, random_state=0).fit_transform(wide) for _ in range(2))
    np.testing.assert_array_equal(first, second)


def test_samples_that_are_no_matrix_of_finite_numbers_are_refused_by_name():
    with pytest.raises(ValueError, match="Input X contains NaN"):
        PartialWhitening().fit([[1.0, np.nan], [1.0, 2.0]])
    with pytest.raises(ValueError, match="minimum of 2 is required by PartialWhitening"):
        PartialWhitening().fit([[1.0, 2.0]])
    with pytest.raises(ValueError, match="X must be an array of numbers"):
        PartialWhitening().fit([["a", "b"]] * 3)
    with pytest.raises(ValueError, match="X has 2 features, but PartialWhitening is expecting 6"):
        PartialWhitening().fit(X).transform(X[:, :2])
