"""α and τ⁺ from labels."""

import math

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from skcontrast._objective import _mean_loss  # private: the size of the tiles
from skcontrast.estimation import alpha_from_auc, macro_auc, tau_plus_from_labels
from tests.common import inverse_cdf, random_views


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
