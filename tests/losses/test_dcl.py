"""DCL: false negatives are subtracted."""

import torch

from skcontrast import contrastive_loss
from skcontrast.losses import DCL
from tests.common import random_views


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
