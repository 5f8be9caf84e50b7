"""Views as a fitted embedder sees them."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.preprocessing import StandardScaler

from skcontrast.augmentation import GaussianNoise
from skcontrast.estimation import ScoreSample, macro_auc, project_views
from skcontrast.similarity import VonMisesFisher
from tests.common import X_DIGITS, small, vectors


def test_views_are_projections_of_what_the_augmentation_draws():
    X = vectors()
    still = small(augmentation=GaussianNoise(0.0), output="projection").fit(X)
    (view,) = project_views(still, X, n_views=1)
    np.testing.assert_allclose(view, still.transform(X), rtol=1e-5, atol=1e-6)
    moved = small(augmentation=GaussianNoise(0.5)).fit(X)
    z1, z2 = project_views(moved, X)
    assert z1.shape == z2.shape and not np.allclose(z1, z2)


def test_a_seed_gives_the_same_views_again():
    embedder = small().fit(X_DIGITS)
    first, second = (project_views(embedder, X_DIGITS, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert not np.array_equal(first, project_views(embedder, X_DIGITS, random_state=4))


def test_views_of_a_pipeline_are_read_as_their_samples():
    embedder, given = small().fit(X_DIGITS), GaussianNoise(9.0).fit_transform(X_DIGITS)
    first, second = (np.stack(project_views(embedder, X)) for X in (X_DIGITS, given))
    np.testing.assert_array_equal(first, second)


def test_concentrations_are_kept_for_the_similarity():
    X = vectors()
    embedder = small(similarity=VonMisesFisher()).fit(X)
    views = project_views(embedder, X)
    y = np.arange(len(X)) % 3
    sample = ScoreSample.from_views(*views, y=y, similarity=embedder.similarity_)
    assert np.isfinite(sample.scores).all()
    assert 0 < macro_auc(*views, y=y, similarity=embedder.similarity_).value < 1


def test_other_estimators_no_views_and_no_seed_are_refused():
    with pytest.raises(NotFittedError):
        project_views(small(), X_DIGITS)
    with pytest.raises(TypeError, match="embedder must be a fitted ContrastiveEmbedder"):
        project_views(StandardScaler().fit(X_DIGITS), X_DIGITS)
    for name, value in (("n_views", 0), ("random_state", None)):
        with pytest.raises(ValueError, match=f"'{name}' parameter of project_views must be an i"):
            project_views(small().fit(X_DIGITS), X_DIGITS, **{name: value})


def test_an_embedder_without_a_head_is_projected_by_its_encoder():
    X = vectors()
    embedder = small(projection_dim=0, augmentation=GaussianNoise(0.0)).fit(X)
    (view,) = project_views(embedder, X, n_views=1)
    np.testing.assert_allclose(view, embedder.transform(X), rtol=1e-5, atol=1e-6)
