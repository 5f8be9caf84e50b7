"""One fit: what it depends on, and what it leaves behind."""

import warnings

import numpy as np
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from skcontrast import load, save
from skcontrast.augmentation import MarginalCorruption
from tests.common import small, vectors


def test_changing_X_after_fit_changes_nothing():
    X = vectors()
    embedder = small(augmentation=MarginalCorruption()).fit(X)
    before, kept = embedder.score(vectors()), embedder.transform(vectors())
    X[:] = 0
    assert embedder.score(vectors()) == before
    np.testing.assert_array_equal(embedder.transform(vectors()), kept)


def test_a_fit_to_few_samples_that_replaces_one_to_many_warns(tmp_path):
    X, y = vectors(200), np.arange(20) % 2
    few, embedder = X[:20], small().fit(X)
    save(embedder, tmp_path / "a")
    with pytest.warns(UserWarning, match="20 samples replaces .* 200"):
        make_pipeline(embedder, LogisticRegression()).fit(few, y)
    with pytest.warns(UserWarning, match="20 samples replaces .* 200"):
        load(tmp_path / "a").fit(few)


def test_no_other_fit_warns_that_it_replaces_one():
    X, y = vectors(200), np.arange(20) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small().fit(X).fit(X[:21])
        embedder = small(warm_start=True).fit(X).fit(X[:20]).partial_fit(X[:20])
        embedder.set_params(warm_start=False)
        make_pipeline(FrozenEstimator(embedder), LogisticRegression()).fit(X[:20], y)
    with pytest.warns(UserWarning, match="200"):  # it still knows of the first
        embedder.fit(X[:20])
