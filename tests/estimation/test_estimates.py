"""α and τ⁺ from ranks and from labels."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from skcontrast._objective import _mean_loss  # private: the size of the tiles
from skcontrast.estimation import (
    alpha_from_auc,
    estimate_alpha_and_tau_plus,
    macro_auc,
    tau_plus_from_labels,
)

# private: the likelihood by itself
from skcontrast.estimation._estimates import Likelihood, minimise, standard_errors
from tests.common import inverse_cdf, random_views, simulated_ranks


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


# From labels


@pytest.mark.parametrize("n_views", [1, 2])
def test_macro_auc_is_the_mean_area_under_the_curve_of_the_anchors(n_views, monkeypatch):
    monkeypatch.setattr(_mean_loss, "_MIN_ROWS", 4)
    monkeypatch.setattr(_mean_loss, "_TILE_ELEMENTS", 1)
    views = random_views(10, 4, n_views)
    y = np.array([0, 0, 1, 1, 1, 2, 2, -1, -1, 3])
    u = torch.nn.functional.normalize(torch.stack(views), dim=-1)
    aucs = []
    for v in range(n_views):
        for i in range(10):
            others = [j for j in range(10) if j != i and y[j] >= 0]
            same = np.tile(y[others] == y[i], n_views)
            if y[i] >= 0 and same.any():
                scores = (u[:, others].flatten(0, 1) @ u[v, i]).numpy()
                aucs.append(roc_auc_score(same, scores))
    auc = macro_auc(*views, y=y)
    assert auc.value == pytest.approx(np.mean(aucs))
    assert auc.standard_error == pytest.approx(np.std(aucs) / math.sqrt(len(aucs)))


def test_ties_count_half():
    scores = np.random.default_rng(0).integers(0, 2, (30, 3)) + 0.0
    y = np.arange(30) % 3
    z = torch.nn.functional.normalize(torch.from_numpy(scores), dim=1)
    aucs = [
        roc_auc_score(y[others] == y[i], (z[others] @ z[i]).numpy().round(9))
        for i in range(30)
        for others in [[j for j in range(30) if j != i]]
    ]
    order = np.random.default_rng(1).permutation(30)
    assert macro_auc(scores, y=y).value == pytest.approx(np.mean(aucs), abs=5e-3)
    assert macro_auc(scores[order], y=y[order]).value == pytest.approx(
        macro_auc(scores, y=y).value
    )
    assert macro_auc(np.ones((9, 2)), y=[0, 0, 0, 1, 1, 1, 1, 1, 1]).value == 0.5


def test_unlabeled_samples_among_string_classes():
    y = np.array(["a", "a", "b", -1, -1], dtype=object)
    assert tau_plus_from_labels(y).value == pytest.approx(5 / 9)


def test_an_estimate_of_the_auc_is_taken_with_its_error():
    auc = macro_auc(*random_views(30, 4), y=np.arange(30) % 2)
    alpha = alpha_from_auc(auc)
    assert alpha.standard_error == pytest.approx(1.5 * auc.standard_error)
    assert math.isnan(alpha_from_auc(0.7).standard_error)


def test_auc_of_the_model_gives_alpha_back():
    rng = np.random.default_rng(0)
    true, false = (inverse_cdf(rng.random(200_000), a) for a in (0.8, 0.2))
    assert alpha_from_auc((false > true).mean()).value == pytest.approx(0.8, abs=0.01)
    assert alpha_from_auc(0.3).value == 0.5
    assert alpha_from_auc(1.0).value == 1.0


def test_tau_plus_is_the_probability_that_two_samples_share_a_class():
    y = np.repeat(["a", "b", "c"], [50, 30, 20])
    assert tau_plus_from_labels(y).value == pytest.approx(0.25 + 0.09 + 0.04)
    rng = np.random.default_rng(0)
    draws = [tau_plus_from_labels(rng.choice(y, 100)).value for _ in range(300)]
    assert tau_plus_from_labels(y).standard_error == pytest.approx(np.std(draws), rel=0.15)
    assert tau_plus_from_labels([0, 1, -1, -1]).value == 0.5
