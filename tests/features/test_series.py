"""MiniRocket: shares of convolutions above thresholds, of series of any length."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import RidgeClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcontrast._checks import InvalidParameterError
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


def test_a_series_has_the_same_features_alone_and_among_longer_ones():
    data = X.copy()
    lengths = np.arange(20) * 2 + 9
    for row, length in zip(data, lengths, strict=True):
        row[:, length:] = np.nan
    features = small().fit(data)
    together = features.transform(data)
    for row, length in enumerate(lengths):
        alone = features.transform(data[row : row + 1, :, :length])
        np.testing.assert_array_equal(alone[0], together[row])


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


def test_the_seed_decides():
    first = small().fit_transform(X)
    np.testing.assert_array_equal(small().fit_transform(X), first)
    assert not np.array_equal(small(random_state=1).fit_transform(X), first)


def test_a_linear_classifier_tells_frequencies_apart_wherever_they_begin():
    y = np.arange(200) % 3
    phase = RNG.uniform(0, 7, size=(200, 1))
    waves = np.sin(phase + np.arange(60) * (0.5 + 0.1 * y[:, None]))
    waves = (waves + 0.3 * RNG.normal(size=waves.shape))[:, None]
    model = make_pipeline(small(), StandardScaler(), RidgeClassifier())
    assert model.fit(waves[:100], y[:100]).score(waves[100:], y[100:]) > 0.95
    raw = RidgeClassifier().fit(waves[:100, 0], y[:100])
    assert raw.score(waves[100:, 0], y[100:]) < 0.7


@pytest.mark.parametrize("name, bad", [("n_features", 83), ("random_state", "a")])
def test_a_parameter_outside_its_range_is_named(name, bad):
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter of MiniRocket"):
        clone(small()).set_params(**{name: bad}).fit(X)


def test_samples_of_another_kind_are_refused():
    with pytest.raises(ValueError, match="MiniRocket expects series"):
        small().fit(RNG.normal(size=(20, 3, 9, 9)))
