"""The probability of a true negative by rank, and the cdf behind it."""

import pytest
import torch

from skcontrast.losses import BCL, NonparametricBCL
from tests.common import random_views
from tests.losses.common import value_and_grads


@pytest.mark.parametrize("tau_plus", [0.0, 0.05, 0.1, 0.3, 0.7])
@pytest.mark.parametrize("kind", [BCL, NonparametricBCL])
def test_finite_where_the_ranks_are_fully_trusted(kind, tau_plus):
    for n in (3, 17, 50, 64):
        views = random_views(n, 8, seed=n)
        value, grads = value_and_grads(views, torch.float32, loss=kind(1.0, 0.3, tau_plus))
        assert value.isfinite() and all(g.isfinite().all() for g in grads)
