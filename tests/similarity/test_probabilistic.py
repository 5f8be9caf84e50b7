"""A similarity with concentrations: what it must offer, and what it then gets."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from scipy import stats
from torch.nn import functional as F

from skcontrast import ContrastiveEmbedder, contrastive_loss
from skcontrast.encoders import MLP
from skcontrast.frameworks import CMC, MoCo
from skcontrast.schedules import interval
from skcontrast.similarity import (
    ProbabilisticSimilarity,
    Similarity,
    VonMisesFisher,
)
from skcontrast.similarity._bessel import ratio_of_square
from skcontrast.similarity._probabilistic import draw_von_mises_fisher

X = np.random.default_rng(0).normal(size=(60, 5))


def small(**kwargs):
    settings = {"encoder": MLP(widths=(8,)), "projection_dim": 4, "max_epochs": 2}
    return ContrastiveEmbedder(**settings | {"batch_size": 30, "random_state": 0} | kwargs)


class WeightedCosine(ProbabilisticSimilarity):
    """κ_i κ_j cos θ, with the least that a similarity with concentrations must implement."""

    def concentrations(self, x, d):
        return F.softplus(x)

    def embed(self, z):
        mu, kappa = self.distribution(z)
        return mu * kappa[..., None]


class Overlap(ProbabilisticSimilarity):
    """−|κ_i μ_i − κ_j μ_j|² / t: a score that autograd differentiates, with two numbers for κ."""

    n_extra = 2
    _parameter_constraints = {"temperature": interval(0, None, "neither")}

    def __init__(self, temperature=2.0):
        self.temperature = temperature

    def concentrations(self, x, d):
        return F.softplus(x).sum(-1)

    def embed(self, z):
        mu, kappa = self.distribution(z)
        return mu * kappa[..., None]

    def scores(self, u, v):
        return -(u[:, None] - v).square().sum(-1) / self.temperature

    def draw(self, mu, kappa, n, rng):
        return np.repeat(mu[:, None], n, axis=1)


OWN = [WeightedCosine(), Overlap()]


@pytest.mark.parametrize("framework", [None, MoCo(queue_size=30), CMC()], ids=repr)
@pytest.mark.parametrize("similarity", OWN, ids=repr)
def test_a_similarity_with_concentrations_gives_all_that_von_mises_fisher_gives(
    similarity, framework
):
    embedder = small(similarity=similarity, framework=framework).fit(X)
    kappa = embedder.concentration(X)
    assert kappa.shape == (60,) and (kappa >= 0).all() and np.isfinite(kappa).all()
    draws = embedder.sample(X[:3], 6, random_state=0)
    assert draws.shape == (3, 6, 4)
    np.testing.assert_allclose(np.linalg.norm(draws, axis=2), 1, rtol=1e-5)
    assert embedder.log_score(X[:3], X[:7]).shape == (3, 7)
    again = pickle.loads(pickle.dumps(embedder))
    np.testing.assert_array_equal(again.concentration(X), kappa)


def test_draws_are_those_of_the_similarity():
    embedder = small(similarity=Overlap(), output="projection").fit(X)
    draws = embedder.sample(X[:4], 2, random_state=0)
    np.testing.assert_allclose(draws[:, 0], embedder.transform(X[:4]), rtol=1e-5, atol=1e-6)


def test_pairs_is_the_diagonal_of_scores():
    u, v = torch.randn(2, 6, 3, generator=torch.Generator().manual_seed(0)).unbind()
    expected = Overlap().scores(u, v).diagonal()
    torch.testing.assert_close(Overlap().pairs(u, v), expected)


def test_log_score_is_without_temperature():
    embedder = small(similarity=Overlap(temperature=5.0)).fit(X)
    view = embedder._distributions(X[:6])
    expected = Overlap(temperature=1.0)(view, view)
    np.testing.assert_allclose(embedder.log_score(X[:6]), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("similarity", [*OWN, VonMisesFisher()], ids=repr)
def test_tuples_and_the_output_of_the_network_are_the_same_embeddings(similarity):
    z = torch.randn(6, 4 + similarity.n_extra, generator=torch.Generator().manual_seed(0))
    mu, kappa = similarity.distribution(z)
    torch.testing.assert_close(similarity((mu, kappa), (mu, kappa)), similarity(z, z))
    torch.testing.assert_close(similarity.directions(z), mu)
    x = similarity.bank_vectors(z)[:, 4:]
    assert x.equal(z[:, 4:])


@pytest.mark.parametrize("kappa", [-1.0, float("nan"), float("inf")])
def test_concentrations_out_of_range_are_refused(kappa):
    view = torch.eye(3), torch.full((3,), kappa)
    with pytest.raises(ValueError, match="concentrations of view 1 must be finite and at least 0"):
        contrastive_loss(view, view, similarity=WeightedCosine())


# What is missing is named


class WithoutConcentrations(ProbabilisticSimilarity):
    def embed(self, z):
        return self.distribution(z)[0]


class WithoutEmbed(ProbabilisticSimilarity):
    def concentrations(self, x, d):
        return F.softplus(x)


class Nothing(Similarity):
    pass


@pytest.mark.parametrize(
    "similarity, method",
    [
        (WithoutConcentrations(), r"concentrations\(x, d\): it maps"),
        (WithoutEmbed(), r"embed\(z\): it maps"),
        (Nothing(), r"embed\(z\): it maps"),
    ],
)
def test_a_missing_method_is_named(similarity, method):
    name = type(similarity).__name__
    with pytest.raises(NotImplementedError, match=f"{name} must implement {method}"):
        small(similarity=similarity).fit(X)


N = 40_000


def some_directions(n, d):
    mu = np.random.default_rng(0).normal(size=(n, d))
    return mu / np.linalg.norm(mu, axis=1, keepdims=True)


@pytest.mark.parametrize("d", [2, 3, 16, 128])
@pytest.mark.parametrize("kappa", [0.0, 0.5, 20.0, 1e3, 1e6])
def test_cosines_have_the_mean_and_variance_of_the_distribution(d, kappa):
    mu = some_directions(2, d)
    points = draw_von_mises_fisher(mu, np.full(2, kappa), N, np.random.RandomState(0))
    np.testing.assert_allclose(np.linalg.norm(points, axis=2), 1, rtol=1e-9)
    k = torch.tensor(kappa, dtype=torch.float64, requires_grad=True)
    a = k * ratio_of_square(k.square(), d)  # the mean cosine
    (variance,) = torch.autograd.grad(a, k)
    away = 1 - (points * mu[:, None]).sum(2)
    error = away.mean(1) - (1 - a.item())
    assert (np.abs(error) < 5 * np.sqrt(variance.item() / N) + 1e-12).all()
    if kappa < 1e5:  # beyond, 1 − cos is lost in the rounding of the cosine
        np.testing.assert_allclose(away.var(1), variance.item(), rtol=0.08)


def test_in_three_dimensions_the_cosine_has_its_distribution():
    kappa, mu = 4.0, some_directions(1, 3)
    points = draw_von_mises_fisher(mu, np.array([kappa]), N, np.random.RandomState(1))
    cosines = (points[0] * mu).sum(1)
    cdf = (np.exp(kappa * np.sort(cosines)) - np.exp(-kappa)) / (2 * np.sinh(kappa))
    assert stats.kstest(cdf, "uniform").pvalue > 0.01


def test_directions_around_the_mean_are_uniform():
    mu = np.eye(4)[:1]
    points = draw_von_mises_fisher(mu, np.array([7.0]), N, np.random.RandomState(2))[0]
    around = points[:, 1:] / np.linalg.norm(points[:, 1:], axis=1, keepdims=True)
    np.testing.assert_allclose(around.mean(0), 0, atol=0.02)
    np.testing.assert_allclose(around.T @ around / N, np.eye(3) / 3, atol=0.02)


def test_without_a_direction_draws_are_uniform():
    points = draw_von_mises_fisher(np.zeros((1, 3)), np.array([50.0]), N, np.random.RandomState(4))
    np.testing.assert_allclose(np.linalg.norm(points, axis=2), 1, rtol=1e-9)
    np.testing.assert_allclose(points[0].T @ points[0] / N, np.eye(3) / 3, atol=0.02)


def test_nan_is_passed_on():
    kappa = np.array([3.0, np.nan])
    points = draw_von_mises_fisher(np.eye(3)[:2], kappa, 2, np.random.RandomState(5))
    assert np.isfinite(points[0]).all() and np.isnan(points[1]).all()


def test_each_distribution_has_its_own_concentration():
    mu, kappa = some_directions(3, 5), np.array([0.1, 10.0, 1000.0])
    points = draw_von_mises_fisher(mu, kappa, N, np.random.RandomState(3))
    kappas = torch.from_numpy(kappa)
    expected = (kappas * ratio_of_square(kappas.square(), 5)).numpy()
    np.testing.assert_allclose((points * mu[:, None]).sum(2).mean(1), expected, atol=0.02)
