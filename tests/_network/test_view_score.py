"""How well views find each other: `score`."""

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast import contrastive_loss
from skcontrast._network._view_score import score_views
from skcontrast.similarity import Cosine
from tests.common import X_DIGITS, small


def test_score_rises_with_training_and_repeats():
    short, long = small(max_epochs=1).fit(X_DIGITS), small(max_epochs=30).fit(X_DIGITS)
    assert short.score(X_DIGITS) < long.score(X_DIGITS) < 0
    assert long.score(X_DIGITS) == long.score(X_DIGITS)


def test_score_compares_temperatures_on_one_scale():
    scores = [small(similarity=Cosine(t)).fit(X_DIGITS).score(X_DIGITS) for t in (0.05, 5.0)]
    assert abs(scores[0] - scores[1]) < 2


def identity_score(n, noise):
    X = torch.randn(n, 8, generator=torch.Generator().manual_seed(0))

    def draw(batch, generator):
        return batch + noise * torch.randn(batch.shape, generator=generator)

    return score_views(nn.Identity(), draw, n, lambda rows: X[rows], torch.device("cpu"))


def test_score_is_minus_infonce_of_two_views_at_one_half():
    X = torch.randn(20, 8, generator=torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(0)
    views = [X + 0.3 * torch.randn(X.shape, generator=generator) for _ in range(2)]
    expected = -contrastive_loss(*views, similarity=Cosine(0.5)).item()
    assert identity_score(20, 0.3) == pytest.approx(expected, rel=1e-6)


def test_score_falls_as_views_differ_more():
    scores = [identity_score(100, noise) for noise in (0.0, 0.5, 2.0)]
    assert scores[0] > scores[1] > scores[2]


@pytest.mark.parametrize("n", [2, 256, 257, 700])
def test_every_sample_counts_once_in_parts_of_nearly_one_size(n):
    seen = []

    def read(rows):
        seen.append(rows)
        return torch.eye(n)[rows]

    score_views(nn.Identity(), lambda batch, generator: batch, n, read, torch.device("cpu"))
    assert np.concatenate(seen).tolist() == list(range(n))
    sizes = [len(rows) for rows in seen]
    assert max(sizes) <= 256 and max(sizes) - min(sizes) <= 1
