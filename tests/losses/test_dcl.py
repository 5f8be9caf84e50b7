"""DCL: false negatives are subtracted."""

import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast.losses import DCL, HCL
from skcontrast.similarity import Cosine
from tests.common import random_views
from tests.losses.common import value_and_grads


def test_floored_anchors_pass_no_gradient_to_the_negatives():
    z = torch.eye(4, dtype=torch.float64)
    queue = -z[:1] + 0.01
    queue.requires_grad_()
    # The negatives lie at the lowest score: the debiased estimate is below its floor.
    contrastive_loss(z, z, loss=DCL(tau_plus=0.5), queue=queue).backward()
    assert torch.equal(queue.grad, torch.zeros_like(queue))


def test_debiasing_lowers_the_loss_of_unaligned_views():
    views = random_views(32, 8)
    values = [contrastive_loss(*views, loss=DCL(tau_plus=t)).item() for t in (0, 0.05, 0.1, 0.2)]
    assert values == sorted(values, reverse=True)


def test_finite_for_hard_negatives_at_low_temperature():
    views = random_views(64, 8)
    value, grads = value_and_grads(views, torch.float32, loss=HCL(beta=5), similarity=Cosine(0.01))
    exact, _ = value_and_grads(views, torch.float64, loss=HCL(beta=5), similarity=Cosine(0.01))
    assert value.item() == pytest.approx(exact.item(), rel=1e-4)
    assert all(g.isfinite().all() for g in grads)


def test_harder_negatives_cost_more_with_beta():
    views = random_views(32, 8)
    values = [contrastive_loss(*views, loss=HCL(beta=b)).item() for b in (0, 0.5, 1, 2)]
    assert values == sorted(values)
