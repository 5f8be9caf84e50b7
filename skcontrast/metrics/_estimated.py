"""An accuracy estimated without test labels, and the agreement of labels in groups."""

from __future__ import annotations

from numbers import Integral
from typing import NamedTuple

import numpy as np
from scipy.special import expit, logit
from scipy.stats import beta, binom, norm

from .._checks import POSITIVE_INT, check_argument

# Half the width of the 90 % interval: in log-odds, and added to the accuracy itself.
_HALF_WIDTH, _MARGIN = 1.0, 0.015
_CONFIDENCE = 0.9
# Groups are ignored if their labels agree less, beyond chance. Labels spread if the lower end of
# an interval of this confidence is at least as large. Without a minimum of pairs, a draw of one
# set lost .1 (benchmarks/studies/results/metadata.md). The value .7 is not tuned.
_LEAST_AGREEMENT, _AGREEMENT_CONFIDENCE = 0.7, 0.95
# Agreeing pairs that are added, so that with many classes a few pairs exclude groups only if half
# of them disagree.
_PRIOR = 2
# The accuracies for which `with_test_labels` computes likelihoods, as log-odds.
_GRID = np.linspace(-7, 9, 1601)


class EstimatedAccuracy(NamedTuple):
    """The accuracy of a classifier, estimated without test labels; ``str`` returns a line.

    :attr:`ContrastiveClassifier.accuracy_ <skcontrast.ContrastiveClassifier>` is one.

    Attributes
    ----------
    value : float
        The estimate, in [0, 1].
    low, high : float
        Its interval.
    confidence : float
        Coverage of the interval, as measured on data sets with known accuracy.

    Examples
    --------
    >>> from skcontrast.metrics import EstimatedAccuracy
    >>> estimate = EstimatedAccuracy(0.9, 0.75, 0.97, 0.9)
    >>> print(estimate)
    0.90 (90 % interval 0.75 to 0.97)
    >>> print(estimate.with_test_labels(14, 20))  # 14 of 20 other samples were predicted correctly
    0.80 (90 % interval 0.68 to 0.89)
    """

    value: float
    low: float
    high: float
    confidence: float

    def __str__(self) -> str:
        interval = f"{100 * self.confidence:g} % interval {self.low:.2f} to {self.high:.2f}"
        return f"{self.value:.2f} ({interval})"

    def with_test_labels(self, n_correct: int, n_tested: int) -> EstimatedAccuracy:
        """Return the estimate combined with the predictions for samples labeled afterwards.

        The mean of the posterior and its quantiles, with a binomial likelihood and a normal
        prior of the log-odds: the mean is that of `value`, and the 90 % interval ± 1.

        Parameters
        ----------
        n_correct, n_tested : int
            How many of them were predicted correctly, and how many there are, in one call for all
            of them. They must be drawn at random from the samples without a label.

        Returns
        -------
        estimate : EstimatedAccuracy
            With an interval of the same confidence.

        Raises
        ------
        ValueError
            If `n_tested` is not positive, or `n_correct` not between 0 and `n_tested`.
        """
        check_argument("with_test_labels", "n_tested", n_tested, POSITIVE_INT)
        if not isinstance(n_correct, Integral) or not 0 <= n_correct <= n_tested:
            raise ValueError(
                f"n_correct must be an integer from 0 to n_tested, {n_tested}, got {n_correct}."
            )
        tail = (1 - self.confidence) / 2
        deviation = _HALF_WIDTH / norm.ppf(1 - (1 - _CONFIDENCE) / 2)
        accuracies = expit(_GRID)
        logs = norm.logpdf(_GRID, logit(np.clip(self.value, 1e-3, 1 - 1e-3)), deviation)
        logs += binom.logpmf(n_correct, n_tested, accuracies)
        weights = np.exp(logs - logs.max())
        weights /= weights.sum()
        low, high = np.interp([tail, 1 - tail], weights.cumsum(), accuracies)
        value = float(weights @ accuracies)
        return EstimatedAccuracy(value, float(low), float(high), self.confidence)


def accuracy_from_logit(x: float) -> EstimatedAccuracy:
    """Return the accuracy for estimated log-odds.

    The interval covered the accuracy in nine of ten cases on 17 data sets.
    """
    low = max(float(expit(x - _HALF_WIDTH)) - _MARGIN, 0.0)
    high = min(float(expit(x + _HALF_WIDTH)) + _MARGIN, 1.0)
    return EstimatedAccuracy(float(expit(x)), low, high, _CONFIDENCE)


class GroupAgreement(NamedTuple):
    """How often labels of the same group agree, beyond chance; ``str`` returns a line.

    :attr:`ContrastiveClassifier.group_agreement_ <skcontrast.ContrastiveClassifier>` is one.

    Attributes
    ----------
    value : float
        1 if all agree, 0 if they agree as often as labels of random samples do. Two agreeing pairs
        are added to those that are counted.
    low : float
        Lower end of the 95 % interval, without these two (Jeffreys).
    n_pairs : int
        Pairs of labels of the same group; k labels of a group count as k − 1.

    Examples
    --------
    >>> from skcontrast.metrics import GroupAgreement
    >>> agreement = GroupAgreement(0.93, 0.71, 15)
    >>> print(agreement)
    0.93 (at least 0.710, 15 labeled pairs)
    >>> agreement.is_low, agreement.is_known
    (False, True)
    """

    value: float
    low: float
    n_pairs: int

    def __str__(self) -> str:
        if self.n_pairs == 0:
            return "unknown (0 labeled pairs)"
        return f"{self.value:.2f} (at least {self.low:.3f}, {self.n_pairs} labeled pairs)"

    @property
    def is_low(self) -> bool:
        """Whether labels disagree too often for groups to be of use: `value` is below .7."""
        return self.value < _LEAST_AGREEMENT

    @property
    def is_known(self) -> bool:
        """Whether enough pairs agree for labels to spread in groups: `low` is at least .7."""
        return self.low >= _LEAST_AGREEMENT


def agreement_from_pairs(n_agreeing: float, n_pairs: int, chance: float) -> GroupAgreement:
    """Return the agreement for numbers of pairs, and the share that agrees by chance."""
    tail, share = (1 - _AGREEMENT_CONFIDENCE) / 2, (n_agreeing + _PRIOR) / (n_pairs + _PRIOR)
    low = float(beta.ppf(tail, n_agreeing + 0.5, n_pairs - n_agreeing + 0.5))
    return GroupAgreement((share - chance) / (1 - chance), (low - chance) / (1 - chance), n_pairs)
