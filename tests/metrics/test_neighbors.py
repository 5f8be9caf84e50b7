"""Neighbours that share a class, against naive loops and scikit-learn."""

from collections import Counter

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

# private: sizes of the parts
from skcontrast.metrics import _embeddings, knn_accuracy, map_at_r, recall_at_k


def drawn(seed, n=50, n_test=20):
    rng = np.random.default_rng(seed)
    y, y_test = rng.integers(0, 4, n), rng.integers(0, 4, n_test)
    centres = rng.normal(size=(4, 5))
    H, H_test = (centres[of] + 0.8 * rng.normal(size=(len(of), 5)) for of in (y, y_test))
    return H, y, H_test, y_test


def ranked(H, y, query, left_out=None):
    """Return the classes of all samples, of the nearest by the cosine first."""
    cosines = H @ query / np.linalg.norm(H, axis=1)
    order = [j for j in np.argsort(-cosines) if j != left_out]
    return [y[j] for j in order]


def rankings(H, y, H_test=None, y_test=None):
    """Return for each query its class and the ranked classes of the others."""
    if H_test is None:
        return [(y[i], ranked(H, y, H[i], left_out=i)) for i in range(len(H))]
    return [(y_test[i], ranked(H, y, H_test[i])) for i in range(len(H_test))]


def naive_accuracy(parts, k):
    def vote(classes):
        counts = Counter(classes[:k])
        return min(c for c in counts if counts[c] == max(counts.values()))

    return np.mean([vote(classes) == own for own, classes in rankings(*parts)])


def naive_recall(parts, k):
    return np.mean([own in classes[:k] for own, classes in rankings(*parts) if own in classes])


def naive_map_at_r(parts):
    found = []
    for own, classes in rankings(*parts):
        r = classes.count(own)
        if r:
            hits = [c == own for c in classes[:r]]
            found.append(sum(np.mean(hits[: m + 1]) * hits[m] for m in range(r)) / r)
    return np.mean(found)


seeds = pytest.mark.parametrize("seed", range(4))


@seeds
@pytest.mark.parametrize("entries", [1, 37, 10_000])
def test_measures_agree_with_loops_in_parts_of_any_size(seed, entries, monkeypatch):
    monkeypatch.setattr(_embeddings, "_ENTRIES", entries)
    data = drawn(seed)
    for parts in (data, data[:2]):
        for k in (1, 3, 10):
            assert knn_accuracy(*parts, n_neighbors=k) == pytest.approx(naive_accuracy(parts, k))
            assert recall_at_k(*parts, k=k) == pytest.approx(naive_recall(parts, k))
        assert map_at_r(*parts) == pytest.approx(naive_map_at_r(parts), rel=1e-12)


@seeds
@pytest.mark.parametrize("metric", ["cosine", "euclidean", "manhattan"])
def test_the_accuracy_is_that_of_scikit_learn(seed, metric):
    H, y, H_test, y_test = drawn(seed)
    classifier = KNeighborsClassifier(7, metric=metric)
    found = knn_accuracy(H, y, H_test, y_test, n_neighbors=7, metric=metric)
    assert found == classifier.fit(H, y).score(H_test, y_test)
    alone = (classifier.fit(H, y).predict(None) == y).mean()  # each without itself
    assert knn_accuracy(H, y, n_neighbors=7, metric=metric) == pytest.approx(alone)


def test_queries_whose_class_nobody_has_are_left_out_of_retrieval_and_wrong_in_the_vote():
    H, y = drawn(0)[:2]
    lone = np.append(y, 9)
    with_lone = np.vstack([H, 100 * np.ones(5)])
    assert recall_at_k(H, y, with_lone, lone) == recall_at_k(H, y, H, y) == 1
    assert knn_accuracy(H, y, with_lone, lone, n_neighbors=1) == 50 / 51
    for measure in (recall_at_k, map_at_r):
        with pytest.raises(ValueError, match="No query has another sample"):
            measure(H[:4], [0, 1, 2, 3])


@pytest.mark.parametrize("point", [0.0, 1.0])
def test_collapsed_embeddings_find_classmates_by_chance_only(point):
    y = np.repeat(np.arange(10), 40)
    H = np.full((400, 3), point)
    assert recall_at_k(H, y, k=1) <= 0.2
    assert knn_accuracy(H, y) == pytest.approx(0.1, abs=0.02)
    assert map_at_r(H, y) < 0.1


def test_there_are_at_most_as_many_neighbours_as_samples_besides_the_query():
    H, y, H_test, y_test = drawn(0)
    largest = np.bincount(y).argmax()
    every = knn_accuracy(H, y, H_test, y_test, n_neighbors=50)
    assert every == (y_test == largest).mean()
    assert recall_at_k(H, y, k=49) == 1
    with pytest.raises(ValueError, match="n_neighbors must be at most 49, the number"):
        knn_accuracy(H, y, n_neighbors=50)
    with pytest.raises(ValueError, match="n_neighbors must be at most 50, the number"):
        knn_accuracy(H, y, H_test, y_test, n_neighbors=51)
    with pytest.raises(ValueError, match="k must be at most 49"):
        recall_at_k(H, y, k=50)
    with pytest.raises(ValueError, match=r"'k' parameter of recall_at_k must be .* Got 0"):
        recall_at_k(H, y, k=0)
