"""Scores of embeddings, with the truth that labels tell."""

import numpy as np
import pytest
import torch

from skcontrast.estimation import ScoreSample
from skcontrast.similarity import Cosine, DotProduct
from tests.common import random_views

Y = np.array([0, 1, 0, 1, 2, 0, 2])


def naive(views, y, temperature):
    """Return scores and truth of every anchor by loops."""
    u = torch.nn.functional.normalize(torch.stack(views), dim=-1).numpy()
    scores, is_negative = [], []
    for v in range(len(u)):
        for i in range(len(y)):
            others = [(w, j) for w in range(len(u)) for j in range(len(y)) if j != i]
            scores.append([u[v, i] @ u[w, j] / temperature for w, j in others])
            is_negative.append([y[i] != y[j] for _, j in others])
    return np.array(scores), np.array(is_negative)


@pytest.mark.parametrize("n_views", [2, 3])
def test_candidates_are_all_views_of_the_other_samples(n_views):
    views = random_views(7, 5, n_views)
    sample = ScoreSample.from_views(*views, y=Y, similarity=Cosine(0.3))
    scores, is_negative = naive(views, Y, 0.3)
    np.testing.assert_allclose(sample.scores, scores)
    np.testing.assert_array_equal(sample.is_negative, is_negative)
    assert sample.positives.shape == (7 * n_views, n_views - 1)
    assert sample.lower_bound == pytest.approx(-1 / 0.3)


def test_classmates_are_the_other_views_of_the_next_sample_of_the_class():
    z1, z2 = random_views(7, 5)
    following = np.array([2, 3, 5, 1, 6, 0, 4])
    sample = ScoreSample.from_views(z1, z2, y=Y, similarity=DotProduct(), positives="same class")
    expected = torch.cat([(z1 * z2[following]).sum(1), (z2 * z1[following]).sum(1)])
    np.testing.assert_allclose(sample.positives[:, 0], expected)
    plain = ScoreSample.from_views(z1, z2, y=Y, similarity=DotProduct())
    np.testing.assert_array_equal(sample.scores, plain.scores)
    assert sample.lower_bound == -np.inf


@pytest.mark.parametrize("positives", ["views", "same class"])
def test_samples_of_unknown_class_are_left_out(positives):
    views = random_views(7, 5)
    y = np.where(np.arange(7) == 5, -1, Y)
    some = ScoreSample.from_views(*views, y=y, positives=positives)
    rest = [view[y >= 0] for view in views]
    expected = ScoreSample.from_views(*rest, y=y[y >= 0], positives=positives)
    for a, b in zip(some, expected, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"y": [0, 1]}, "one entry per sample, 7, got 2"),
        ({"y": np.full(7, -1)}, "classes of two samples, got 0"),
        ({"y": np.arange(7), "positives": "same class"}, "needs two samples of each class"),
        ({"y": Y, "positives": "both"}, "'positives' parameter of .* Got 'both'"),
    ],
)
def test_bad_input_is_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        ScoreSample.from_views(*random_views(7, 5), **kwargs)
    with pytest.raises(ValueError, match="At least 2 views are needed, got 1"):
        ScoreSample.from_views(random_views(7, 5)[0], y=Y)
