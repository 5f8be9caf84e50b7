"""An estimated accuracy, and what test labels make of it."""

import numpy as np
import pytest
from scipy.special import expit, logit

from skcontrast.metrics import EstimatedAccuracy, GroupAgreement

ESTIMATE = EstimatedAccuracy(0.9, 0.76, 0.97, 0.9)


def test_many_test_labels_decide():
    posterior = ESTIMATE.with_test_labels(60_000, 100_000)
    assert posterior.value == pytest.approx(0.6, abs=1e-3)
    assert 0.6 - posterior.low == pytest.approx(1.645 * np.sqrt(0.24 / 1e5), rel=0.5)


def test_a_test_label_moves_the_estimate_towards_it():
    values = [ESTIMATE.with_test_labels(k, 10).value for k in range(11)]
    assert (np.diff(values) > 0).all()
    assert values[0] < 0.9 < values[-1] + 0.02


def test_the_posterior_is_the_integral_of_prior_and_likelihood():
    rng = np.random.default_rng(0)
    draws = expit(rng.normal(logit(0.9), 1 / 1.6449, 1_000_000))
    weights = draws**14 * (1 - draws) ** 6
    posterior = ESTIMATE.with_test_labels(14, 20)
    assert posterior.value == pytest.approx(np.average(draws, weights=weights), abs=2e-3)
    for bound, share in ((posterior.low, 0.05), (posterior.high, 0.95)):
        assert weights[draws < bound].sum() / weights.sum() == pytest.approx(share, abs=5e-3)


@pytest.mark.parametrize(("correct", "tested"), [(3, 2), (-1, 2), (0, 0), (1, 2.5)])
def test_numbers_that_cannot_be_are_refused(correct, tested):
    with pytest.raises((ValueError, TypeError), match=r"n_correct|n_tested"):
        ESTIMATE.with_test_labels(correct, tested)


def test_an_agreement_is_low_known_or_neither():
    states = [(0.6, 0.4), (0.9, 0.5), (0.9, 0.7)]
    found = [GroupAgreement(value, low, 9) for value, low in states]
    assert [(one.is_low, one.is_known) for one in found] == [
        (True, False),
        (False, False),
        (False, True),
    ]
    assert str(found[1]) == "0.90 (at least 0.500, 9 labeled pairs)"
