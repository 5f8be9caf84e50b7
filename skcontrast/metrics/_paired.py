"""Comparison of two embedders by scores that are paired by seed or fold."""

from __future__ import annotations

import math
from numbers import Real
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student
from scipy.stats import wilcoxon

from .._checks import POSITIVE, Interval
from .._checks._arguments import as_numbers, validated

# Differences below this fraction of the scores are rounding errors.
_ROUNDING = 1e-12


class PairedComparison(NamedTuple):
    """The result of :func:`compare_paired`; ``str`` returns a line for reports.

    Attributes
    ----------
    differences : ndarray of shape (n_pairs,)
        a − b.
    mean : float
        Their mean.
    low, high : float
        The confidence interval of the mean.
    p_t : float
        Two-sided p-value of the paired t-test.
    p_wilcoxon : float
        Two-sided p-value of Wilcoxon's signed-rank test; NaN if scores share training data.
    confidence : float
        Coverage of the interval.

    Examples
    --------
    >>> from skcontrast.metrics import compare_paired
    >>> comparison = compare_paired([0.91, 0.93, 0.90], [0.89, 0.90, 0.89])
    >>> comparison.differences.round(2)
    array([0.02, 0.03, 0.01])
    >>> round(comparison.mean, 2), bool(comparison.low < 0.02 < comparison.high)
    (0.02, True)
    """

    differences: NDArray[np.float64]
    mean: float
    low: float
    high: float
    p_t: float
    p_wilcoxon: float
    confidence: float

    def __str__(self) -> str:
        interval = f"{100 * self.confidence:g} % interval {self.low:+.4f} to {self.high:+.4f}"
        ranks = "" if math.isnan(self.p_wilcoxon) else f", Wilcoxon p = {self.p_wilcoxon:.2g}"
        n_pairs = len(self.differences)
        return f"{self.mean:+.4f} ({interval}), t-test p = {self.p_t:.2g}{ranks}, {n_pairs} pairs"


@validated(confidence=[Interval(Real, 0, 1, closed="neither")], test_train_ratio=[*POSITIVE, None])
def compare_paired(
    a: ArrayLike, b: ArrayLike, *, confidence: float = 0.95, test_train_ratio: float | None = None
) -> PairedComparison:
    r"""Compare the scores of two embedders that were measured on the same seeds or folds.

    Pairing removes the variance that both have in common: split, drawn labels, initial weights.
    The interval and the p-value of the t-test are

    .. math:: \bar d \pm t_{J-1}\, s \sqrt{\frac1J + \rho}, \qquad
        T = \frac{\bar d}{s \sqrt{1/J + \rho}}

    with the mean :math:`\bar d` and standard deviation s of the J differences. ρ is 0 if runs are
    independent. Folds of a cross-validation are not: their training sets overlap, and the plain
    test finds differences where there are none. Then ρ is `test_train_ratio`, the number of test
    samples divided by that of training samples [1]_.

    Parameters
    ----------
    a, b : array-like of shape (n_pairs,)
        Scores; a[i] and b[i] have the same seed or fold. At least two pairs.
    confidence : float, default=0.95
        Coverage of the interval, in (0, 1).
    test_train_ratio : float, default=None
        For scores from repeated splits or folds of one data set: n_test / n_train, which is
        1/(k − 1) for k folds, repeated or not. None is for independent runs. Seeds that draw
        splits of one data set are repeated splits, too; without the ratio, the p-value refers to
        new splits of this data set, not to new data.

    Returns
    -------
    comparison : PairedComparison
        If all differences are 0, both p-values are 1; if they are equal but not 0, `low`, `high`
        and `p_t` are NaN. Wilcoxon's test ignores differences of 0, and its p-value is at least
        :math:`2^{1-n}` for n pairs: p < .05 needs 6 pairs. It assumes independent pairs, so with
        `test_train_ratio` it is NaN.

    Raises
    ------
    ValueError
        If the scores are not finite, differ in number or there are fewer than two pairs, or a
        parameter is outside its range.

    See Also
    --------
    scipy.stats.ttest_rel : The t-test of independent pairs.
    scipy.stats.wilcoxon : The test by ranks.

    Notes
    -----
    A p-value is the probability of such differences if there were none, not that the difference
    is large, nor that it exists on other data. If you compare twenty settings with one baseline,
    expect one with p < .05 by chance.

    References
    ----------
    .. [1] C. Nadeau, Y. Bengio, "Inference for the Generalization Error", Machine Learning 52,
       2003.

    Examples
    --------
    >>> from skcontrast.metrics import compare_paired
    >>> ours = [0.91, 0.93, 0.90, 0.94, 0.92, 0.93]
    >>> baseline = [0.89, 0.90, 0.89, 0.91, 0.90, 0.91]
    >>> print(compare_paired(ours, baseline))
    +0.0217 (95 % interval +0.0138 to +0.0296), t-test p = 0.00089, Wilcoxon p = 0.031, 6 pairs

    The same scores from six folds:

    >>> round(compare_paired(ours, baseline, test_train_ratio=1 / 5).p_t, 3)
    0.005
    """
    first, second = _scores_array(a, "a"), _scores_array(b, "b")
    if len(first) != len(second):
        raise ValueError(
            f"a and b must have one length, got {len(first)} and {len(second)} scores."
        )
    rounding = _ROUNDING * max(np.abs(first).max(), np.abs(second).max())
    differences = first - second
    differences[np.abs(differences) <= rounding] = 0.0
    ratio = float(test_train_ratio or 0)
    low, high, p_t = _t_test(differences, float(confidence), ratio, rounding)
    p_wilcoxon = math.nan if test_train_ratio is not None else _signed_rank_test(differences)
    mean = float(differences.mean())
    return PairedComparison(differences, mean, low, high, p_t, p_wilcoxon, float(confidence))


def _scores_array(scores: ArrayLike, name: str) -> NDArray[np.float64]:
    options = {"dtype": np.float64, "ensure_2d": False, "ensure_min_samples": 2, "allow_nd": True}
    array: NDArray[np.float64] = as_numbers(scores, name, "an array of scores", **options)
    if array.ndim != 1:
        raise ValueError(f"{name} must have one score per pair, got shape {array.shape}.")
    return array


def _t_test(
    differences: NDArray[np.float64], confidence: float, ratio: float, rounding: float
) -> tuple[float, float, float]:
    """Return the limits of the mean and the two-sided p-value."""
    n, mean = len(differences), differences.mean()
    if np.ptp(differences) <= rounding:
        return (0.0, 0.0, 1.0) if mean == 0 else (math.nan, math.nan, math.nan)
    error = differences.std(ddof=1) * math.sqrt(1 / n + ratio)
    half = student.ppf((1 + confidence) / 2, n - 1) * error
    return float(mean - half), float(mean + half), float(2 * student.sf(abs(mean) / error, n - 1))


def _signed_rank_test(differences: NDArray[np.float64]) -> float:
    """Return the two-sided p-value of Wilcoxon's test, 1 if all differences are 0."""
    nonzero = differences[differences != 0]
    return float(wilcoxon(nonzero).pvalue) if len(nonzero) else 1.0
