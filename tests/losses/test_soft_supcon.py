"""SoftSupCon: its limits, ties, and what it pulls."""

import numpy as np
import pytest
import torch

from skcontrast import ContrastiveEmbedder, contrastive_loss
from skcontrast.losses import InfoNCE, SoftRing, SoftSupCon, SupCon
from skcontrast.schedules import Auto
from tests.common import X_DIGITS, random_views


@pytest.mark.parametrize("sharpness", [0.5, 4.0, 1e6])
def test_without_pull_it_is_soft_ring(sharpness):
    views = random_views(16, 6)
    value = contrastive_loss(*views, loss=SoftSupCon(sharpness, 0.2, pull=0.0))
    expected = contrastive_loss(*views, loss=SoftRing(sharpness, 0.2))
    torch.testing.assert_close(value, expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_where_no_candidate_is_likely_of_the_class_none_is_pulled(dtype):
    # Of 8 candidates, the closest is far below the closest thousandth.
    views = [v.to(dtype) for v in random_views(5, 6)]
    value = contrastive_loss(*views, loss=SoftSupCon(1e4, 0.001, pull=0.5))
    torch.testing.assert_close(value, contrastive_loss(*views, loss=InfoNCE()))


def test_one_that_is_hardly_likely_is_pulled_as_a_likely_one():
    # The pull depends on the ratios of the probabilities, also where 1 − p rounds to 1.
    views = random_views(5, 6, dtype=torch.float32)
    values = [
        contrastive_loss(*(v.to(dtype) for v in views), loss=SoftSupCon(20.0, 0.02, pull=0.5))
        for dtype in (torch.float32, torch.float64)
    ]
    infonce = contrastive_loss(*views, loss=InfoNCE())
    assert abs(values[0] - infonce) > 0.01
    torch.testing.assert_close(values[0].double(), values[1], rtol=1e-5, atol=0)


def test_it_is_linear_in_the_pull():
    views = random_views(16, 6)
    none, half, whole = (
        contrastive_loss(*views, loss=SoftSupCon(3.0, 0.2, pull=pull)) for pull in (0.0, 0.5, 1.0)
    )
    torch.testing.assert_close(half, (none + whole) / 2)


def test_with_perfect_ranks_it_pulls_what_supcon_pulls():
    # Two classes on two axes: half of the candidates, but for the anchor's own, are classmates.
    classes = torch.tensor([0, 0, 0, 1, 1, 1])
    z = torch.eye(2, dtype=torch.float64)[classes] + 0.01 * random_views(6, 2)[0].double()
    z = z.requires_grad_()
    n_classmates, n = 4, 10
    soft = SoftSupCon(1e7, n_classmates / n, pull=n_classmates / (n_classmates + 1))
    pulled = gradient_of_pull(z, soft, SoftSupCon(1e7, n_classmates / n, pull=0.0))
    supcon = gradient_of_pull(z, SupCon(), InfoNCE(), y=classes)
    torch.testing.assert_close(pulled, supcon)


def gradient_of_pull(z, loss, base, y=None):
    """Return how the gradients of two losses differ that push alike."""
    gradients = []
    for one in (loss, base):
        value = contrastive_loss(z, z, loss=one, y=y)
        gradients.append(torch.autograd.grad(value, z)[0])
    return gradients[0] - gradients[1]


def test_candidates_that_tie_are_treated_alike():
    z = torch.nn.functional.normalize(
        torch.randn(4, 5, generator=torch.Generator().manual_seed(0))
    )
    views = z.repeat(3, 1)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(1))
    loss = SoftSupCon(3.0, 0.3)
    value = contrastive_loss(views, views, loss=loss)
    torch.testing.assert_close(contrastive_loss(views[order], views[order], loss=loss), value)


def test_auto_follows_the_labels():
    y = torch.arange(200) % 10
    loss = SoftSupCon("auto", "auto")
    embedder = ContrastiveEmbedder(loss=loss, max_epochs=6, random_state=0).fit(X_DIGITS, y)
    assert embedder.estimates_["tau_plus"] == pytest.approx(0.1)
    assert embedder.estimates_["sharpness"] >= 0


@pytest.mark.parametrize("kwargs", [{"pull": -0.1}, {"pull": 1.1}, {"tau_plus": 0.0}])
def test_parameters_out_of_range_are_refused(kwargs):
    with pytest.raises(ValueError, match=next(iter(kwargs))):
        contrastive_loss(*random_views(8, 4), loss=SoftSupCon(**kwargs))


def test_its_probability_by_rank_is_that_of_soft_ring():
    ranks = torch.arange(1, 41, dtype=torch.float64)
    expected = SoftRing(3.0, 0.2).true_negative_probability(ranks, 40)
    torch.testing.assert_close(SoftSupCon(3.0, 0.2).true_negative_probability(ranks, 40), expected)


def test_one_label_a_class_is_enough_for_auto():
    y = np.full(200, -1)
    y[:10] = np.arange(10)
    loss = SoftSupCon(Auto(every=1), Auto(every=1))
    embedder = ContrastiveEmbedder(loss=loss, max_epochs=3, random_state=0).fit(X_DIGITS, y)
    assert embedder.estimates_["tau_plus"] == pytest.approx(0.1, abs=0.03)
    assert embedder.estimates_["sharpness"] > 0
