"""Which rows to label: one of each cluster that has no label, the same in every call."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_blobs
from sklearn.linear_model import LogisticRegression

# private: sizes of the parts
from skcontrast import _labeling, rows_to_label

X, Y = make_blobs(120, 5, centers=6, cluster_std=0.05, random_state=0)


def test_there_is_one_row_of_each_cluster():
    rows = rows_to_label(X, 6, random_state=0)
    assert rows.dtype == np.int64 and sorted(Y[rows]) == list(range(6))


def naive_cover(H, n, known, weights):
    """Return the rows that cover most, by loops."""
    z = H - H.mean(0)
    z /= np.linalg.norm(z, axis=1, keepdims=True)
    free = [i for i in range(len(z)) if known[i] < 0]
    labeled = [i for i in range(len(z)) if known[i] >= 0]

    def squared(i, j):
        return ((z[i] - z[j]) ** 2).sum()

    scale = np.median([sorted(squared(i, j) for j in free)[10] for i in free])
    kernel = np.array([[np.exp(-squared(i, j) / scale) for j in free] for i in free])
    cover = np.array([max(np.exp(-squared(i, j) / scale) for j in labeled) for i in free])
    rows = []
    for _ in range(n):
        gains = [(weights[free] * np.maximum(k - cover, 0)).sum() for k in kernel]
        gains = [-1 if i in rows else gain for i, gain in zip(free, gains, strict=True)]
        best = int(np.argmax(gains))
        rows.append(free[best])
        cover = np.maximum(cover, kernel[best])
    return rows


@pytest.mark.parametrize("weighted", [False, True])
def test_with_labels_rows_cover_what_no_label_covers(weighted):
    rng = np.random.default_rng(0)
    H, known = rng.normal(size=(60, 4)), np.where(np.arange(60) % 9, -1, 1)
    weights = rng.random(60) if weighted else np.ones(60)
    given = np.where(known < 0, weights, np.nan) if weighted else None
    rows = rows_to_label(H, 8, known, uncertainty=given)
    assert rows.tolist() == naive_cover(H, 8, known, weights)


def test_of_many_rows_a_sample_is_covered(monkeypatch):
    monkeypatch.setattr(_labeling, "_MOST_COVERED", 50)
    monkeypatch.setattr(_labeling, "_CHUNK", 20)
    known = np.where(np.arange(120) == np.argmax(Y == 0), 0, -1)
    rows = rows_to_label(X, 5, known, random_state=0)
    assert sorted(Y[rows]) == [1, 2, 3, 4, 5]
    assert len(rows_to_label(X, 60, known, random_state=0)) == 60


@pytest.mark.parametrize(
    "uncertainty", [np.ones(119), np.full(120, np.nan), -np.ones(120), "much", np.ones((120, 2))]
)
def test_uncertainties_that_are_no_weights_are_refused(uncertainty):
    with pytest.raises(ValueError, match="uncertainty must be 120 numbers ≥ 0, one for each row"):
        rows_to_label(X, 2, np.where(np.arange(120) < 5, Y, -1), uncertainty=uncertainty)


def test_without_labels_uncertainty_is_refused():
    with pytest.raises(ValueError, match="uncertainty must be None without labels"):
        rows_to_label(X, 2, uncertainty=np.ones(120))


def test_clusters_with_a_label_get_no_other():
    known = np.full(len(X), None)
    known[[np.argmax(of == Y) for of in (0, 2, 3)]] = "a"
    assert sorted(Y[rows_to_label(X, 3, known, random_state=0)]) == [1, 4, 5]


def test_the_largest_clusters_come_first():
    sizes = [5, 40, 20]
    points, y = make_blobs(sizes, 5, cluster_std=0.05, random_state=1)
    assert y[rows_to_label(points, 3, random_state=0)].tolist() == [1, 2, 0]


def test_the_row_is_in_the_middle_of_its_cluster():
    rows = np.arange(20)
    points = np.linspace(0, 1, 20)[:, None]
    middle = _labeling._medoid(points, rows, np.random.RandomState(0))
    assert middle in (9, 10)


def test_random_state_determines_the_rows():
    first, again, other = (rows_to_label(X, 9, random_state=seed) for seed in (0, 0, 1))
    assert (first == again).all() and set(first) != set(other)


@pytest.mark.parametrize("most", [0, 10**7])
def test_rows_differ_and_have_no_label_also_where_samples_are_equal(most, monkeypatch):
    monkeypatch.setattr(_labeling, "_MOST", most)
    equal = np.repeat(np.eye(3), 6, axis=0)
    known = np.where(np.arange(18) % 2, -1, 0)
    rows = rows_to_label(equal, 9, known, random_state=0)
    assert sorted(rows) == list(range(1, 18, 2))


def test_all_rows_can_be_asked_for():
    assert sorted(rows_to_label(X[:7], 7, random_state=0)) == list(range(7))


def test_digits_are_told_apart_by_ten_labels_better_than_by_random_ones():
    digits, y = load_digits(return_X_y=True)

    def accuracy(rows):
        return (
            LogisticRegression(max_iter=1000).fit(digits[rows] / 16, y[rows]).score(digits / 16, y)
        )

    chosen = [accuracy(rows_to_label(digits, 10, random_state=seed)) for seed in range(2)]
    draws = [np.random.default_rng(seed).choice(len(y), 10, replace=False) for seed in range(10)]
    assert np.mean(chosen) > np.mean([accuracy(rows) for rows in draws]) + 0.1


@pytest.mark.parametrize(
    ("n", "y", "message"),
    [
        (121, None, "n must be at most 120, the number of unlabeled rows"),
        (2, np.zeros(120), "n must be at most 0"),
        (2, np.zeros(119), r"y must have an entry per row, 120, got 119.*known\[rows\] = y"),
    ],
)
def test_what_cannot_be_is_refused(n, y, message):
    with pytest.raises(ValueError, match=message):
        rows_to_label(X, n, y)


def test_embeddings_whose_variance_overflows_are_refused_by_name():
    with pytest.raises(ValueError, match="H must be embeddings"):
        rows_to_label(X * 1e160, 3)
