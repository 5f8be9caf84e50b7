"""How well samples keep their neighbours from view to view: `score`."""

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast._inference import embedded_views, score_views  # private: a score from parts
from skcontrast.augmentation import GaussianNoise, MarginalCorruption
from skcontrast.losses import DCL
from skcontrast.metrics import alignment, make_view_scorer, neighbor_agreement
from skcontrast.similarity import Cosine
from tests.common import X_DIGITS, small

CPU = torch.device("cpu")


def test_score_rises_with_training_and_repeats():
    short, long = small(max_epochs=1).fit(X_DIGITS), small(max_epochs=30).fit(X_DIGITS)
    assert 0 < short.score(X_DIGITS) < long.score(X_DIGITS) < 1
    assert long.score(X_DIGITS) == long.score(X_DIGITS)


@pytest.mark.parametrize(
    "change",
    [
        {"augmentation": GaussianNoise(0.01)},
        {"similarity": Cosine(5.0)},
        {"loss": DCL(tau_plus=0.2)},
        {"batch_size": 64},
    ],
    ids=str,
)
def test_the_score_of_given_weights_does_not_depend_on_how_they_were_trained(change):
    embedder, other = small().fit(X_DIGITS), small(**change).fit(X_DIGITS)
    for part in ("encoder_", "projector_"):
        getattr(other, part).load_state_dict(getattr(embedder, part).state_dict())
    assert other.score(X_DIGITS) == embedder.score(X_DIGITS)


def test_the_score_is_that_of_what_transform_returns():
    embedder = small().fit(X_DIGITS)
    h_score, z_score = (
        embedder.set_params(output=output).score(X_DIGITS)
        for output in ("representation", "projection")
    )
    assert h_score != z_score


def test_the_score_is_the_agreement_of_neighbours_in_views_of_the_default_augmentation():
    embedder = small(augmentation=GaussianNoise(0.01)).fit(X_DIGITS)
    scorer = make_view_scorer(neighbor_agreement, augmentation=MarginalCorruption(0.3))
    assert scorer(embedder, X_DIGITS) == embedder.score(X_DIGITS)


def views_of(n, noise):
    X = torch.randn(n, 8, generator=torch.Generator().manual_seed(0))

    def draw(batch, generator):
        return batch + noise * torch.randn(batch.shape, generator=generator)

    return nn.Identity(), draw, n, lambda rows: X[rows], CPU


def test_a_score_is_the_mean_over_samples_whatever_the_parts():
    parts = list(embedded_views(*views_of(1500, 0.3)))
    assert len(parts) == 2
    whole = alignment(*np.concatenate(parts, axis=1))
    assert score_views(alignment, embedded_views(*views_of(1500, 0.3)), 1500) == pytest.approx(
        whole, rel=1e-6
    )


@pytest.mark.parametrize("n", [2, 256, 257, 1024, 1025, 2500])
def test_every_sample_counts_once_in_parts_of_nearly_one_size(n):
    def read(rows):
        return torch.from_numpy(rows.astype(np.float32))[:, None]

    parts = list(embedded_views(nn.Identity(), lambda b, generator: b, n, read, CPU))
    assert sorted(row for z in parts for row in z[0, :, 0]) == list(range(n))
    sizes = [z.shape[1] for z in parts]
    assert max(sizes) <= 1024 and max(sizes) - min(sizes) <= 1


def test_a_part_is_spread_over_samples_that_are_sorted():
    def read(rows):
        return torch.from_numpy(rows.astype(np.float32))[:, None]

    for z in embedded_views(nn.Identity(), lambda b, generator: b, 2048, read, CPU):
        assert abs(z.mean() - 1023.5) < 1
