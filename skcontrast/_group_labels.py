"""Groups of a classifier: how often their labels agree, and what follows from it."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp
from sklearn.utils.validation import has_fit_parameter

from ._blocks import predict_in_batches
from ._warnings import warn

# Groups are ignored if their labels agree less often, and labels spread with this many pairs.
_LEAST_AGREEMENT, _FEWEST_PAIRS = 0.75, 5
# Agreeing pairs that are added, so that few pairs do not exclude groups.
_PRIOR = 2


class GroupAgreement(NamedTuple):
    """How often labels of the same group agree, in the data of a fit.

    Attributes
    ----------
    value : float
        (agreeing pairs + 2) / (pairs + 2).
    n_pairs : int
        Pairs of labeled rows of the same group.
    """

    value: float
    n_pairs: int

    @property
    def is_low(self) -> bool:
        """Whether labels disagree too often for groups to be of use."""
        return self.value < _LEAST_AGREEMENT

    @property
    def is_known(self) -> bool:
        """Whether there are enough pairs."""
        return self.n_pairs >= _FEWEST_PAIRS


def agreement_of(codes: NDArray[np.int64], groups: NDArray[np.int64]) -> GroupAgreement:
    """Return how often known classes of the same group agree, and warn if they do not."""
    rows = np.flatnonzero((codes >= 0) & (groups >= 0))
    of_groups: dict[int, list[int]] = {}
    for row in rows:
        of_groups.setdefault(int(groups[row]), []).append(int(codes[row]))
    pairs = [a == b for known in of_groups.values() for a, b in combinations(known, 2)]
    agreement = GroupAgreement((sum(pairs) + _PRIOR) / (len(pairs) + _PRIOR), len(pairs))
    if agreement.is_low:
        warn(
            f"groups are ignored: of {len(pairs)} pairs of labeled samples of the same group, "
            f"{sum(pairs)} have the same class. Pass groups whose samples share a class, such as "
            "those of one patient; if each group holds all classes, pass them as domains."
        )
    elif not agreement.is_known:
        warn(
            "Labels are not spread in groups, because too little is known of their agreement: "
            f"{len(pairs)} pair(s) of labeled samples are in the same group. Label "
            f"{_FEWEST_PAIRS - len(pairs)} more samples whose group has a label."
        )
    return agreement


def spread_in_groups(
    classifier: Any,
    Z: NDArray,
    codes: NDArray[np.int64],
    classes: NDArray,
    weight: NDArray | None,
    groups: NDArray[np.int64],
) -> tuple[NDArray[np.int64], NDArray | None]:
    """Return classes and weights of rows, where unlabeled rows get the majority of their group.

    They weigh what the classifier, fitted to the known classes, gives as the probability of it. If
    it has no probabilities or takes no weights, they get it where the classifier predicts it.
    """
    n_classes, has_group = len(classes), groups >= 0
    votes = np.zeros((groups.max() + 1, n_classes))
    known = has_group & (codes >= 0)
    np.add.at(votes, (groups[known], codes[known]), 1)
    free = np.flatnonzero(has_group & (codes < 0))
    free = free[votes[groups[free]].any(1)]
    spread, majority = codes.copy(), votes[groups[free]].argmax(1)
    if not len(free):
        return codes, weight
    is_weighted = hasattr(classifier, "predict_proba") and has_fit_parameter(
        classifier, "sample_weight"
    )
    if not is_weighted:
        predicted = np.searchsorted(classes, predict_in_batches(classifier, Z[free]))
        spread[free] = np.where(predicted == majority, majority, -1)
        return spread, weight
    spread[free] = majority
    weights = np.ones(len(codes)) if weight is None else weight.astype(np.float64)
    probabilities = classifier.predict_proba(Z[free])
    weights[free] *= probabilities[np.arange(len(free)), majority]
    return spread, weights


def pooled(probabilities: NDArray, groups: NDArray[np.int64]) -> NDArray:
    """Return the probabilities of rows, multiplied over each group; −1 is a group of one."""
    units = np.where(groups >= 0, groups, groups.max(initial=-1) + 1 + np.arange(len(groups)))
    units = np.unique(units, return_inverse=True)[1]
    logs = np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))
    sums = np.zeros((units.max() + 1, probabilities.shape[1]))
    np.add.at(sums, units, logs)
    return np.exp(sums - logsumexp(sums, axis=1, keepdims=True))[units]
