"""A similarity of one's own: what it must offer, and what it then gets."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from skcontrast import ContrastiveEmbedder, contrastive_loss
from skcontrast.encoders import MLP
from skcontrast.frameworks import CMC, MoCo
from skcontrast.losses import BCL, PositiveDebiased
from skcontrast.similarity import (
    Cosine,
    DotProduct,
    ProbabilisticSimilarity,
    Similarity,
    VonMisesFisher,
)

X = np.random.default_rng(0).normal(size=(60, 5))


def small(**kwargs):
    settings = {"encoder": MLP(hidden=(8,)), "projection_dim": 4, "max_epochs": 2}
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


class Distance(Similarity):
    bounds = (-4.0, 0.0)

    def embed(self, z):
        return F.normalize(z, dim=-1)

    def scores(self, u, v):
        return -(u[:, None] - v).square().sum(-1)


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
    x = similarity.remembered(z)[:, 4:]
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


def test_extra_numbers_without_distributions_are_refused_where_the_class_is_written():
    with pytest.raises(TypeError, match=r"Extra has n_extra=1.*ProbabilisticSimilarity"):

        class Extra(Similarity):
            n_extra = 1


@pytest.mark.parametrize("method", ["link", "pull_terms"])
def test_a_score_of_products_needs_its_gradient(method):
    def given(*args, **kwargs):
        raise AssertionError

    other = {"link": "pull_terms", "pull_terms": "link"}[method]
    with pytest.raises(TypeError, match=f"Linked has n_terms=1: it must implement {method}"):
        type("Linked", (Similarity,), {"n_terms": 1, other: given})


def test_scores_that_are_overridden_do_not_keep_the_other_forms_of_the_old_ones():
    scores = {"scores": lambda self, u, v: u @ v.T - 1}
    with pytest.raises(TypeError, match="overrides scores but inherits pairs"):
        type("Shifted", (VonMisesFisher,), scores)
    with pytest.raises(TypeError, match="overrides scores but inherits link"):
        type("Shifted", (VonMisesFisher,), scores | {"pairs": lambda self, u, v: None})


# What is overridden is found


def test_a_cosine_with_other_scores_is_not_trained_as_the_cosine():
    class Squared(Cosine):
        def scores(self, u, v):
            return (u @ v.T).square()

    assert Cosine().bilinear and DotProduct().bilinear and not Squared().bilinear
    z = [torch.randn(5, 3, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    assert torch.autograd.gradcheck(lambda *z: contrastive_loss(*z, similarity=Squared()), z)
    value = contrastive_loss(*z, similarity=Squared())
    similarity = Squared()
    u = torch.cat([similarity.embed(view) for view in z])
    scores = (u @ u.T).square().fill_diagonal_(-torch.inf)
    positives = scores.gather(1, torch.arange(10).roll(5)[:, None])[:, 0]
    assert value.item() == pytest.approx((scores.logsumexp(1) - positives).mean().item())


def test_pairs_is_the_diagonal_of_scores_unless_overridden():
    u, v = torch.randn(2, 6, 3, generator=torch.Generator().manual_seed(0)).unbind()
    for similarity in (Distance(), DotProduct(), Overlap()):
        expected = similarity.scores(u, v).diagonal()
        torch.testing.assert_close(similarity.pairs(u, v), expected)


def test_the_highest_score_is_the_upper_limit_of_the_width_at_hand():
    class ByWidth(DotProduct):
        def limits(self, u):
            return -float(u.shape[1]), float(u.shape[1])

    assert Distance().highest(torch.eye(3)) == 0.0
    assert ByWidth().highest(torch.eye(3)) == 3.0


@pytest.mark.parametrize("loss", [BCL(), PositiveDebiased()], ids=repr)
def test_bounds_are_enough_for_every_loss(loss):
    assert np.isfinite(small(similarity=Distance(), loss=loss).fit(X).history_[-1]["train_loss"])
