"""Cosine, DotProduct and Cauchy."""

import math

import numpy as np
import pytest
import torch

from skcontrast import ContrastiveEmbedder, contrastive_loss
from skcontrast.frameworks import CMC, MoCo
from skcontrast.losses import PositiveDebiased
from skcontrast.similarity import Cauchy, Cosine, DotProduct
from tests.common import LOSSES, random_views, small, vectors


def test_is_the_cosine_over_the_temperature():
    u, v = random_views(6, 4)
    expected = torch.nn.functional.cosine_similarity(u[:, None], v[None], dim=-1) / 0.2
    torch.testing.assert_close(Cosine(0.2)(u, v), expected)


def test_a_vector_without_direction_scores_zero_and_gets_no_gradient():
    z = torch.tensor([[0.0, 0.0], [1e-12, 0.0], [1.0, 2.0]], requires_grad=True)
    scores = Cosine(0.5)(z, torch.eye(2))
    scores.sum().backward()
    assert (scores[:2] == 0).all()
    assert (z.grad[:2] == 0).all() and (z.grad[2] != 0).any()


def test_is_the_dot_product_of_what_the_network_returns():
    u, v = random_views(5, 4)
    assert DotProduct().embed(u) is u
    torch.testing.assert_close(DotProduct()(u, v), u @ v.T)
    torch.testing.assert_close(DotProduct().pairs(u, v), (u @ v.T).diagonal())
    assert DotProduct().bounds(u.shape[1]) == (-math.inf, math.inf)


def test_is_minus_the_logarithm_of_one_plus_the_squared_distance():
    u, v = random_views(6, 2)
    torch.testing.assert_close(Cauchy()(u, v), -torch.log(1 + torch.cdist(u, v) ** 2))


def test_t_simcne_is_infonce_with_it():
    # Böhm et al. 2023, equation 2: q = 1 / (1 + |z_i - z_j|²), over the 2n - 1 others.
    z = torch.cat(random_views(5, 2))
    q = (1 / (1 + torch.cdist(z, z) ** 2)).fill_diagonal_(0)
    positives = q.gather(1, torch.arange(10).roll(5)[:, None])[:, 0]
    expected = -(positives / q.sum(1)).log().mean()
    found = contrastive_loss(z[:5], z[5:], similarity=Cauchy())
    torch.testing.assert_close(found, expected)


def test_near_points_score_as_the_squared_distance_and_far_ones_as_its_logarithm():
    origin = torch.zeros(1, 2, dtype=torch.float64)
    near, far = (torch.tensor([[r, 0.0]], dtype=torch.float64) for r in (1e-4, 1e6))
    assert Cauchy()(origin, near).item() == pytest.approx(-1e-8, rel=1e-6)
    assert Cauchy()(origin, far).item() == pytest.approx(-2 * math.log(1e6), rel=1e-9)


@pytest.mark.parametrize("spread", [0.0, 1.0, 100.0])
def test_gradients_are_numerical_ones_also_of_points_at_one_place(spread):
    z = torch.stack(random_views(6, 2)).mul(spread).requires_grad_()
    assert torch.autograd.gradcheck(lambda z: contrastive_loss(*z, similarity=Cauchy()), z)


def test_rounding_far_from_the_origin_leaves_scores_at_most_zero_and_gradients_finite():
    z = (torch.stack(random_views(50, 2)).float() * 1e-3 + 1e4).requires_grad_()
    scores = Cauchy()(*z)
    contrastive_loss(*z, similarity=Cauchy()).backward()
    assert (scores <= 0).all() and z.grad.isfinite().all()


def test_float32_is_as_exact_as_a_map_needs():
    u, v = (50 * z for z in random_views(40, 2))
    torch.testing.assert_close(
        Cauchy()(u.float(), v.float()), Cauchy()(u, v).float(), atol=1e-3, rtol=0
    )


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_every_loss_takes_it_but_the_one_that_needs_a_lowest_score(loss):
    z = torch.stack(random_views(8, 2)).requires_grad_()
    y = torch.arange(8) % 3 if loss.requires_y else None
    if isinstance(loss, PositiveDebiased):
        with pytest.raises(ValueError, match="needs finite bounds of the scores"):
            contrastive_loss(*z, loss=loss, similarity=Cauchy(), y=y)
        return
    contrastive_loss(*z, loss=loss, similarity=Cauchy(), y=y).backward()
    assert z.grad.isfinite().all()


@pytest.mark.parametrize("framework", [None, MoCo(queue_size=64), CMC()], ids=repr)
def test_every_framework_makes_maps(framework):
    X = vectors()
    data = (X, X) if isinstance(framework, CMC) else X
    embedder = small(
        similarity=Cauchy(), projection_dim=2, output="projection", framework=framework
    )
    points = embedder.fit(data).transform(data)
    assert np.isfinite(points).all() and points.shape == (len(X), 4 if data is not X else 2)


def test_a_bank_remembers_points():
    z = torch.tensor([[3.0, 4.0]])
    assert Cauchy().bank_vectors(z) is z


def test_a_trained_encoder_gets_a_map_as_its_new_head():
    X = vectors()
    first = small().fit(X)
    second = ContrastiveEmbedder(
        first.encoder_, similarity=Cauchy(), projection_dim=2, output="projection", max_epochs=1
    )
    assert second.fit(X).transform(X).shape == (len(X), 2)
