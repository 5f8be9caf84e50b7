"""Paired comparisons, against scipy and against simulations."""

import math
import pickle

import numpy as np
import pytest
from scipy.stats import norm, ttest_rel, wilcoxon

from skcontrast.metrics import compare_paired

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", [2, 5, 30])
@pytest.mark.parametrize("confidence", [0.5, 0.95])
def test_independent_pairs_are_tested_as_by_scipy(n, confidence):
    a, b = RNG.normal(size=(2, n))
    found, expected = compare_paired(a, b, confidence=confidence), ttest_rel(a, b)
    interval = expected.confidence_interval(confidence)
    assert found.p_t == pytest.approx(expected.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert found.p_wilcoxon == wilcoxon(a, b).pvalue
    assert np.array_equal(found.differences, a - b) and found.mean == np.mean(a - b)


def test_folds_are_tested_with_the_corrected_variance():
    a, b = RNG.normal(size=(2, 10))
    plain, corrected = compare_paired(a, b), compare_paired(a, b, test_train_ratio=1 / 9)
    wider = math.sqrt((1 / 10 + 1 / 9) / (1 / 10))
    assert corrected.high - corrected.low == pytest.approx(wider * (plain.high - plain.low))
    assert corrected.p_t > plain.p_t and math.isnan(corrected.p_wilcoxon)
    assert compare_paired(a, b, test_train_ratio=1e-12).p_t == pytest.approx(plain.p_t)


def test_equal_scores_do_not_differ():
    a = RNG.normal(size=5)
    same = compare_paired(a, a)
    assert (same.mean, same.low, same.high, same.p_t, same.p_wilcoxon) == (0, 0, 0, 1, 1)
    rounded = compare_paired(a, a * (1 + 1e-15))
    assert (rounded.p_t, rounded.p_wilcoxon) == (1, 1)


def test_differences_without_spread_have_no_t_test():
    found = compare_paired([0.5, 0.6, 0.7], [0.4, 0.5, 0.6])
    assert found.mean == pytest.approx(0.1) and found.p_wilcoxon == pytest.approx(0.25)
    assert all(map(math.isnan, (found.low, found.high, found.p_t)))


def test_ties_and_differences_of_zero_are_ranked_without_a_warning():
    found = compare_paired([0.3, 0.2, 0.2, 0.4, 0.1], [0.2, 0.2, 0.1, 0.2, 0.2])
    assert 0 < found.p_wilcoxon <= 1


def test_a_comparison_is_a_line_and_survives_a_pickle():
    found = compare_paired([1.0, 2.0, 3.5], [0.0, 0.5, 1.0], confidence=0.9)
    assert str(found) == (
        "+1.6667 (90 % interval +0.3791 to +2.9543), t-test p = 0.063, Wilcoxon p = 0.25, 3 pairs"
    )
    assert "Wilcoxon" not in str(compare_paired([1.0, 2.0], [0.0, 0.5], test_train_ratio=1.0))
    assert pickle.loads(pickle.dumps(found)).mean == found.mean
    half = norm.ppf(0.95)
    assert found.high - found.mean > half * found.differences.std(ddof=1) / math.sqrt(3)


WRONG = {
    "a and b must have one length, got 3 and 2 scores": ([1, 2, 3], [1, 2], {}),
    "minimum of 2": ([1], [2], {}),
    "a must have one score per pair, got shape": (np.eye(2), np.eye(2), {}),
    "Input b contains NaN": ([1, 2], [1, np.nan], {}),
    "'confidence' parameter of compare_paired must be": ([1, 2], [2, 3], {"confidence": 95}),
    "'test_train_ratio' parameter of compare_paired must be": (
        [1, 2],
        [2, 3],
        {"test_train_ratio": 0},
    ),
}


@pytest.mark.parametrize("message", WRONG)
def test_what_cannot_be_compared_is_refused_by_name(message):
    a, b, kwargs = WRONG[message]
    with pytest.raises(ValueError, match=message):
        compare_paired(a, b, **kwargs)
