"""NonparametricBCL: weights from ranks alone."""

import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast.losses import BCL, NonparametricBCL
from tests.common import random_views


def test_a_density_that_vanishes_is_refused():
    with pytest.raises(ValueError, match="'alpha' and 'beta' parameters of NonparametricBCL"):
        contrastive_loss(*random_views(4, 3), loss=NonparametricBCL(alpha=1, beta=1))


def test_weights_are_a_ratio_of_densities_and_have_mean_one():
    n = 100_000
    ranks = torch.arange(1, n + 1, dtype=torch.float64) - 0.5
    for beta in (0.0, 0.3, 0.9):
        weights = NonparametricBCL(alpha=0.8, beta=beta, tau_plus=0.2).rank_weights(ranks, n)
        assert weights.mean().item() == pytest.approx(1, abs=1e-4)


def test_weights_with_the_printed_cdf_do_not_have_mean_one():
    ranks = torch.arange(1, 511, dtype=torch.float64)
    printed, inverted = (
        NonparametricBCL(0.85, beta=1.0, tau_plus=0.1, form=form).rank_weights(ranks, 510)
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


def test_at_one_half_it_is_the_weight_of_bcl_up_to_its_scale():
    ranks = torch.arange(1, 51, dtype=torch.float64)
    one = NonparametricBCL(alpha=0.8, beta=0.5, tau_plus=0.2).rank_weights(ranks, 50)
    other = BCL(alpha=0.8, tau_plus=0.2).rank_weights(ranks, 50)
    torch.testing.assert_close(one / one[0], other / other[0])
