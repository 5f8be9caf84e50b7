"""A similarity of one's own: what it must offer, and what is found of what it overrides."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from skcontrast import contrastive_loss
from skcontrast.losses import BCL, DCL, HCL, InfoNCE, PositiveDebiased, SupCon
from skcontrast.similarity import Cosine, DotProduct, Similarity, check_similarity
from tests.common import random_views, small, vectors


class Distance(Similarity):
    def bounds(self, width):
        return -4.0, 0.0

    def embed(self, z):
        return F.normalize(z, dim=-1)

    def scores(self, u, v):
        return -(u[:, None] - v).square().sum(-1)


def test_a_cosine_with_other_scores_is_not_trained_as_the_cosine():
    class Squared(Cosine):
        def bounds(self, width):
            return 0.0, 4.0

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
        def bounds(self, width):
            return -float(width), float(width)

    assert Distance().self_scores(torch.eye(3)) == 0.0
    assert ByWidth().self_scores(torch.eye(3)) == 3.0


@pytest.mark.parametrize("loss", [BCL(), PositiveDebiased()], ids=repr)
def test_bounds_are_enough_for_every_loss(loss):
    history = small(similarity=Distance(), loss=loss).fit(vectors()).history_
    assert np.isfinite(history[-1]["train_loss"])


class Euclidean(Similarity):
    """Minus the distance; the small number keeps its slope finite where a vector meets itself."""

    def bounds(self, width):
        return -math.inf, 0.0

    def embed(self, z):
        return z

    def scores(self, u, v):
        return -((u[:, None] - v).square().sum(-1) + 1e-12).sqrt()

    def pairs(self, u, v):
        return -((u - v).square().sum(-1) + 1e-12).sqrt()


@pytest.mark.parametrize("loss", [InfoNCE(), HCL(beta=0.7), BCL(), SupCon()], ids=repr)
def test_excluded_pairs_are_not_differentiated(loss):
    options = {"y": torch.arange(6) % 3} if loss.requires_y else {}
    options |= {"loss": loss, "similarity": Euclidean()}
    z = torch.stack(random_views(6, 3)).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: contrastive_loss(*z, **options), z)


@pytest.mark.parametrize(
    "low, high, score", [(-4.0, 0.0, "0.99"), (0.5, 4.0, "-0"), (-0.5, 0.5, "0.99")]
)
def test_bounds_that_are_too_narrow_are_refused(low, high, score):
    class Sphere(Similarity):
        def bounds(self, width):
            return low, high

        def embed(self, z):
            return torch.nn.functional.normalize(z, dim=-1)

    message = rf"score of {score}.* for .*, but Sphere.bounds is .{low:g}, {high:g}\]"
    with pytest.raises(ValueError, match=message):
        check_similarity(Sphere())


def test_without_bounds_the_floor_is_zero():
    class Unbounded(Similarity):
        def embed(self, z):
            return z

    views = random_views(6, 3)
    assert contrastive_loss(*views, similarity=Unbounded()).isfinite()
    expected = contrastive_loss(*views, loss=DCL(), similarity=DotProduct())
    torch.testing.assert_close(
        contrastive_loss(*views, loss=DCL(), similarity=Unbounded()), expected
    )


def test_an_infinite_slope_is_found_by_the_check():
    class Unsmoothed(Euclidean):
        def scores(self, u, v):
            return -(u[:, None] - v).square().sum(-1).sqrt()

        def pairs(self, u, v):
            return -(u - v).square().sum(-1).sqrt()

    check_similarity(Euclidean())
    with pytest.raises(ValueError, match=r"Unsmoothed\.scores .* finite gradient.* 1e-12"):
        check_similarity(Unsmoothed())


def test_a_missing_method_is_named():
    class Nothing(Similarity):
        pass

    with pytest.raises(NotImplementedError, match=r"Nothing must implement embed\(z\)"):
        Nothing()(torch.eye(2), torch.eye(2))
