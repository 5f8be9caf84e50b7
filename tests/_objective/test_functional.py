"""contrastive_loss: precision, views without gradient, refusals."""

import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast.losses import DCL
from skcontrast.similarity import Cosine
from tests.common import random_views


def test_views_of_different_precision_are_promoted():
    views, queue = random_views(6, 4), random_views(9, 4)[0]
    exact = contrastive_loss(*views, queue=queue)
    mixed = contrastive_loss(views[0].float(), views[1], queue=queue.float())
    assert mixed.dtype == torch.float64
    torch.testing.assert_close(mixed, exact, rtol=1e-6, atol=0)


def test_views_without_gradient():
    views = random_views(6, 4)
    value = contrastive_loss(*views)
    assert not value.requires_grad
    leaf = views[0].clone().requires_grad_()
    one_sided = contrastive_loss(leaf, views[1])
    torch.testing.assert_close(one_sided.detach(), value)
    one_sided.backward()
    assert leaf.grad.isfinite().all()


def test_half_precision_views_are_scored_in_float32():
    views = random_views(16, 8)
    value = contrastive_loss(*(v.to(torch.bfloat16) for v in views))
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(contrastive_loss(*views).item(), rel=2e-2)


def test_autocast_does_not_touch_the_loss():
    views = [v.float() for v in random_views(16, 8)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = contrastive_loss(*views, similarity=Cosine(0.05))
    torch.testing.assert_close(inside, contrastive_loss(*views, similarity=Cosine(0.05)))


def test_training_step_of_a_custom_loop():
    layer = torch.nn.Linear(4, 3).double()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    views = random_views(32, 4)
    values = []
    for _ in range(20):
        optimizer.zero_grad()
        value = contrastive_loss(*(layer(v) for v in views), loss=DCL())
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert values[-1] < values[0]


@pytest.mark.parametrize(
    "views, queue, error, message",
    [
        ([torch.ones(3, 2)], None, ValueError, "at least two views, got 1"),
        (
            [torch.ones(3, 2), torch.ones(4, 2)],
            None,
            ValueError,
            "view 2 has 4 rows, view 1 has 3",
        ),
        (
            [torch.ones(3, 2), torch.ones(3, 5)],
            None,
            ValueError,
            r"view 2 must have shape \(n, 2\)",
        ),
        ([torch.ones(3), torch.ones(3)], None, ValueError, "view 1 must have shape"),
        ([torch.ones(3, 2), [[1.0]]], None, TypeError, "view 2 must be a floating tensor.*list"),
        ([torch.ones(3, 2).int()] * 2, None, TypeError, "view 1 must be a floating.*int32"),
        ([torch.ones(1, 2)] * 2, None, ValueError, "at least 2 samples"),
        ([torch.ones(3, 2)] * 2, torch.ones(5, 3), ValueError, r"queue must have shape \(n, 2\)"),
        ([torch.ones(3, 2)] * 2, torch.ones(0, 2), ValueError, "at least one row"),
    ],
)
def test_bad_views_are_refused_by_name(views, queue, error, message):
    with pytest.raises(error, match=message):
        contrastive_loss(*views, queue=queue)


def test_weights_that_require_a_gradient_are_refused():
    with pytest.raises(ValueError, match=r"pass sample_weight\.detach\(\)"):
        contrastive_loss(*random_views(4, 3), sample_weight=torch.ones(4, requires_grad=True))
