"""PUCL: the rest of a population after some positives are taken."""

import pytest

from skcontrast.losses import DCL, PUCL
from skcontrast.schedules import Linear


def test_coefficients_take_the_prior_of_the_unlabeled():
    loss = PUCL(tau_plus=0.2, c=0.3)
    a, b = loss.coefficients()
    assert a == pytest.approx((1 - 0.06) / 0.8) and b == pytest.approx(0.2 * 0.7 / 0.8)
    assert a - b == pytest.approx(1)
    assert loss.coefficients() == pytest.approx(DCL(loss.effective_tau_plus).coefficients())


def test_the_effective_prior_falls_from_the_prior_to_zero():
    priors = [PUCL(tau_plus=0.2, c=c).effective_tau_plus for c in (0, 0.3, 0.7, 1)]
    assert priors == sorted(priors, reverse=True)
    assert priors[0] == 0.2 and priors[-1] == 0


def test_the_effective_prior_needs_numbers():
    with pytest.raises(ValueError, match="'tau_plus' parameter of PUCL is a schedule"):
        _ = PUCL(tau_plus=Linear(0, 0.1)).effective_tau_plus
