"""The likelihood of ranks, and its maximum."""

import math

import numpy as np
import pytest
import torch

from skcontrast.estimation._likelihood import Likelihood, minimise, standard_errors
from tests.common import simulated_ranks


@pytest.mark.parametrize("alpha, tau_plus", [(0.6, 0.1), (0.9, 0.3), (1.0, 0.05)])
def test_probabilities_of_all_numbers_of_candidates_below_sum_to_one(alpha, tau_plus):
    n = 20
    each = [Likelihood(np.array([k / n]), n)(alpha, tau_plus).exp().item() for k in range(n + 1)]
    assert sum(each) == pytest.approx(1, abs=1e-6)


def test_ranks_that_say_nothing_are_uniform():
    ranks = np.linspace(0.01, 0.99, 7)
    assert Likelihood(ranks, None)(0.5, 0.1).item() == pytest.approx(0, abs=1e-9)
    assert Likelihood(ranks, 30)(0.5, 0.1).item() == pytest.approx(-math.log(31), abs=1e-6)


def test_the_true_parameters_are_likelier_than_others():
    ranks = simulated_ranks(0.8, 0.2, 126)
    likelihood = Likelihood(ranks, 126)
    for other in ((0.7, 0.2), (0.9, 0.2), (0.8, 0.1), (0.8, 0.3)):
        assert likelihood(0.8, 0.2) > likelihood(*other)


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
    assert (
        standard_errors(lambda point: -normal(point), np.zeros(2), 100).tolist() == [math.inf] * 2
    )
