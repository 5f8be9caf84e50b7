"""Samples through a network in portions."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

# private: a network without a fit, a score from parts
from skcontrast._inference import embedded_views, encode, score_views
from skcontrast.augmentation import GaussianNoise, MarginalCorruption
from skcontrast.encoders import MLP, ConvNet
from skcontrast.estimation import project_views
from skcontrast.kinds import Vectors
from skcontrast.kinds._recognise import recognised  # private: rows of one call
from skcontrast.losses import DCL
from skcontrast.metrics import alignment, make_view_scorer, neighbor_agreement
from skcontrast.similarity import Cosine
from tests.common import X_DIGITS, small, vectors
from tests.graphs.common import packed_arrays


def in_batches(module, X, n):
    """Return the output of a module for samples, n at a time."""
    return encode(module, X, SimpleNamespace(rows_per_call=lambda X: n), torch.from_numpy)


def test_many_small_samples_and_few_large_ones_per_call():
    def of_shape(*shape):
        X = np.broadcast_to(np.float32(0), (9, *shape))
        return recognised(X)[0].rows_per_call(X)

    assert of_shape(2) == 2**14
    assert of_shape(3, 32, 32) == 341
    assert of_shape(3, 1000, 1000) == 32
    graphs = packed_arrays(np.empty((2, 0)), [0, 2**14, 2**15])
    assert recognised(graphs)[0].rows_per_call(graphs) == 2


@pytest.mark.parametrize("shape", [(64,), (3, 16, 16)])
def test_a_row_does_not_depend_on_the_rows_that_it_comes_with_up_to_rounding(shape):
    X = np.random.default_rng(0).normal(size=(100, *shape)).astype(np.float32)
    module = (MLP() if len(shape) == 1 else ConvNet()).build(shape)
    whole = in_batches(module, X, 100)
    for n in (1, 2, 15, 50):
        np.testing.assert_allclose(in_batches(module, X[:n], n), whole[:n], rtol=1e-4, atol=1e-5)


class Powers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 4)

    def forward(self, x):
        return self.layer(x).pow(8)


def test_an_embedding_that_is_not_finite_is_refused_by_the_name_of_its_sample():
    embedder = small(encoder=Powers(), kind=Vectors(standardize=False), augmentation=[]).fit(
        vectors()
    )
    X = vectors().astype(np.float32)
    X[[7, 9]] = 1e30
    for refused in (embedder.transform, lambda X: project_views(embedder, X)):
        with pytest.raises(ValueError, match=r"infinity for 2 of 60 samples, first for X\[7\]"):
            refused(X)
    with pytest.raises(ValueError, match=r"The network returns NaN or infinity"):
        embedder.score(X)
    X[[7, 9]] = 0
    assert np.isfinite(embedder.transform(X)).all()


def test_finite_embeddings_whose_sum_overflows_are_returned():
    h = np.full((4, 3), 3e38, dtype=np.float32)
    assert np.array_equal(in_batches(nn.Identity(), h, 2), h)


# Scores of two views


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
