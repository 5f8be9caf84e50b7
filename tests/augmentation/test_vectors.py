import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from skcontrast.augmentation import GaussianNoise, MarginalCorruption
from skcontrast.augmentation._vectors import one_hot_groups  # private: the groups that were found


@pytest.fixture
def X():
    generator = np.random.default_rng(0)
    return generator.normal([0.0, 5.0, -100.0, 1e6], [1.0, 0.1, 30.0, 2.0], size=(4000, 4))


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(0)


def standardise(X):
    """A map such as the embedder's: (x - mean) / std in float64, then float32."""
    mean, std = X.mean(axis=0), X.std(axis=0)
    return lambda samples: torch.from_numpy((samples - mean) / std).float()


# GaussianNoise


def test_noise_is_a_fraction_of_each_standard_deviation(X, generator):
    batch = torch.from_numpy(X)
    noise = GaussianNoise(scale=0.3).fit(X).augment(batch, generator) - batch
    np.testing.assert_allclose(noise.std(dim=0), 0.3 * X.std(axis=0), rtol=0.05)
    np.testing.assert_allclose(noise.mean(dim=0) / noise.std(dim=0), 0, atol=0.06)
    correlations = np.corrcoef(noise.T) - np.eye(4)
    np.testing.assert_allclose(correlations, 0, atol=0.06)


def test_noise_on_images_is_in_units_of_intensity(generator):
    images = torch.full((50, 1, 16, 16), 0.5)
    noise = GaussianNoise(scale=0.2).fit(images).augment(images, generator) - images
    assert noise.std().item() == pytest.approx(0.2, rel=0.03)
    bytes_ = GaussianNoise(scale=0.0).augment(torch.full((1, 1, 2, 2), 51, dtype=torch.uint8))
    assert bytes_.equal(torch.full((1, 1, 2, 2), 0.2))


@pytest.mark.parametrize("constant", [0.0, 0.1, -1e150, 1e-310, 12345.678])
def test_a_constant_feature_gets_no_noise(constant, generator):
    X = np.full((7, 2), constant)
    X[:, 1] = np.arange(7)
    batch = torch.from_numpy(X)
    augmentation = GaussianNoise(scale=10.0).fit(X)
    assert augmentation.std_[0] == 0
    assert augmentation.augment(batch, generator)[:, 0].equal(batch[:, 0])


def test_the_moments_are_those_of_numpy():
    for dtype in [np.float32, np.float64]:
        for offset, scale in [(0, 1), (1e5, 1), (0, 1e30), (0, 1e-30)]:
            X = np.random.default_rng(0).normal(offset, scale, size=(9000, 3)).astype(dtype)
            fitted = GaussianNoise().fit(X)
            mean, std = X.mean(axis=0, dtype=float), X.std(axis=0, dtype=float)
            np.testing.assert_allclose((fitted.mean_ - mean) / std, 0, atol=1e-8)
            np.testing.assert_allclose(fitted.std_, std, rtol=1e-9)


def test_images_have_no_moments_even_after_a_fit_on_vectors(X):
    augmentation = GaussianNoise().fit(X).fit(np.zeros((2, 1, 4, 4)))
    assert not hasattr(augmentation, "std_")
    assert augmentation.prepared(standardise(X)) is augmentation


def test_noise_prepared_for_other_units_is_the_same_noise(X):
    augmentation, convert = GaussianNoise(scale=0.3).fit(X), standardise(X)
    prepared = augmentation.prepared(convert)
    torch.testing.assert_close(prepared.std_, torch.ones(4), rtol=1e-6, atol=0)
    here = prepared.augment(convert(X), torch.Generator().manual_seed(1))
    noise = here - convert(X)
    assert noise.std().item() == pytest.approx(0.3, rel=0.02)
    assert isinstance(augmentation.std_, np.ndarray)


# MarginalCorruption


def test_the_number_of_corrupted_features_is_exact(generator):
    for rate in [0.0, 0.2, 0.5, 0.6, 1.0]:
        for n_features in [1, 2, 5, 30]:
            augmentation = MarginalCorruption(rate=rate).fit(np.ones((10, n_features)))
            corrupted = augmentation.augment(torch.zeros(300, n_features), generator)
            expected = max(round(rate * n_features), 1) if rate else 0
            assert (corrupted.sum(dim=1) == expected).all()


def test_every_subset_of_features_is_equally_likely(generator):
    augmentation = MarginalCorruption(rate=0.5).fit(np.ones((10, 4)))
    corrupted = augmentation.augment(torch.zeros(12000, 4), generator)
    subsets, counts = corrupted.unique(dim=0, return_counts=True)
    assert len(subsets) == 6
    np.testing.assert_allclose(counts, 2000, atol=5 * np.sqrt(2000))


def test_corrupted_entries_are_training_values_of_their_feature(X, generator):
    batch = torch.from_numpy(X[:500])
    views = MarginalCorruption(rate=0.5).fit(X[500:]).augment(batch, generator).numpy()
    for feature in range(4):
        replaced = views[views[:, feature] != X[:500, feature], feature]
        assert 200 < len(replaced) < 300
        assert np.isin(replaced, X[500:, feature]).all()


def test_corruption_keeps_each_marginal_distribution(X, generator):
    views = MarginalCorruption(rate=1.0).fit(X).augment(torch.from_numpy(X), generator).numpy()
    for feature in range(4):
        points = np.sort(X[:, feature])
        ours = np.searchsorted(np.sort(views[:, feature]), points, side="right") / len(X)
        theirs = np.searchsorted(points, points, side="right") / len(X)
        assert np.abs(ours - theirs).max() < 1.95 / np.sqrt(len(X))


def test_replaced_features_come_from_independent_samples(generator):
    X = np.random.default_rng(0).normal(size=(3000, 1)).repeat(3, axis=1)
    views = MarginalCorruption(rate=1.0).fit(X).augment(torch.from_numpy(X), generator)
    np.testing.assert_allclose(np.corrcoef(views.T), np.eye(3), atol=0.08)
    np.testing.assert_allclose(np.corrcoef(views[:, 0], X[:, 0])[0, 1], 0, atol=0.08)


def test_the_marginals_are_a_copy_of_the_training_rows(X):
    augmentation = MarginalCorruption().fit(X)
    np.testing.assert_array_equal(augmentation.marginals_, X)
    assert not np.shares_memory(augmentation.marginals_, X)


def test_many_training_rows_are_thinned_evenly():
    X = np.arange(35_000.0)[:, None]
    marginals = MarginalCorruption().fit(X).marginals_
    assert 5_000 < len(marginals) <= 10_000
    assert len(np.unique(np.diff(marginals[:, 0]))) == 1


def test_a_batch_of_a_different_width_is_refused(X):
    with pytest.raises(ValueError, match=r"batch must have 4 features, got 2"):
        MarginalCorruption().fit(X).augment(torch.zeros(3, 2))


def test_corruption_prepared_for_other_units_is_the_same_corruption(X):
    augmentation, convert = MarginalCorruption().fit(X), standardise(X)
    prepared = augmentation.prepared(convert)
    here = augmentation.augment(torch.from_numpy(X), torch.Generator().manual_seed(1))
    there = prepared.augment(convert(X), torch.Generator().manual_seed(1))
    assert there.dtype == torch.float32
    torch.testing.assert_close(there, convert(here.numpy()), rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(augmentation.marginals_, X)


# Groups of features


def encoded_table(n=200, seed=0):
    """Return a category in three columns, two flags and a number, side by side."""
    rng = np.random.default_rng(seed)
    city, flags = np.eye(3)[rng.integers(0, 3, n)], rng.integers(0, 2, (n, 2))
    return np.column_stack([rng.normal(size=n), city, flags, rng.normal(size=n)])


def test_columns_of_a_one_hot_code_are_found_and_nothing_else(X):
    assert one_hot_groups(encoded_table()).tolist() == [0, 1, 1, 1, 2, 3, 4]
    assert one_hot_groups(X).tolist() == [0, 1, 2, 3]
    assert one_hot_groups(np.hstack([np.eye(2), np.eye(2)])).tolist() == [0, 0, 1, 1]
    assert one_hot_groups(np.zeros((3, 4))).tolist() == [0, 1, 2, 3]
    assert one_hot_groups(np.ones((3, 4))).tolist() == [0, 1, 2, 3]


def naive_groups(X):
    """Look for the shortest run of 0 and 1 that sums to 1, from each column on."""
    groups, start = [], 0
    while start < X.shape[1]:
        ends = range(start + 2, X.shape[1] + 1)
        runs = (e for e in ends if np.isin(X[:, start:e], [0, 1]).all())
        # A single column of ones is constant, not a code.
        is_code = not (X[:, start] == 1).all()
        end = next((e for e in runs if is_code and (X[:, start:e].sum(1) == 1).all()), start + 1)
        groups += [len(set(groups))] * (end - start)
        start = end
    return groups


def test_groups_are_those_of_the_naive_search():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 5))
        blocks = [np.eye(k)[rng.integers(0, k, n)] for k in rng.integers(1, 4, 3)]
        blocks += [rng.integers(0, 3, (n, 2)), rng.integers(0, 2, (n, 3)), np.zeros((n, 1))]
        X = np.hstack([blocks[k] for k in rng.permutation(len(blocks))])
        assert one_hot_groups(X).tolist() == naive_groups(X)


def test_wide_vectors_take_no_step_of_python_for_each_column():
    def n_calls(d):
        calls = 0

        def count(frame, event, of):
            nonlocal calls
            calls += 1

        X = (np.random.default_rng(0).random((50, d)) < 0.01).astype(np.float32)
        before = sys.getprofile()
        sys.setprofile(count)
        try:
            one_hot_groups(X)
        finally:
            sys.setprofile(before)
        return calls

    assert n_calls(2000) == n_calls(200)


@pytest.mark.parametrize("rate", [0.2, 0.5, 1.0])
def test_no_view_has_two_categories_or_none(rate, generator):
    X = encoded_table()
    augmentation = MarginalCorruption(rate).fit(X)
    views = augmentation.augment(torch.from_numpy(X), generator)
    assert (views[:, 1:4].sum(dim=1) == 1).all()
    # One category in three is drawn again.
    changed = (views[:, 1:4] != torch.from_numpy(X[:, 1:4])).any(dim=1).double().mean()
    assert changed.item() == pytest.approx(round(5 * rate) / 5 * 2 / 3, abs=0.1)


def test_one_by_one_categories_are_torn_apart(generator):
    X = encoded_table()
    views = MarginalCorruption(0.5, groups=None).fit(X).augment(torch.from_numpy(X), generator)
    assert (views[:, 1:4].sum(dim=1) != 1).any()


def test_features_of_a_group_come_from_one_sample(generator):
    X = np.arange(40.0).reshape(10, 4)
    names = pd.DataFrame(X, columns=list("abcd"))
    for groups, given in (([[0, 2]], X), ([["a", "c"]], names), ((np.array([0, 2]),), X)):
        augmentation = MarginalCorruption(1.0, groups=groups).fit(given)
        assert augmentation.groups_.tolist() == [0, 1, 0, 2]
        views = augmentation.augment(torch.zeros(50, 4, dtype=torch.float64), generator)
        assert (views[:, 2] - views[:, 0] == 2).all()
        assert (views[:, 1] - views[:, 0] != 1).any()


def test_groups_that_X_does_not_have_are_refused(X):
    for groups in ([[0, 4]], [["a"]], [[0.5]], [0]):
        with pytest.raises((TypeError, ValueError), match="groups must be lists of features of X"):
            MarginalCorruption(groups=groups).fit(X)
    with pytest.raises(ValueError, match="'groups' parameter"):
        MarginalCorruption(groups="prefix").fit(X)


def test_groups_are_found_behind_a_column_transformer(generator):
    table = pd.DataFrame({"age": np.arange(30.0), "city": ["Rome", "Oslo", "Bonn"] * 10})
    encode = make_column_transformer((OneHotEncoder(), ["city"]), remainder="passthrough")
    X = encode.fit_transform(table)
    augmentation = make_pipeline(encode, MarginalCorruption(0.5)).fit_transform(table).chain[0]
    assert augmentation.groups_.tolist() == [0, 0, 0, 1]
    views = augmentation.augment(torch.from_numpy(np.asarray(X)), generator)
    assert (views[:, :3].sum(dim=1) == 1).all()
