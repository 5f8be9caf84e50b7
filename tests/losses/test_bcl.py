"""BCL and NonparametricBCL: weights by the posterior probability of a true negative."""

import math

import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast.losses import BCL, NonparametricBCL, PositiveDebiased
from skcontrast.schedules import at_progress
from skcontrast.similarity import Cosine, VonMisesFisher
from tests.common import random_views


def test_weights_that_are_zero_are_zero_in_every_dtype():
    anchor, positive = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    for dtype in (torch.float32, torch.float64):
        value = contrastive_loss(
            anchor.to(dtype),
            positive.to(dtype),
            queue=torch.eye(2, dtype=dtype),
            loss=BCL(alpha=1.0, tau_plus=0.1),
            similarity=Cosine(1 / 80),
        )
        assert value.item() == pytest.approx(1.0986, abs=1e-3)  # log 3: the other one alone counts


def test_a_single_candidate_leaves_the_floor_at_alpha_one():
    z1, z2, negative = torch.eye(3, dtype=torch.float64)[:, None]
    given = {"queue": negative, "similarity": Cosine(0.5)}
    value = contrastive_loss(z1, z2, loss=BCL(alpha=1.0, tau_plus=0.1), **given)
    assert value.item() == pytest.approx(math.log1p(math.exp(-1 / 0.5)))


def test_a_density_that_vanishes_is_refused():
    with pytest.raises(ValueError, match="'alpha' and 'beta' parameters of NonparametricBCL"):
        contrastive_loss(*random_views(4, 3), loss=NonparametricBCL(alpha=1, beta=1))


def test_weights_with_the_printed_cdf_do_not_have_mean_one():
    ranks = torch.arange(1, 511, dtype=torch.float64)
    printed, inverted = (
        NonparametricBCL(alpha=0.85, beta=1.0, tau_plus=0.1, form=form).rank_weights(ranks, 510)
        for form in ("printed", "inverted")
    )
    assert printed.mean().item() == pytest.approx(1.37, abs=0.005)
    assert inverted.mean().item() == pytest.approx(1.0, abs=0.005)


def test_weights_change_from_debiasing_to_mining_at_the_stated_beta():
    alpha, tau_plus = 0.8, 0.1
    a = (1 - 2 * alpha) * (1 - 2 * tau_plus)
    odds = alpha * (1 + a) / ((1 - alpha) * (1 - a))
    turn = odds / (1 + odds)
    ranks = torch.arange(1, 101, dtype=torch.float64)
    for beta, sign in ((turn - 0.1, -1), (turn + 0.1, 1)):
        weights = NonparametricBCL(alpha=alpha, beta=beta, tau_plus=tau_plus)
        assert (weights.rank_weights(ranks, 100).diff() * sign > 0).all()
    level = NonparametricBCL(alpha=alpha, beta=turn, tau_plus=tau_plus).rank_weights(ranks, 100)
    torch.testing.assert_close(level, torch.ones_like(level))


@pytest.mark.parametrize(
    ("epoch", "alpha", "beta", "rebuttal"),
    [(0, 0.5, 2.0, 0.5), (100, 0.5, 1.5, 0.588), (299, 0.5, 0.6, 0.762), (300, 0.7, 0.5, 0.763)],
)
def test_the_papers_schedules_have_the_printed_values_in_400_epochs(epoch, alpha, beta, rebuttal):
    # α = .5, and .7 in the last 100 epochs; β = 2 − .005 · epoch, updated every 20 epochs
    of_paper, of_rebuttal = (
        at_progress(loss.paper(), epoch / 399) for loss in (BCL, NonparametricBCL)
    )
    assert (of_paper.alpha, of_paper.beta) == (alpha, pytest.approx(beta))
    assert (of_rebuttal.alpha, of_rebuttal.beta) == (pytest.approx(rebuttal, abs=1e-3), 1.0)


@pytest.mark.parametrize(
    ("made", "changes"),
    [
        (BCL, {"tau_plus": 1 / 6, "alpha": 0.9}),
        (NonparametricBCL, {"tau_plus": 1 / 6, "alpha": 0.9}),
        (PositiveDebiased, {"tau_plus": 1 / 6}),
        (VonMisesFisher, {"kappa_max": 300}),
    ],
)
def test_keywords_replace_values_of_the_paper(made, changes):
    assert repr(made.paper(**changes)) == repr(made.paper().set_params(**changes))


def test_the_printed_forms_are_those_of_the_papers():
    assert PositiveDebiased.paper().form == "printed"
    assert VonMisesFisher.paper().temperature == 1
