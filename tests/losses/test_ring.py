"""Ring, SoftRing and SoftSupCon: limits and ties."""

import pytest
import torch

from skcontrast import ContrastiveEmbedder, contrastive_loss
from skcontrast.losses import InfoNCE, Ring, SoftRing, SoftSupCon, SupCon

# private: the weights against naive code
from skcontrast.losses._posterior import false_negative_probability, ranks_inside
from skcontrast.schedules import Auto
from skcontrast.similarity import Cosine
from tests.common import X_DIGITS, random_views


def test_an_empty_ring_is_refused():
    with pytest.raises(ValueError, match=r"The ring is empty: outer=0\.1 times 2 candidates"):
        contrastive_loss(*random_views(2, 3), loss=Ring(outer=0.1))


class NormalisedRing(Ring):
    """Ring whose weights are scaled to mean 1."""

    sum_of_weights = "N"


@pytest.mark.parametrize("tau_plus", [0.1, 0.25, 0.5])
@pytest.mark.parametrize("n", [11, 41])
def test_infinitely_sharp_it_is_a_ring_scaled_to_mean_one(tau_plus, n):
    views = random_views(n, 6)  # of 2n − 2 candidates, τ⁺ of them are a whole number
    value = contrastive_loss(*views, loss=SoftRing(sharpness=1e7, tau_plus=tau_plus))
    ring = NormalisedRing(outer=1.0, inner=tau_plus)
    torch.testing.assert_close(value, contrastive_loss(*views, loss=ring))


def test_the_mean_probability_is_the_prior_and_the_least_is_the_floor():
    for sharpness in [0.01, 0.5, 2.0, 8.0, 100.0]:
        for tau_plus in [0.01, 0.1, 0.5, 0.9]:
            for floor in [0.0, 0.4, 1.0]:
                u = ranks_inside(100_000)
                p = false_negative_probability(u, sharpness, tau_plus, floor)
                assert float(p.mean()) == pytest.approx(tau_plus, abs=2e-4)
                assert bool((p.diff() >= 0).all()) and float(p[-1]) <= 1
                assert float(p[0]) >= floor * tau_plus
                if sharpness >= 2:
                    assert float(p[0]) == pytest.approx(floor * tau_plus, abs=1e-3)


def test_a_sharpness_of_nearly_nothing_leaves_the_prior():
    p = false_negative_probability(ranks_inside(100), 1e-310, 0.1)
    torch.testing.assert_close(p, torch.full_like(p, 0.1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_where_no_candidate_is_likely_of_the_class_none_is_pulled(dtype):
    # Of 8 candidates, the closest is far below the closest thousandth.
    views = [v.to(dtype) for v in random_views(5, 6)]
    value = contrastive_loss(*views, loss=SoftSupCon(sharpness=1e4, tau_plus=0.001, pull=0.5))
    torch.testing.assert_close(value, contrastive_loss(*views, loss=InfoNCE()))


def test_one_that_is_hardly_likely_is_pulled_as_a_likely_one():
    # The pull depends on the ratios of the probabilities, also where 1 − p rounds to 1.
    views = random_views(5, 6, dtype=torch.float32)
    values = [
        contrastive_loss(
            *(v.to(dtype) for v in views), loss=SoftSupCon(sharpness=20.0, tau_plus=0.02, pull=0.5)
        )
        for dtype in (torch.float32, torch.float64)
    ]
    infonce = contrastive_loss(*views, loss=InfoNCE())
    assert abs(values[0] - infonce) > 0.01
    torch.testing.assert_close(values[0].double(), values[1], rtol=1e-5, atol=0)


def test_with_perfect_ranks_it_pulls_what_supcon_pulls():
    # Two classes on two axes: half of the candidates, but for the anchor's own, are classmates.
    classes = torch.tensor([0, 0, 0, 1, 1, 1])
    z = torch.eye(2, dtype=torch.float64)[classes] + 0.01 * random_views(6, 2)[0].double()
    z = z.requires_grad_()
    n_classmates, n = 4, 10
    soft = SoftSupCon(
        sharpness=1e7, tau_plus=n_classmates / n, pull=n_classmates / (n_classmates + 1)
    )
    pulled = gradient_of_pull(
        z, soft, SoftSupCon(sharpness=1e7, tau_plus=n_classmates / n, pull=0.0)
    )
    supcon = gradient_of_pull(z, SupCon(), InfoNCE(), y=classes)
    torch.testing.assert_close(pulled, supcon)


def gradient_of_pull(z, loss, base, y=None):
    """Return how the gradients of two losses differ that push alike."""
    gradients = []
    for one in (loss, base):
        value = contrastive_loss(z, z, loss=one, y=y if one.requires_y else None)
        gradients.append(torch.autograd.grad(value, z)[0])
    return gradients[0] - gradients[1]


@pytest.mark.parametrize(
    "loss",
    [SoftRing(sharpness="auto"), SoftRing(floor=Auto(every=1)), SoftSupCon(sharpness="auto")],
    ids=repr,
)
def test_sharpness_and_floor_are_numbers_or_schedules(loss):
    message = r"'(sharpness|floor)' parameter of Soft.* must be a float in the range"
    with pytest.raises(ValueError, match=message):
        ContrastiveEmbedder(loss=loss).fit(X_DIGITS)
    with pytest.raises(ValueError, match=message):
        contrastive_loss(*random_views(4, 3), loss=loss)


def test_its_probability_by_rank_is_that_of_soft_ring():
    ranks = torch.arange(1, 41, dtype=torch.float64)
    expected = SoftRing(sharpness=3.0, tau_plus=0.2).true_negative_probability(ranks, 40)
    torch.testing.assert_close(
        SoftSupCon(sharpness=3.0, tau_plus=0.2).true_negative_probability(ranks, 40), expected
    )


@pytest.mark.parametrize("temperature", [0.02, 0.1, 0.5])
def test_without_a_pull_soft_supcon_is_soft_ring_in_float32_too(temperature):
    views = random_views(128, 8, dtype=torch.float32)
    values = [
        contrastive_loss(*views, loss=loss, similarity=Cosine(temperature)).item()
        for loss in (SoftSupCon(sharpness=8.0, pull=0.0), SoftRing(sharpness=8.0))
    ]
    assert values[0] == pytest.approx(values[1], rel=1e-6)
