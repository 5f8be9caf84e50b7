"""A similarity of one's own: what it must offer, and what is found of what it overrides."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from skcontrast import contrastive_loss
from skcontrast.losses import BCL, PositiveDebiased
from skcontrast.similarity import Cosine, DotProduct, Similarity, VonMisesFisher
from tests.common import small, vectors


class Distance(Similarity):
    bounds = (-4.0, 0.0)

    def embed(self, z):
        return F.normalize(z, dim=-1)

    def scores(self, u, v):
        return -(u[:, None] - v).square().sum(-1)


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
    for similarity in (Distance(), DotProduct()):
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
    assert np.isfinite(
        small(similarity=Distance(), loss=loss).fit(vectors()).history_[-1]["train_loss"]
    )
