"""The nearest samples: against a full matrix of distances, in parts of any size."""

import numpy as np
import pytest

from skcontrast.metrics import _embeddings  # private: sizes of the parts
from skcontrast.metrics._embeddings import on_sphere  # private: the search in tiles
from skcontrast.metrics._neighbors import nearest  # private: the search in tiles

RNG = np.random.default_rng(0)
H, QUERIES = RNG.normal(size=(30, 5)), RNG.normal(size=(12, 5))


def gathered(*args, **kwargs):
    parts = list(nearest(*args, **kwargs))
    assert [rows.start for rows, _ in parts] == [0, *(rows.stop for rows, _ in parts[:-1])]
    return np.concatenate([found for _, found in parts])


def cosine_distances(a, b):
    a, b = (z / np.linalg.norm(z, axis=1, keepdims=True) for z in (a, b))
    return 1 - a @ b.T


def euclidean_distances(a, b):
    return np.linalg.norm(a[:, None] - b, axis=2)


METRICS = {"cosine": cosine_distances, "euclidean": euclidean_distances}


@pytest.mark.parametrize("entries", [1, 25, 10_000])
@pytest.mark.parametrize("metric", METRICS)
def test_neighbours_are_those_of_the_full_matrix(metric, entries, monkeypatch):
    monkeypatch.setattr(_embeddings, "_ENTRIES", entries)
    distances = METRICS[metric]
    expected = distances(QUERIES, H).argsort(axis=1)[:, :6]
    assert np.array_equal(gathered(H, QUERIES, 6, metric), expected)
    alone = distances(H, H) + np.diag(np.full(len(H), np.inf))
    assert np.array_equal(gathered(H, None, 6, metric), alone.argsort(axis=1)[:, :6])


def test_any_metric_of_scikit_learn_is_taken():
    by_name = gathered(H, QUERIES, 3, "manhattan")
    assert np.array_equal(by_name, gathered(H, QUERIES, 3, lambda a, b: np.abs(a - b).sum()))
    with pytest.raises(ValueError, match="metric"):
        gathered(H, QUERIES, 3, "cosin")


@pytest.mark.parametrize("metric", METRICS)
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
    assert np.allclose(on_sphere(lengths * H), on_sphere(H), rtol=1e-12)
    assert on_sphere(H.astype(np.float32)).dtype == np.float32
    assert (on_sphere(np.zeros((2, 3))) == 0).all()
