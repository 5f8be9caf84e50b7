"""The probability of a true negative by rank, and the cdf behind it."""

import pytest
import torch

from skcontrast.losses import BCL, NonparametricBCL

# private: the inverse against its equation
from skcontrast.losses._posterior import invert_unlabeled_cdf, ratio
from tests.common import random_views
from tests.losses.common import value_and_grads


@pytest.mark.parametrize("tau_plus", [0.0, 0.05, 0.1, 0.3, 0.7])
@pytest.mark.parametrize("kind", [BCL, NonparametricBCL])
def test_finite_where_the_ranks_are_fully_trusted(kind, tau_plus):
    for n in (3, 17, 50, 64):
        views = random_views(n, 8, seed=n)
        value, grads = value_and_grads(
            views, torch.float32, loss=kind(alpha=1.0, beta=0.3, tau_plus=tau_plus)
        )
        assert value.isfinite() and all(g.isfinite().all() for g in grads)


@pytest.mark.parametrize("tau_plus", [0.0, 0.1, 0.3, 0.9])
@pytest.mark.parametrize("alpha", [0.5, 0.7, 1.0])
def test_inversion_undoes_the_cdf_of_both_classes_by_their_shares(alpha, tau_plus):
    phi = torch.linspace(0, 1, 101, dtype=torch.float64)
    lower, upper = 1 - (1 - phi) ** 2, phi**2
    true, false = alpha * lower + (1 - alpha) * upper, (1 - alpha) * lower + alpha * upper
    unlabeled = (1 - tau_plus) * true + tau_plus * false
    torch.testing.assert_close(invert_unlabeled_cdf(unlabeled, alpha, tau_plus), phi)


@pytest.mark.parametrize("alpha", [0.5, 0.7, 0.9, 1.0])
def test_the_highest_score_has_a_cdf_of_exactly_1(alpha):
    one = torch.ones(1, dtype=torch.float64)
    for tau_plus in torch.linspace(0, 0.95, 20).tolist():
        assert invert_unlabeled_cdf(one, alpha, tau_plus) == 1, tau_plus


def test_a_ratio_of_densities_that_both_vanish_is_one():
    assert ratio(torch.tensor([0.0, 1.0]), torch.tensor([0.0, 4.0])).tolist() == [1, 0.25]
