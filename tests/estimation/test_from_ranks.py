"""α and τ⁺ from simulated ranks."""

import math

import numpy as np
import pytest
import torch

from skcontrast.estimation import estimate_alpha_and_tau_plus

# private: the likelihood by itself
from skcontrast.estimation._estimates import Likelihood, minimise, standard_errors
from tests.common import simulated_ranks


@pytest.mark.parametrize("n_candidates", [62, 1022, 4096])
@pytest.mark.parametrize("tau_plus", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("alpha", [0.9, 0.99, 1.0])
def test_finds_alpha_and_tau_plus(alpha, tau_plus, n_candidates):
    ranks = simulated_ranks(alpha, tau_plus, n_candidates)
    found = estimate_alpha_and_tau_plus(ranks, n_candidates=n_candidates)
    assert abs(found["alpha"].value - alpha) < 0.02
    assert abs(found["tau_plus"].value - tau_plus) < 0.02


@pytest.mark.parametrize("alpha, tau_plus", [(0.6, 0.1), (0.8, 0.1), (0.8, 0.3)])
def test_a_known_parameter_sharpens_the_other(alpha, tau_plus):
    ranks = simulated_ranks(alpha, tau_plus, 254)
    both = estimate_alpha_and_tau_plus(ranks, n_candidates=254)
    one = estimate_alpha_and_tau_plus(ranks, tau_plus=tau_plus, n_candidates=254)
    assert one["tau_plus"] == (tau_plus, 0) and abs(one["alpha"].value - alpha) < 0.02
    assert one["alpha"].standard_error < both["alpha"].standard_error
    other = estimate_alpha_and_tau_plus(ranks, alpha=alpha, n_candidates=254)
    assert other["alpha"] == (alpha, 0)
    assert other["tau_plus"].standard_error < both["tau_plus"].standard_error


@pytest.mark.slow
def test_standard_errors_are_those_of_repeated_draws():
    drawn = [simulated_ranks(0.8, 0.2, 126, 10_000, seed) for seed in range(40)]
    estimates = [estimate_alpha_and_tau_plus(ranks, n_candidates=126)["alpha"] for ranks in drawn]
    values, errors = np.transpose(estimates)
    assert np.median(errors) == pytest.approx(values.std(), rel=0.35)
    assert abs(values.mean() - 0.8) < 3 * values.std() / math.sqrt(40)


def test_ranks_that_say_nothing_have_a_large_standard_error():
    found = estimate_alpha_and_tau_plus(simulated_ranks(0.5, 0.1, 254), n_candidates=254)
    assert found["tau_plus"].standard_error > 0.1
    assert estimate_alpha_and_tau_plus([0.5])["alpha"].standard_error == math.inf


def test_few_candidates_bias_only_estimates_that_take_ranks_as_exact():
    ranks = simulated_ranks(0.9, 0.1, 62)
    as_exact = estimate_alpha_and_tau_plus(ranks)["tau_plus"].value
    among_62 = estimate_alpha_and_tau_plus(ranks, n_candidates=62)["tau_plus"].value
    assert abs(as_exact - 0.1) > 0.02 and abs(among_62 - 0.1) < 0.02


@pytest.mark.parametrize("alpha, tau_plus", [(0.6, 0.1), (0.9, 0.3), (1.0, 0.05)])
def test_probabilities_of_all_numbers_of_candidates_below_sum_to_one(alpha, tau_plus):
    n = 9
    each = [Likelihood(np.array([k / n]), n)(alpha, tau_plus).exp().item() for k in range(n + 1)]
    assert sum(each) == pytest.approx(1, abs=1e-6)


def test_ranks_that_say_nothing_are_uniform():
    ranks = np.linspace(0.01, 0.99, 7)
    assert Likelihood(ranks, None)(0.5, 0.1).item() == pytest.approx(0, abs=1e-9)
    assert Likelihood(ranks, 30)(0.5, 0.1).item() == pytest.approx(-math.log(31), abs=1e-6)


def test_the_lowest_point_of_a_box_is_inside_or_on_its_border():
    def bowl(point):
        return (point[0] - 0.3) ** 2 + (point[1] - 2.0) ** 2

    np.testing.assert_allclose(minimise(bowl, [(0, 1), (0, 3)]), [0.3, 2.0], atol=1e-5)
    np.testing.assert_allclose(minimise(bowl, [(0, 1), (0, 1)]), [0.3, 1.0], atol=1e-5)


def test_standard_errors_are_those_of_the_information_and_infinite_without_any():
    variance = torch.tensor([0.25, 4.0], dtype=torch.float64)

    def normal(point):
        return (point.square() / variance).sum() / 2

    errors = standard_errors(normal, np.zeros(2), 100)
    np.testing.assert_allclose(errors, [0.05, 0.2])
    flat = standard_errors(lambda point: -normal(point), np.zeros(2), 100)
    assert flat.tolist() == [math.inf] * 2
