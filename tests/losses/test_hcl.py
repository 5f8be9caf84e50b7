"""HCL: hard negatives weigh more."""

import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast.losses import HCL
from skcontrast.similarity import Cosine
from tests.common import random_views
from tests.losses.common import value_and_grads


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
