"""α and τ⁺ read off simulated ranks, embeddings and labels."""

import math

import numpy as np
import pytest
import torch
from common import random_views
from sklearn.metrics import roc_auc_score

from skcontrast._objective import _tiles
from skcontrast.estimation import (
    alpha_from_auc,
    estimate_alpha,
    estimate_tau_plus,
    macro_auc,
    positive_ranks,
    tau_plus_from_labels,
)
from skcontrast.similarity import Cosine, VonMisesFisher


def inverse_cdf(p, alpha):
    """Return Φ of a draw from αφ(1) + (1−α)φ(2), by the inverse of its cdf 2αu + (1−2α)u²."""
    return p / (alpha + np.sqrt(alpha**2 + (1 - 2 * alpha) * p))


def simulated_ranks(alpha, tau_plus, n_candidates, n_positives=50_000, seed=0):
    """Return ranks of positives that are drawn as false negatives are."""
    rng = np.random.default_rng(seed)
    positives = inverse_cdf(rng.random(n_positives), 1 - alpha)
    # The number of candidates below is binomial, given the cdf of a random candidate.
    a = (1 - 2 * alpha) * (1 - 2 * tau_plus)
    v = (1 - a) * positives + a * positives**2
    return rng.binomial(n_candidates, v) / n_candidates


@pytest.mark.parametrize("n_candidates", [62, 254, 1022, 4096])
@pytest.mark.parametrize("tau_plus", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("alpha", [0.9, 0.99, 1.0])
def test_finds_alpha_and_tau_plus(alpha, tau_plus, n_candidates):
    ranks = simulated_ranks(alpha, tau_plus, n_candidates)
    assert abs(estimate_alpha(ranks, n_candidates=n_candidates).value - alpha) < 0.02
    assert abs(estimate_tau_plus(ranks, n_candidates=n_candidates).value - tau_plus) < 0.02


@pytest.mark.parametrize("alpha, tau_plus", [(0.6, 0.1), (0.8, 0.1), (0.8, 0.3)])
def test_a_known_parameter_sharpens_the_other(alpha, tau_plus):
    ranks = simulated_ranks(alpha, tau_plus, 254)
    one = estimate_alpha(ranks, tau_plus=tau_plus, n_candidates=254)
    assert abs(one.value - alpha) < 0.02
    assert one.standard_error < estimate_alpha(ranks, n_candidates=254).standard_error
    other = estimate_tau_plus(ranks, alpha=alpha, n_candidates=254)
    assert other.standard_error < estimate_tau_plus(ranks, n_candidates=254).standard_error


def test_standard_errors_are_those_of_repeated_draws():
    estimates = [
        estimate_alpha(simulated_ranks(0.8, 0.2, 126, 10_000, seed), n_candidates=126)
        for seed in range(40)
    ]
    values, errors = np.transpose(estimates)
    assert np.median(errors) == pytest.approx(values.std(), rel=0.35)
    assert abs(values.mean() - 0.8) < 3 * values.std() / math.sqrt(40)


def test_ranks_that_say_nothing_have_a_large_standard_error():
    tau_plus = estimate_tau_plus(simulated_ranks(0.5, 0.1, 254), n_candidates=254)
    assert tau_plus.standard_error > 0.1
    assert estimate_alpha([0.5]).standard_error == math.inf


def test_few_candidates_bias_only_who_takes_ranks_for_exact():
    ranks = simulated_ranks(0.9, 0.1, 62)
    assert abs(estimate_tau_plus(ranks).value - 0.1) > 0.02
    assert abs(estimate_tau_plus(ranks, n_candidates=62).value - 0.1) < 0.02


@pytest.mark.parametrize("n_views", [2, 3])
def test_positive_ranks_count_the_candidates_below(n_views, monkeypatch):
    monkeypatch.setattr(_tiles, "_TILE_ROWS", 4)
    monkeypatch.setattr(_tiles, "_TILE_ELEMENTS", 1)
    views = random_views(7, 5, n_views)
    u = torch.nn.functional.normalize(torch.stack(views), dim=-1)
    expected = []
    for v in range(n_views):
        for i in range(7):
            scores = u[:, [j for j in range(7) if j != i]].flatten(0, 1) @ u[v, i]
            for w in range(n_views):
                if w != v:
                    expected.append((scores <= u[w, i] @ u[v, i]).double().mean().item())
    np.testing.assert_allclose(positive_ranks(*views), expected)
    np.testing.assert_allclose(positive_ranks(*views, similarity=Cosine(0.1)), expected)


def test_distributions_are_ranked_by_their_mutual_likelihood():
    rng = np.random.default_rng(0)
    views = [(rng.normal(size=(6, 4)), rng.uniform(1, 50, size=6)) for _ in range(2)]
    similarity, y = VonMisesFisher(), [0, 0, 0, 1, 1, 1]
    both = [np.concatenate(parts) for parts in zip(*views, strict=True)]
    scores = similarity(*[tuple(map(torch.from_numpy, both))] * 2).numpy()
    others = [[j for j in range(12) if j % 6 != i % 6] for i in range(12)]
    expected = [(scores[i, others[i]] <= scores[i, (i + 6) % 12]).mean() for i in range(12)]
    np.testing.assert_allclose(positive_ranks(*views, similarity=similarity), expected)
    expected = [
        roc_auc_score(np.equal.outer(y * 2, y * 2)[i, others[i]], scores[i, others[i]])
        for i in range(12)
    ]
    auc = macro_auc(*views, y=y, similarity=similarity)
    assert auc.value == pytest.approx(np.mean(expected))
    with pytest.raises(TypeError, match="need similarity=VonMisesFisher"):
        positive_ranks(*views)


@pytest.mark.parametrize("n_views", [1, 2])
def test_macro_auc_is_the_mean_area_under_the_curve_of_the_anchors(n_views, monkeypatch):
    monkeypatch.setattr(_tiles, "_TILE_ROWS", 4)
    monkeypatch.setattr(_tiles, "_TILE_ELEMENTS", 1)
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


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: estimate_alpha([0.5, 1.2]), r"ranks must be .* shares in \[0, 1\]"),
        (lambda: estimate_alpha([[0.5]]), r"ranks must be an array of shape \(n_positives,\)"),
        (lambda: estimate_alpha([0.5, np.nan]), "ranks contains NaN"),
        (lambda: estimate_alpha([0.5], tau_plus=2), r"tau_plus must be a number in \[0, 1\]"),
        (lambda: estimate_alpha([0.5], tau_plus="auto"), r"tau_plus must be a number in"),
        (lambda: estimate_tau_plus([0.5], alpha=0.2), r"alpha must be a number in \[0.5, 1\]"),
        (lambda: estimate_tau_plus([0.5], n_candidates=0), "n_candidates must be a positive int"),
        (lambda: alpha_from_auc(1.2), r"auc must be a number in \[0, 1\], got 1.2"),
        (lambda: alpha_from_auc("a"), r"auc must be a number in \[0, 1\], got 'a'"),
        (lambda: tau_plus_from_labels(None), "the target y is None"),
        (lambda: tau_plus_from_labels([0.5, 1.5]), "needs classes as y"),
        (lambda: tau_plus_from_labels(["a", "-1"]), "the string '-1'.* dtype=object"),
        (lambda: positive_ranks([[1, 2]], [[1, 2]]), "n ≥ 2"),
        (lambda: positive_ranks([[1, np.nan]] * 2, [[1, 2]] * 2), "views contains NaN"),
        (lambda: positive_ranks(np.eye(2), np.eye(2), similarity=Cosine(0)), "'temperature'"),
        (lambda: macro_auc(y=[0, 1]), "y must have one entry per sample, 0, got 2"),
        (lambda: tau_plus_from_labels([-1, -1]), "at least one known class"),
        (
            lambda: macro_auc(np.eye(3), y=[0, 1, 2]),
            "two samples of one class and one",
        ),
        (lambda: macro_auc(np.eye(3), y=[0, 1]), "y must have one entry per sample, 3, got 2"),
        (lambda: positive_ranks(np.eye(3), np.eye(2)), r"view 2 must have shape \(n, 3\)"),
        (lambda: positive_ranks(np.eye(3), np.ones((2, 3))), "views must be arrays of one shape"),
        (lambda: positive_ranks(np.eye(3)), "at least two views"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
