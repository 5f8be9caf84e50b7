"""Measures as scorers: alone, in a Pipeline and in a search."""

import pickle
from functools import partial

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import davies_bouldin_score, silhouette_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, StandardScaler

from skcontrast.augmentation import GaussianNoise, MarginalCorruption
from skcontrast.estimation import macro_auc
from skcontrast.metrics import (
    alignment,
    effective_rank,
    few_label_accuracy,
    knn_accuracy,
    linear_probe,
    make_embedding_scorer,
    make_view_scorer,
    map_at_r,
    neighbor_agreement,
    recall_at_k,
    uniformity,
)
from skcontrast.metrics._scorers import split_at_embedder  # private: where a pipeline is cut
from tests.common import IMAGES, X_DIGITS, small

# Of uniformity, less is better.
SIGN = {uniformity: -1, effective_rank: 1}
MISALIGNED = make_view_scorer(alignment, augmentation=GaussianNoise(0.1))


def test_a_scorer_repeats_and_needs_no_classes():
    embedder = small().fit(X_DIGITS)
    score = MISALIGNED(embedder, X_DIGITS)
    assert score == MISALIGNED(embedder, X_DIGITS, np.arange(len(X_DIGITS))) < 0
    assert pickle.loads(pickle.dumps(MISALIGNED))(embedder, X_DIGITS) == score


def test_the_sign_says_that_less_is_better():
    embedder = small().fit(X_DIGITS)
    given = {"augmentation": [GaussianNoise(0.1)]}
    plain = make_view_scorer(alignment, **given, greater_is_better=True)
    assert plain(embedder, X_DIGITS) == -MISALIGNED(embedder, X_DIGITS) > 0
    part = make_view_scorer(partial(alignment), **given)
    assert part(embedder, X_DIGITS) == MISALIGNED(embedder, X_DIGITS)


def test_views_that_do_not_change_anything_are_aligned_and_agree():
    embedder = small().fit(X_DIGITS)
    for measure, best in ((alignment, 0), (neighbor_agreement, 1)):
        scorer = make_view_scorer(measure, augmentation=GaussianNoise(0.0))
        assert scorer(embedder, X_DIGITS) == pytest.approx(best, abs=1e-12)


def test_a_pipeline_is_scored_as_the_embedder_at_its_end():
    pipe = make_pipeline(MarginalCorruption(), small()).fit(X_DIGITS)
    assert MISALIGNED(pipe, X_DIGITS) == MISALIGNED(pipe[-1], X_DIGITS)
    assert pipe.score(X_DIGITS) == pipe[-1].score(X_DIGITS)


def test_an_embedder_must_be_fitted_and_views_must_be_augmentations():
    with pytest.raises(NotFittedError):
        MISALIGNED(small(), X_DIGITS)
    with pytest.raises(TypeError, match="augmentation"):
        make_view_scorer(alignment, augmentation="noise")(small().fit(X_DIGITS), X_DIGITS)


def test_a_pipeline_that_ends_otherwise_is_refused():
    pipe = make_pipeline(small(), LogisticRegression(max_iter=1000))
    with pytest.raises(TypeError, match="estimator must be a ContrastiveEmbedder"):
        MISALIGNED(pipe.fit(X_DIGITS, np.arange(len(X_DIGITS)) % 10), X_DIGITS)


def test_the_steps_before_the_embedder_are_those_of_the_pipeline():
    embedder, scaler = small(), StandardScaler()
    assert split_at_embedder(embedder) == (None, embedder)
    assert split_at_embedder(make_pipeline(embedder)) == (None, embedder)
    pipe = make_pipeline(scaler, embedder, LogisticRegression())
    before, found = split_at_embedder(pipe, at_end=False)
    assert found is embedder and [step for _, step in before.steps] == [scaler]
    for none in (LogisticRegression(), make_pipeline(StandardScaler()), type(embedder)):
        with pytest.raises(TypeError, match="estimator must be a ContrastiveEmbedder or a Pipel"):
            split_at_embedder(none, at_end=False)


Y_DIGITS = load_digits().target[: len(X_DIGITS)]
NEIGHBORS = make_embedding_scorer(knn_accuracy, n_neighbors=5, metric="euclidean")
MEASURES = {
    knn_accuracy: {"n_neighbors": 3},
    recall_at_k: {"k": 2},
    map_at_r: {},
    linear_probe: {"cv": 2},
    few_label_accuracy: {"n_labels": 2, "n_draws": 2},
    silhouette_score: {"metric": "cosine"},
}


@pytest.mark.parametrize("measure", MEASURES)
def test_a_scorer_of_embeddings_is_the_mean_measure_of_what_transform_returns(measure):
    embedder, kwargs = small().fit(X_DIGITS), MEASURES[measure]
    expected = np.mean(measure(embedder.transform(X_DIGITS), Y_DIGITS, **kwargs))
    assert make_embedding_scorer(measure, **kwargs)(embedder, X_DIGITS, Y_DIGITS) == expected


def test_the_macro_auc_is_a_scorer_without_its_standard_error():
    embedder = small().fit(X_DIGITS)
    expected = macro_auc(embedder.transform(X_DIGITS), y=Y_DIGITS).value
    scorer = make_embedding_scorer(macro_auc)
    assert scorer(embedder, X_DIGITS, Y_DIGITS) == expected
    frames = small().set_output(transform="pandas").fit(X_DIGITS)
    assert scorer(frames, X_DIGITS, Y_DIGITS) == expected


@pytest.mark.parametrize("measure", [uniformity, effective_rank])
def test_a_measure_without_classes_gets_none(measure):
    embedder = small().fit(X_DIGITS)
    scorer = make_embedding_scorer(measure, needs_y=False)
    assert scorer(embedder, X_DIGITS) == SIGN[measure] * measure(embedder.transform(X_DIGITS))


def test_raw_data_are_scored_as_any_transformer():
    raw = FunctionTransformer().fit(X_DIGITS)
    expected = knn_accuracy(X_DIGITS, Y_DIGITS, n_neighbors=5, metric="euclidean")
    assert NEIGHBORS(raw, X_DIGITS, Y_DIGITS) == NEIGHBORS(raw, IMAGES, Y_DIGITS) == expected
    pipe = make_pipeline(StandardScaler(), PCA(64, random_state=0)).fit(X_DIGITS)
    assert 0 < NEIGHBORS(pipe, X_DIGITS, Y_DIGITS) <= 1


def test_a_scorer_of_embeddings_works_in_a_pipeline_and_with_others():
    pipe = make_pipeline(MarginalCorruption(), small(max_epochs=1))
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    scoring = {"5-NN": NEIGHBORS, "AUC": pickle.loads(pickle.dumps(AUC)), "rank": RANK}
    scores = cross_validate(pipe, X_DIGITS, Y_DIGITS, cv=folds, scoring=scoring)
    splits = folds.split(X_DIGITS, Y_DIGITS)
    for (train, test), score in zip(splits, scores["test_AUC"], strict=True):
        fitted = clone(pipe).fit(X_DIGITS[train])
        assert AUC(fitted, X_DIGITS[test], Y_DIGITS[test]) == pytest.approx(score)
    assert (scores["test_rank"] > 1).all() and (scores["test_5-NN"] > 0.1).all()


AUC = make_embedding_scorer(macro_auc)
RANK = make_embedding_scorer(effective_rank, needs_y=False)


def test_a_search_maximises_a_measure_of_classes():
    folds = StratifiedKFold(2, shuffle=True, random_state=0)
    grid = {"max_epochs": [1, 3]}
    search = GridSearchCV(small(), grid, cv=folds, scoring=NEIGHBORS).fit(X_DIGITS, Y_DIGITS)
    best = search.cv_results_["mean_test_score"].argmax()
    assert search.best_params_ == {"max_epochs": grid["max_epochs"][best]}


def test_less_may_be_better():
    embedder = small().fit(X_DIGITS)
    scorer = make_embedding_scorer(davies_bouldin_score, greater_is_better=False)
    expected = -davies_bouldin_score(embedder.transform(X_DIGITS), Y_DIGITS)
    assert scorer(embedder, X_DIGITS, Y_DIGITS) == expected


def test_samples_of_unknown_class_are_not_scored():
    embedder, partly = small().fit(X_DIGITS), np.where(np.arange(200) < 50, -1, Y_DIGITS)
    known = NEIGHBORS(embedder, X_DIGITS[50:], Y_DIGITS[50:])
    assert NEIGHBORS(embedder, X_DIGITS, partly) == known


def test_a_scorer_shows_how_it_was_made():
    assert repr(MISALIGNED) == (
        "make_view_scorer(alignment, augmentation=GaussianNoise(), greater_is_better=False)"
    )
    assert repr(make_view_scorer(neighbor_agreement)) == "make_view_scorer(neighbor_agreement)"
    assert repr(NEIGHBORS) == (
        "make_embedding_scorer(knn_accuracy, n_neighbors=5, metric='euclidean')"
    )
    negative = make_embedding_scorer(uniformity, needs_y=False, greater_is_better=False, t=3)
    assert repr(negative) == (
        "make_embedding_scorer(uniformity, t=3, needs_y=False, greater_is_better=False)"
    )
    assert repr(eval(repr(negative))) == repr(negative)


def test_what_cannot_be_scored_is_refused():
    for make in (make_embedding_scorer, make_view_scorer):
        with pytest.raises(TypeError, match="'measure' parameter of make_"):
            make("accuracy")
    embedder = small().fit(X_DIGITS)
    with pytest.raises(ValueError, match="knn_accuracy needs the classes of the samples: pass y"):
        NEIGHBORS(embedder, X_DIGITS)
    with pytest.raises(ValueError, match="n_neighbors must be at most 9, the number"):
        make_embedding_scorer(knn_accuracy)(embedder, X_DIGITS[:10], Y_DIGITS[:10])
    with pytest.raises(TypeError, match="estimator must have the method transform"):
        NEIGHBORS(LogisticRegression(), X_DIGITS, Y_DIGITS)
    with pytest.raises(NotFittedError):
        NEIGHBORS(small(), X_DIGITS, Y_DIGITS)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        NEIGHBORS(OneHotEncoder().fit(X_DIGITS), X_DIGITS, Y_DIGITS)
