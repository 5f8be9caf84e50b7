"""Measures of views as scorers: alone, in a Pipeline and in a search."""

import pickle

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from skcontrast.augmentation import GaussianNoise, MarginalCorruption
from skcontrast.metrics import (
    alignment,
    effective_rank,
    make_view_scorer,
    neighbor_agreement,
    uniformity,
)
from tests.common import X_DIGITS, small

MISALIGNED = make_view_scorer(alignment, augmentation=GaussianNoise(0.1), greater_is_better=False)


def test_a_scorer_repeats_and_needs_no_classes():
    embedder = small().fit(X_DIGITS)
    score = MISALIGNED(embedder, X_DIGITS)
    assert score == MISALIGNED(embedder, X_DIGITS, np.arange(len(X_DIGITS))) < 0
    assert pickle.loads(pickle.dumps(MISALIGNED))(embedder, X_DIGITS) == score


def test_the_sign_says_that_less_is_better():
    embedder = small().fit(X_DIGITS)
    plain = make_view_scorer(alignment, augmentation=[GaussianNoise(0.1)])
    assert plain(embedder, X_DIGITS) == -MISALIGNED(embedder, X_DIGITS)


def test_views_that_do_not_change_anything_are_aligned_and_agree():
    embedder = small().fit(X_DIGITS)
    for measure, best in ((alignment, 0), (neighbor_agreement, 1)):
        scorer = make_view_scorer(measure, augmentation=GaussianNoise(0.0))
        assert scorer(embedder, X_DIGITS) == pytest.approx(best, abs=1e-12)


def test_a_pipeline_is_scored_as_the_embedder_at_its_end():
    pipe = make_pipeline(MarginalCorruption(), small()).fit(X_DIGITS)
    assert MISALIGNED(pipe, X_DIGITS) == MISALIGNED(pipe[-1], X_DIGITS)
    assert pipe.score(X_DIGITS) == pipe[-1].score(X_DIGITS)


def test_a_search_maximises_a_scorer():
    def rank(z1, z2):
        return effective_rank(z1)

    search = GridSearchCV(
        small(), {"max_epochs": [1, 2]}, cv=2, scoring=make_view_scorer(rank), refit=False
    ).fit(X_DIGITS)
    assert (search.cv_results_["mean_test_score"] > 1).all()


def test_an_embedder_must_be_fitted_and_views_must_be_augmentations():
    with pytest.raises(NotFittedError):
        MISALIGNED(small(), X_DIGITS)
    with pytest.raises(TypeError, match="augmentation"):
        make_view_scorer(alignment, augmentation="noise")(small().fit(X_DIGITS), X_DIGITS)


def test_a_scorer_shows_how_it_was_made():
    assert repr(MISALIGNED) == (
        "make_view_scorer(alignment, augmentation=GaussianNoise(), greater_is_better=False)"
    )
    assert repr(make_view_scorer(alignment)) == "make_view_scorer(alignment)"


@pytest.mark.parametrize("measure", [uniformity, effective_rank])
def test_a_measure_of_one_view_gets_one(measure):
    embedder = small(augmentation=GaussianNoise(0.1)).fit(X_DIGITS)
    scorer = make_view_scorer(measure, augmentation=GaussianNoise(0.0), n_views=1)
    assert scorer(embedder, X_DIGITS) == pytest.approx(measure(embedder.transform(X_DIGITS)))


def test_what_is_no_measure_or_no_embedder_is_refused():
    with pytest.raises(TypeError, match="measure must be a function"):
        make_view_scorer("alignment")
    with pytest.raises(ValueError, match="n_views must be 1 or 2"):
        make_view_scorer(alignment, n_views=3)
    pipe = make_pipeline(small(), LogisticRegression(max_iter=1000))
    with pytest.raises(TypeError, match="takes a ContrastiveEmbedder"):
        MISALIGNED(pipe.fit(X_DIGITS, np.arange(len(X_DIGITS)) % 10), X_DIGITS)
