"""The cosine similarity."""

import math

import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast.similarity import Cosine, DotProduct
from tests.common import random_views


def test_is_the_cosine_over_the_temperature():
    u, v = random_views(6, 4)
    expected = torch.nn.functional.cosine_similarity(u[:, None], v[None], dim=-1) / 0.2
    torch.testing.assert_close(Cosine(0.2)(u, v), expected)


def test_pairs_is_the_diagonal_of_scores():
    cosine = Cosine(0.7)
    u, v = (cosine.embed(z) for z in random_views(6, 4))
    torch.testing.assert_close(cosine.pairs(u, v), cosine.scores(u, v).diagonal())


def test_scores_lie_between_the_bounds():
    cosine = Cosine(0.1)
    z = torch.eye(3, dtype=torch.float64)
    assert cosine(z, -z).min().item() == pytest.approx(cosine.bounds(4)[0])
    assert cosine(z, z).max().item() == pytest.approx(cosine.bounds(4)[1])


def test_a_zero_vector_scores_zero_with_finite_gradient():
    z = torch.zeros(2, 3, requires_grad=True)
    scores = Cosine()(z, torch.eye(3))
    scores.sum().backward()
    assert torch.equal(scores, torch.zeros(2, 3))
    assert z.grad.isfinite().all()


@pytest.mark.parametrize("temperature", [0, -1, 1e-310, 1e40, "low", None])
def test_bad_temperature_is_refused(temperature):
    with pytest.raises(ValueError, match=r"'temperature' parameter of Cosine must be"):
        contrastive_loss(*random_views(4, 3), similarity=Cosine(temperature))


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


def test_grows_with_the_length_of_both():
    u, v = random_views(5, 4)
    torch.testing.assert_close(DotProduct()(3 * u, 2 * v), 6 * DotProduct()(u, v))
    assert DotProduct().bounds(u.shape[1]) == (-math.inf, math.inf)


def test_of_directions_is_the_cosine():
    u, v = (torch.nn.functional.normalize(z, dim=1) for z in random_views(5, 4))
    torch.testing.assert_close(DotProduct()(u, v), Cosine(1.0)(u, v))
