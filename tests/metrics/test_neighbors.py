"""Neighbours that share a class, against naive loops and scikit-learn."""

from collections import Counter

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

# private: sizes of the parts
from skcontrast.metrics import _embeddings, knn_accuracy, map_at_r, recall_at_k
from skcontrast.metrics._embeddings import on_sphere  # private: the search in tiles
from skcontrast.metrics._neighbors import nearest  # private: the search in tiles


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


# The search


RNG = np.random.default_rng(0)
EMBEDDINGS, QUERIES = RNG.normal(size=(30, 5)), RNG.normal(size=(12, 5))


def gathered(*args, **kwargs):
    parts = list(nearest(*args, **kwargs))
    assert [rows.start for rows, _ in parts] == [0, *(rows.stop for rows, _ in parts[:-1])]
    return np.concatenate([found for _, found in parts])


def test_any_metric_of_scikit_learn_is_taken():
    by_name = gathered(EMBEDDINGS, QUERIES, 3, "manhattan")
    assert np.array_equal(
        by_name, gathered(EMBEDDINGS, QUERIES, 3, lambda a, b: np.abs(a - b).sum())
    )
    with pytest.raises(ValueError, match="metric"):
        gathered(EMBEDDINGS, QUERIES, 3, "cosin")


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_a_sample_is_not_its_own_neighbour_even_among_copies(metric):
    copies = np.ones((50, 3))
    for k in (1, 7, 49):
        found = gathered(copies, None, k, metric)
        assert found.shape == (50, k)
        assert not (found == np.arange(50)[:, None]).any()
        assert all(len(set(row)) == k for row in found)


def test_copies_are_found_in_an_order_that_the_seed_sets():
    copies = np.ones((50, 3))
    first, again, other = (gathered(copies, None, 5, seed=seed) for seed in (0, 0, 1))
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert set(first[0]) != set(range(5)) != set(range(1, 6))


def test_rows_of_zeros_are_orthogonal_to_others_and_equal_to_each_other():
    some = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.1], [1.0, 0.2], [0.0, 0.0]])
    found = gathered(some, None, 4)
    assert found[0, 0] == 4 and found[4, 0] == 0
    assert found[1, 0] == 3 and set(found[1, 1:3]) == {0, 4} and found[1, 3] == 2


def test_lengths_do_not_matter_and_precision_is_kept():
    lengths = RNG.uniform(1e-30, 1e30, size=(30, 1))
    assert np.allclose(on_sphere(lengths * EMBEDDINGS), on_sphere(EMBEDDINGS), rtol=1e-12)
    assert on_sphere(EMBEDDINGS.astype(np.float32)).dtype == np.float32
    assert (on_sphere(np.zeros((2, 3))) == 0).all()
