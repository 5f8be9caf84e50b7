"""MiniRocket: shares of convolutions above thresholds, of series of any length."""

import numpy as np
import pytest

from skcontrast.features import MiniRocket

RNG = np.random.default_rng(0)
X = RNG.normal(size=(20, 2, 50))


def small(**kwargs):
    return MiniRocket(**{"n_features": 168, "random_state": 0, **kwargs})


@pytest.mark.parametrize("asked, found", [(84, 84), (100, 84), (168, 168), (2016, 2016)])
def test_the_number_of_features_is_a_multiple_of_84(asked, found):
    features = small(n_features=asked)
    assert features.fit_transform(X).shape == (20, found)
    assert features.get_feature_names_out()[-1] == f"minirocket{found - 1}"


def test_features_are_shares():
    found = small().fit_transform(X)
    assert (found >= 0).all() and (found <= 1).all()
    counts = found * 50  # every second kernel is counted at all times
    assert np.isclose(counts, counts.round(), atol=1e-4).all(axis=0).sum() >= 84


def test_lists_of_series_of_unequal_lengths_are_padded():
    series = [X[row, :, : 9 + 2 * row] for row in range(20)]
    padded = np.full_like(X, np.nan)
    for row, one in enumerate(series):
        padded[row, :, : one.shape[1]] = one
    expected = small().fit_transform(padded)
    np.testing.assert_array_equal(small().fit_transform(series), expected)


def test_later_series_may_have_other_lengths():
    features = small().fit(X)
    for n_times in (1, 30, 200):
        found = features.transform(RNG.normal(size=(3, 2, n_times)))
        assert found.shape == (3, 168) and np.isfinite(found).all()


def test_features_do_not_depend_on_the_units():
    np.testing.assert_allclose(
        small().fit_transform(1000 * X + 7), small().fit_transform(X), atol=0.03
    )
