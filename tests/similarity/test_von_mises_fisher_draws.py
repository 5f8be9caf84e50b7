"""Draws from von Mises–Fisher distributions, against their moments."""

import numpy as np
import pytest
import torch
from scipy import stats

from skcontrast.similarity._bessel import ratio_of_square
from skcontrast.similarity._von_mises_fisher_draws import draw_von_mises_fisher

N = 40_000


def some_directions(n, d):
    mu = np.random.default_rng(0).normal(size=(n, d))
    return mu / np.linalg.norm(mu, axis=1, keepdims=True)


@pytest.mark.parametrize("d", [2, 3, 16, 128])
@pytest.mark.parametrize("kappa", [0.0, 0.5, 20.0, 1e3, 1e6])
def test_cosines_have_the_mean_and_variance_of_the_distribution(d, kappa):
    mu = some_directions(2, d)
    points = draw_von_mises_fisher(mu, np.full(2, kappa), N, np.random.RandomState(0))
    np.testing.assert_allclose(np.linalg.norm(points, axis=2), 1, rtol=1e-9)
    k = torch.tensor(kappa, dtype=torch.float64, requires_grad=True)
    a = k * ratio_of_square(k.square(), d)  # the mean cosine
    (variance,) = torch.autograd.grad(a, k)
    away = 1 - (points * mu[:, None]).sum(2)
    error = away.mean(1) - (1 - a.item())
    assert (np.abs(error) < 5 * np.sqrt(variance.item() / N) + 1e-12).all()
    if kappa < 1e5:  # beyond, 1 − cos is lost in the rounding of the cosine
        np.testing.assert_allclose(away.var(1), variance.item(), rtol=0.08)


def test_in_three_dimensions_the_cosine_has_its_distribution():
    kappa, mu = 4.0, some_directions(1, 3)
    points = draw_von_mises_fisher(mu, np.array([kappa]), N, np.random.RandomState(1))
    cosines = (points[0] * mu).sum(1)
    cdf = (np.exp(kappa * np.sort(cosines)) - np.exp(-kappa)) / (2 * np.sinh(kappa))
    assert stats.kstest(cdf, "uniform").pvalue > 0.01


def test_directions_around_the_mean_are_uniform():
    mu = np.eye(4)[:1]
    points = draw_von_mises_fisher(mu, np.array([7.0]), N, np.random.RandomState(2))[0]
    around = points[:, 1:] / np.linalg.norm(points[:, 1:], axis=1, keepdims=True)
    np.testing.assert_allclose(around.mean(0), 0, atol=0.02)
    np.testing.assert_allclose(around.T @ around / N, np.eye(3) / 3, atol=0.02)


def test_without_a_direction_draws_are_uniform():
    points = draw_von_mises_fisher(np.zeros((1, 3)), np.array([50.0]), N, np.random.RandomState(4))
    np.testing.assert_allclose(np.linalg.norm(points, axis=2), 1, rtol=1e-9)
    np.testing.assert_allclose(points[0].T @ points[0] / N, np.eye(3) / 3, atol=0.02)


def test_nan_is_passed_on():
    kappa = np.array([3.0, np.nan])
    points = draw_von_mises_fisher(np.eye(3)[:2], kappa, 2, np.random.RandomState(5))
    assert np.isfinite(points[0]).all() and np.isnan(points[1]).all()


def test_each_distribution_has_its_own_concentration():
    mu, kappa = some_directions(3, 5), np.array([0.1, 10.0, 1000.0])
    points = draw_von_mises_fisher(mu, kappa, N, np.random.RandomState(3))
    kappas = torch.from_numpy(kappa)
    expected = (kappas * ratio_of_square(kappas.square(), 5)).numpy()
    np.testing.assert_allclose((points * mu[:, None]).sum(2).mean(1), expected, atol=0.02)
