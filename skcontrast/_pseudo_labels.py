"""Pseudo-labels of a classifier, by label spreading and by groups, and how accurate it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple
from warnings import catch_warnings

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import logit, logsumexp, softmax
from scipy.stats import entropy
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import has_fit_parameter

from ._blocks import Labels, WeightedBlocks
from ._data._arrays import as_tensor
from ._label_spreading import LabelGraph
from ._warnings import warn
from .features import PartialWhitening
from .metrics._estimated import (
    EstimatedAccuracy,
    GroupAgreement,
    accuracy_from_logit,
    agreement_from_pairs,
)

# Neighbours of a sample in label spreading, and principal components in which they are searched.
_N_NEIGHBORS, _N_COMPONENTS = 5, 32
# Added to the probabilities of a block, so that no single block excludes a class; chosen by hand.
_LEAST_PROBABILITY = 1e-3
# Largest total weight of the pseudo-labels of a class, relative to its known labels. With 1 and
# blocks weighted by κ, the classifier was .005 worse on four sets that had no part in the choice
# (benchmarks/studies/results/classifier.md).
_WEIGHT = 0.5
# Fits of a LogisticRegression, or another classifier, without some of the labels, and the largest
# number of labels for which they are made: with more, five folds are accurate.
_MOST_FOLDS, _FEWER_FOLDS, _MOST_LABELS = 100, 20, 500
# The fewest labels per class on average, and the fewest unlabeled rows, for an estimate; and the
# least exponential of the entropy of the classes of the labels, relative to their number. With two
# classes and 1 : 10, .68, the estimate was .2 too low, since label spreading takes classes for
# equally frequent.
_LABELS_PER_CLASS, _FEWEST_UNLABELED, _LEAST_EVENNESS = 2, 100, 0.7
# Unlabeled rows from which a temperature is found, and the smallest probability of a class.
_MOST_ROWS, _LEAST_SHARE = 10_000, 1e-9
# Bounds of the logarithm of a temperature.
_COLDEST, _HOTTEST = -3.0, 3.0


def agreement_of(codes: NDArray[np.int64], groups: NDArray[np.int64]) -> GroupAgreement:
    """Return how often known classes of the same group agree; warn if that is low or unknown."""
    is_labeled = (codes >= 0) & (groups >= 0)
    shares = np.bincount(codes[codes >= 0]) / (codes >= 0).sum()
    pairs = np.stack([groups[is_labeled], codes[is_labeled]])
    (of, _), counts = np.unique(pairs, axis=1, return_counts=True)
    sizes = np.bincount(of, counts)
    # k labels of a group are k − 1 observations, since its pairs depend on each other.
    n_agreeing = float((np.bincount(of, counts * (counts - 1)) / sizes.clip(1)).sum())
    n_pairs, chance = int((sizes - 1).clip(0).sum()), float(shares @ shares)
    agreement = agreement_from_pairs(n_agreeing, n_pairs, chance)
    if agreement.is_low:
        warn(
            "groups are ignored, because fewer than 0.7 of the pairs of labels of a group agree, "
            "beyond chance (attribute group_agreement_). Pass groups whose samples share a class, "
            "such as those of one patient; if each group holds all classes, pass them as domains."
        )
    elif not agreement.is_known and (codes < 0).any():
        missing = 5
        while not agreement_from_pairs(n_agreeing + missing, n_pairs + missing, chance).is_known:
            missing *= 2
        more = f"about {missing} more samples whose group has a label"
        warn(
            "Labels are not spread in groups, because it is not certain that groups share a "
            "class (attribute group_agreement_). Label "
            f"{more if n_pairs else f'two samples of each of about {missing} groups'}."
        )
    return agreement


def spread_in_groups(classifier: Any, Z: NDArray, labels: Labels) -> Labels:
    """Return labels where unlabeled rows have the most frequent label of their group, if one is.

    Their weight is the probability that the classifier, fitted to the known classes, gives to it.
    If it has no probabilities or takes no weights, they get it where the classifier predicts it.
    """
    codes, groups = labels.codes, labels.groups
    if groups is None:
        return labels
    known, free = (groups >= 0) & (codes >= 0), (groups >= 0) & (codes < 0)
    votes = np.zeros((groups.max() + 1, len(labels.classes)))
    n_votes = 1 if labels.weight is None else labels.weight[known]
    np.add.at(votes, (groups[known], codes[known]), n_votes)
    # The most frequent label is ahead of the second.
    rows = np.flatnonzero(free & (np.diff(np.sort(votes)[:, -2:])[groups, 0] > 0))
    if not len(rows):
        return labels
    spread, majority = codes.copy(), votes[groups[rows]].argmax(1)
    takes_weights = has_fit_parameter(classifier, "sample_weight")
    if not (takes_weights and hasattr(classifier, "predict_proba")):
        is_predicted = labels.predict(classifier, Z[rows]) == majority
        spread[rows] = np.where(is_predicted, majority, -1)
        return replace(labels, codes=spread)
    spread[rows] = majority
    weight = np.ones(len(codes)) if labels.weight is None else labels.weight.astype(np.float64)
    weight[rows] *= classifier.predict_proba(Z[rows])[np.arange(len(rows)), majority]
    return replace(labels, codes=spread, weight=weight)


def pooled(probabilities: NDArray, groups: NDArray[np.int64]) -> NDArray:
    """Return the probabilities of rows, multiplied over each group; −1 is a group of one."""
    units = _units(groups)
    logs = np.log(np.maximum(probabilities, np.finfo(np.float64).tiny))
    sums = np.zeros((units.max() + 1, probabilities.shape[1]))
    np.add.at(sums, units, logs)
    return np.exp(sums - logsumexp(sums, axis=1, keepdims=True))[units]


def _units(groups: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return groups as numbers from 0 on, where each row without a group is one."""
    alone = groups.max(initial=-1) + 1 + np.arange(len(groups))
    return np.unique(np.where(groups >= 0, groups, alone), return_inverse=True)[1]


class Trust(NamedTuple):
    """What is known of a classifier's predictions; see the attributes of `ContrastiveClassifier`.

    `reason` says why there is no estimate.
    """

    accuracy: EstimatedAccuracy | None = None
    temperature: float = 1.0
    uncertainty: NDArray[np.float64] | None = None
    reason: str = "it needs pseudo-labels and unlabeled samples"


def refit(
    classifier: Any,
    blocks: WeightedBlocks,
    Z: NDArray,
    own: Labels,
    *,
    in_groups: bool,
    uses_y: bool,
) -> Trust:
    """Fit a fitted classifier again, with pseudo-labels, and estimate how accurate it is.

    Parameters
    ----------
    classifier : classifier
        Fitted to the known classes.
    blocks, Z : WeightedBlocks, ndarray of shape (n, n_columns)
        The fitted blocks and their output.
    own : Labels
        The known classes.
    in_groups : bool
        Whether labels are spread in groups first.
    uses_y : bool
        Whether the embedder has learnt from the known classes.
    """
    spreading, labels = Spreading(blocks, Z, own.codes), own
    agreed = _agreed_labels(spreading, own.codes, own.predict(classifier, Z))
    estimate, reason = None, _why_no_estimate(own.codes)
    if uses_y or getattr(blocks.embedder.loss_, "requires_y", False):
        reason = "the embedder has learnt from y"
    unlabeled = np.flatnonzero(own.codes < 0)
    if not reason:
        share = float((agreed[unlabeled] >= 0).mean())
        estimate = _estimated_accuracy(share, spreading, classifier, Z, own)
        reason = "the classifier cannot be fitted without some of the labels"
    # The temperature is that of the classifier whose accuracy is estimated, before labels spread.
    some, probabilities = unlabeled[:: max(1, -(-len(unlabeled) // _MOST_ROWS))], None
    if in_groups and (labels := spread_in_groups(classifier, Z, own)) is not own:
        if estimate is not None and hasattr(classifier, "predict_proba"):
            probabilities = classifier.predict_proba(Z[some])
        labels.fit(classifier, Z)
        spreading = Spreading(blocks, Z, labels.codes)
        agreed = _agreed_labels(spreading, labels.codes, labels.predict(classifier, Z))
    weight = labels.weight
    if (labels.codes < 0).any() and has_fit_parameter(classifier, "sample_weight"):
        weight = _weights(agreed, labels.codes) * (1 if weight is None else weight)
    replace(labels, codes=agreed, weight=weight).fit(classifier, Z)
    if not hasattr(classifier, "predict_proba"):
        return Trust(estimate, reason=reason)
    temperature = 1.0
    if estimate is not None:
        if probabilities is None:
            probabilities = classifier.predict_proba(Z[some])
        temperature = _matching_temperature(probabilities, estimate.value)
    uncertainty = _uncertainty(classifier, Z, spreading, own.codes)
    return Trust(estimate, temperature, uncertainty, reason)


class Spreading:
    """Label spreading on each block; the weights of the blocks mix the log-probabilities.

    Parameters
    ----------
    blocks : WeightedBlocks
        Its columns and weights.
    Z : ndarray of shape (n, n_columns)
        The output of the blocks.
    codes : ndarray of shape (n,), dtype int64
        Classes 0, 1, …; −1 where unknown.
    """

    def __init__(self, blocks: WeightedBlocks, Z: NDArray, codes: NDArray):
        n_components = min(_N_COMPONENTS, max(len(codes) // 32, 2))
        whitening, known = PartialWhitening(n_components, random_state=0), torch.from_numpy(codes)
        self.shares = blocks.shares
        columns = (np.asarray(whitening.fit_transform(Z[:, block])) for block in blocks.slices)
        self.graphs = [LabelGraph(as_tensor(h), known, _N_NEIGHBORS) for h in columns]

    def scores(self) -> Iterator[tuple[slice, NDArray]]:
        """Yield chunks of rows and the log-probabilities of their classes, up to a constant."""
        for of_blocks in zip(*(graph.chunks() for graph in self.graphs), strict=True):
            yield of_blocks[0][0], self._mixed([spread for _, spread in of_blocks])

    def left_out(self, folds: NDArray[np.int64]) -> NDArray:
        """Return the same for labeled rows, without the labels of their fold."""
        return self._mixed([graph.left_out(folds) for graph in self.graphs])

    def _mixed(self, spread: list[NDArray]) -> NDArray:
        logs = [np.log(probabilities + _LEAST_PROBABILITY) for probabilities in spread]
        return np.tensordot(self.shares, logs, 1)


def _agreed_labels(spreading: Spreading, codes: NDArray, predicted: NDArray) -> NDArray[np.int64]:
    """Return known classes, predicted ones where label spreading agrees, otherwise −1."""
    agreed = codes.copy()
    for rows, score in spreading.scores():
        is_agreed = (score.argmax(1) == predicted[rows]) & (codes[rows] < 0)
        is_agreed &= np.ptp(score, axis=1) > 0  # some label reaches the row
        agreed[rows] = np.where(is_agreed, predicted[rows], codes[rows])
    return agreed


def _weights(agreed: NDArray, codes: NDArray) -> NDArray[np.float64]:
    """Return weights of rows: the pseudo-labels of a class weigh at most half its known labels.

    They weigh less if there are fewer of them than of known labels, and if few rows have one. The
    factor for that is the square of the share of rows with one, corrected for chance as κ is.
    """
    n_classes, is_known = codes.max() + 1, codes >= 0
    n_known = np.bincount(codes[is_known], minlength=n_classes)
    n_pseudo = np.bincount(agreed[(agreed >= 0) & ~is_known], minlength=n_classes)
    share = n_pseudo.sum() / (~is_known).sum()
    beyond_chance = max(0.0, (share * n_classes - 1) / (n_classes - 1))
    # The square was the best of the powers 0 to 2 on ten sets that had no part in the choice; the
    # third power made no further difference (benchmarks/studies/results/classifier.md).
    factor = _WEIGHT * beyond_chance**2 * min(1.0, n_pseudo.sum() / n_known.sum())
    known_weight = np.where(n_pseudo > 0, 1.0, 1.0 + factor)
    pseudo_weight = factor * n_known / np.maximum(n_pseudo, 1)
    return np.where(is_known, known_weight[agreed], pseudo_weight[agreed])


def _why_no_estimate(codes: NDArray) -> str:
    """Return why the accuracy cannot be estimated, or nothing."""
    n_labels, n_classes = (codes >= 0).sum(), codes.max() + 1
    if n_labels < _LABELS_PER_CLASS * n_classes:
        return f"fewer than {_LABELS_PER_CLASS} labels per class on average"
    if len(codes) - n_labels < _FEWEST_UNLABELED:
        return f"fewer than {_FEWEST_UNLABELED} unlabeled samples"
    shares = np.bincount(codes[codes >= 0]) / n_labels
    if np.exp(entropy(shares)) < _LEAST_EVENNESS * n_classes:
        return "the classes of the labels are imbalanced"
    if n_labels > _MOST_LABELS:
        return f"more than {_MOST_LABELS} labels: cross-validate with LabeledFolds"
    return ""


def _estimated_accuracy(
    agreement: float, spreading: Spreading, classifier: Any, Z: NDArray, labels: Labels
) -> EstimatedAccuracy | None:
    """Return the accuracy that agreement suggests, or None if nothing can be left out.

    Parameters
    ----------
    agreement : float
        The share of unlabeled rows for which the classifier of the known classes alone and label
        spreading predict the same.
    spreading, classifier, Z, labels : object
        As in `refit`; copies of the classifier are fitted.
    """
    known = np.flatnonzero(labels.codes >= 0)
    y, columns = labels.codes[known], Z[known]
    weight = None if labels.weight is None else labels.weight[known]
    units = np.arange(len(known)) if labels.groups is None else _units(labels.groups[known])
    is_fast = type(classifier) is LogisticRegression
    folds = units % (_MOST_FOLDS if is_fast else _FEWER_FOLDS)
    is_l2 = is_fast and not classifier.l1_ratio and "l1" not in str(vars(classifier)["penalty"])
    if is_l2 and len(known) < Z.shape[1]:
        # Its predictions depend on the products of rows alone, so that fewer columns do.
        columns = columns @ np.linalg.svd(columns, full_matrices=False)[2].T
    by_spreading, by_classifier = spreading.left_out(folds).argmax(1), np.full(len(y), -1)
    for fold in range(folds.max() + 1):
        rest = np.where(folds == fold, -1, y)
        left_out = (folds == fold) & np.isin(y, rest)  # a class without other labels is unknown
        if left_out.any() and len(np.unique(rest[rest >= 0])) > 1:
            model, of_rest = clone(classifier), Labels(rest, labels.classes, weight)
            try:
                with catch_warnings(action="ignore"):  # the fit to all labels has issued them
                    of_rest.fit(model, columns)
                    by_classifier[left_out] = of_rest.predict(model, columns[left_out])
            except ValueError:  # too few labels for the classifier
                return None
    is_judged = by_classifier >= 0
    if not is_judged.any():
        return None
    y, first, second = y[is_judged], by_classifier[is_judged], by_spreading[is_judged]
    n_correct = ((first == y).sum() + (second == y).sum()) / 2
    accuracy = (n_correct + 1) / (len(y) + 2)
    left_out_agreement = ((first == second).sum() + 1) / (len(y) + 2)
    x = logit(np.clip(agreement, 0.01, 0.99)) + (logit(accuracy) - logit(left_out_agreement)) / 2
    return accuracy_from_logit(float(x))


def _matching_temperature(probabilities: NDArray, accuracy: float) -> float:
    """Return the temperature at which the mean of the top probabilities is an accuracy.

    Probabilities are those of unlabeled rows, ``p ** (1 / temperature)``, scaled to sum 1. It is
    at least :math:`e^{-3}` and at most :math:`e^3`, and 1 if probabilities of 0, as of neighbours
    or trees, keep the mean from being as low.
    """
    tiny = np.finfo(probabilities.dtype).tiny
    logs = np.log(np.maximum(probabilities, tiny))

    def excess(log_temperature: float) -> float:
        return softmax(logs / np.exp(log_temperature), axis=1).max(1).mean() - accuracy

    if excess(_HOTTEST) >= 0:
        return 1.0 if (probabilities < tiny).any() else float(np.exp(_HOTTEST))
    if excess(_COLDEST) <= 0:
        return float(np.exp(_COLDEST))
    return float(np.exp(brentq(excess, _COLDEST, _HOTTEST)))


def at_temperature(probabilities: NDArray, temperature: float) -> NDArray:
    """Return the probabilities of logits that are divided by a temperature."""
    if temperature == 1:
        return probabilities
    logs = np.log(np.maximum(probabilities, np.finfo(probabilities.dtype).tiny))
    return softmax(logs / temperature, axis=1)


def _uncertainty(
    classifier: Any, Z: NDArray, spreading: Spreading, codes: NDArray
) -> NDArray[np.float64]:
    """Return the uncertainty of the predictions for unlabeled rows, NaN for labeled ones."""
    uncertain = np.full(len(codes), np.nan)
    for rows, score in spreading.scores():
        p = classifier.predict_proba(Z[rows])
        mean = softmax((np.log(np.maximum(p, _LEAST_SHARE)) + score) / 2, axis=1)
        uncertain[rows] = 1 - np.take_along_axis(mean, p.argmax(1)[:, None], 1)[:, 0]
    uncertain[codes >= 0] = np.nan
    return uncertain
