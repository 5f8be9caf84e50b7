"""The probability of a true negative by rank, and the cdf behind it."""

import pytest
import torch

from skcontrast.losses import BCL, NonparametricBCL
from skcontrast.losses._posterior import (
    invert_unlabeled_cdf,
    ratio,
    true_negative_probability,
)
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


@pytest.mark.parametrize("tau_plus", [0.0, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("alpha", [0.5, 0.7, 1.0])
def test_inversion_undoes_the_cdf_of_a_random_candidate(alpha, tau_plus):
    phi = torch.linspace(0, 1, 101, dtype=torch.float64)
    a = (1 - 2 * alpha) * (1 - 2 * tau_plus)
    unlabeled = (1 - a) * phi + a * phi**2
    torch.testing.assert_close(invert_unlabeled_cdf(unlabeled, alpha, tau_plus), phi)


@pytest.mark.parametrize("alpha", [0.5, 0.7, 0.9, 1.0])
def test_the_highest_score_has_a_cdf_of_exactly_1(alpha):
    one = torch.ones(1, dtype=torch.float64)
    for tau_plus in torch.linspace(0, 0.95, 20).tolist():
        assert invert_unlabeled_cdf(one, alpha, tau_plus) == 1, tau_plus


def test_the_cdf_of_a_random_candidate_is_that_of_both_classes_by_their_shares():
    alpha, tau_plus = 0.8, 0.3
    phi = torch.linspace(0, 1, 11, dtype=torch.float64)
    lower, upper = 1 - (1 - phi) ** 2, phi**2
    true, false = alpha * lower + (1 - alpha) * upper, (1 - alpha) * lower + alpha * upper
    unlabeled = (1 - tau_plus) * true + tau_plus * false
    torch.testing.assert_close(invert_unlabeled_cdf(unlabeled, alpha, tau_plus), phi)


def test_the_posterior_falls_with_the_rank_and_has_the_prior_as_its_mean():
    phi = torch.linspace(0, 1, 10_001, dtype=torch.float64)
    p = true_negative_probability(phi, 0.8, 0.3)
    assert (p.diff() < 0).all()
    unlabeled = 0.7 * (0.8 * (1 - phi) + 0.2 * phi) + 0.3 * (0.2 * (1 - phi) + 0.8 * phi)
    assert torch.trapezoid(2 * unlabeled * p, phi).item() == pytest.approx(0.7, abs=1e-6)


@pytest.mark.parametrize("tau_plus", [0.1, 0.4])
def test_ranks_that_say_nothing_leave_the_prior(tau_plus):
    p = true_negative_probability(torch.linspace(0, 1, 5), 0.5, tau_plus)
    torch.testing.assert_close(p, torch.full((5,), 1 - tau_plus))


def test_a_ratio_of_densities_that_both_vanish_is_one():
    assert ratio(torch.tensor([0.0, 1.0]), torch.tensor([0.0, 4.0])).tolist() == [1, 0.25]
