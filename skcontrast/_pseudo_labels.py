"""Pseudo-labels of a classifier, and what they tell of its accuracy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.special import logit, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import has_fit_parameter

from ._blocks import WeightedBlocks, fit_to_known, predict_in_batches
from ._data._arrays import as_tensor
from ._label_spreading import LabelGraph
from .features import PartialWhitening
from .metrics._estimated import EstimatedAccuracy, accuracy_from_logit

# Neighbours of a sample in label spreading, and principal components in which they are searched.
_N_NEIGHBORS, _N_COMPONENTS = 5, 32
# Added to the probabilities of a block, so that no single block excludes a class; chosen by hand.
_LEAST_PROBABILITY = 1e-3
# Largest total weight of the pseudo-labels of a class, relative to its known labels. With 1 and
# blocks weighted by κ, the classifier was .005 worse on four sets that had no part in the choice
# (benchmarks/studies/results/classifier.md).
_WEIGHT = 0.5
# Fits of the classifier without some of the labels, and the largest number of labels for which
# they are made: with more, five folds are accurate.
_MOST_FOLDS, _MOST_LABELS = 100, 500
# The fewest labels per class on average, and the fewest unlabeled rows, for an estimate.
_LABELS_PER_CLASS, _FEWEST_UNLABELED = 2, 100
# Unlabeled rows from which a temperature is found, and the smallest probability of a class.
_MOST_ROWS, _LEAST_SHARE = 10_000, 1e-9
# Bounds of the logarithm of a temperature.
_COLDEST, _HOTTEST = -3.0, 3.0


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
    codes: NDArray,
    own_codes: NDArray,
    classes: NDArray,
    weight: NDArray | None,
    groups: NDArray | None,
    *,
    uses_y: bool,
) -> Trust:
    """Fit a fitted classifier again, with pseudo-labels, and estimate how accurate it is.

    Parameters
    ----------
    classifier : classifier
        Fitted to the rows of known class.
    blocks, Z : WeightedBlocks, ndarray of shape (n, n_columns)
        The fitted blocks and their output.
    codes, own_codes, classes : ndarray
        Positions of the classes of the rows among `classes`, −1 where unknown; and without those
        that rows have from their group.
    weight, groups : ndarray of shape (n,) or None
        Weights of the rows, and groups; −1 for none.
    uses_y : bool
        Whether the embedder has learnt from the known classes.
    """
    predicted = np.searchsorted(classes, predict_in_batches(classifier, Z))
    spreading = Spreading(blocks, Z, codes)
    agreed = agreed_labels(spreading, codes, predicted)
    estimate = None
    reason = _why_no_estimate(own_codes)
    if uses_y or getattr(blocks.embedder.loss_, "requires_y", False):
        reason = "the embedder has learnt from y"
    if not reason:
        share = float((agreed >= 0)[codes < 0].mean())
        given = Z, codes, own_codes, classes, weight, groups
        estimate = estimated_accuracy(share, spreading, classifier, *given)
        reason = "no class has labels in two groups"
    _fit_to_agreed(classifier, Z, agreed, codes, classes, weight)
    if not hasattr(classifier, "predict_proba"):
        return Trust(estimate, reason=reason)
    temperature, unlabeled = 1.0, np.flatnonzero(codes < 0)
    if estimate is not None:
        some = unlabeled[:: -(-len(unlabeled) // _MOST_ROWS)]
        temperature = _matching_temperature(classifier.predict_proba(Z[some]), estimate.value)
    uncertainty = _uncertainty(classifier, Z, spreading, own_codes)
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
        self.graphs = [
            LabelGraph(
                as_tensor(np.asarray(whitening.fit_transform(Z[:, block]))), known, _N_NEIGHBORS
            )
            for block in blocks.slices
        ]

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


def agreed_labels(spreading: Spreading, codes: NDArray, predicted: NDArray) -> NDArray[np.int64]:
    """Return known classes, predicted ones where label spreading agrees, otherwise −1."""
    agreed = codes.copy()
    for rows, score in spreading.scores():
        is_agreed = (score.argmax(1) == predicted[rows]) & (codes[rows] < 0)
        is_agreed &= np.ptp(score, axis=1) > 0  # some label reaches the row
        agreed[rows] = np.where(is_agreed, predicted[rows], codes[rows])
    return agreed


def _fit_to_agreed(
    classifier: Any,
    Z: NDArray,
    agreed: NDArray,
    codes: NDArray,
    classes: NDArray,
    weight: NDArray | None,
) -> None:
    """Fit a classifier to known classes and pseudo-labels."""
    if has_fit_parameter(classifier, "sample_weight"):
        weight = _weights(agreed, codes) * (1 if weight is None else weight)
    fit_to_known(classifier, Z, agreed, classes, weight)


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
    n_labels, n_classes, n_rows = (codes >= 0).sum(), codes.max() + 1, len(codes)
    if n_labels < _LABELS_PER_CLASS * n_classes:
        return f"fewer than {_LABELS_PER_CLASS} labels per class on average"
    if n_rows - n_labels < _FEWEST_UNLABELED:
        return f"fewer than {_FEWEST_UNLABELED} unlabeled samples"
    if n_labels > _MOST_LABELS:
        return f"more than {_MOST_LABELS} labels: cross-validate with LabeledFolds"
    return ""


def estimated_accuracy(
    agreement: float,
    spreading: Spreading,
    classifier: Any,
    Z: NDArray,
    codes: NDArray,
    own_codes: NDArray,
    classes: NDArray,
    weight: NDArray | None,
    groups: NDArray | None,
) -> EstimatedAccuracy | None:
    """Return the accuracy that agreement suggests, or None if no class has two labels.

    Parameters
    ----------
    agreement : float
        The share of unlabeled rows for which the classifier of the known classes alone and label
        spreading predict the same.
    spreading, classifier, Z, codes, own_codes, classes, weight : object
        As in `refit`; copies of the classifier are fitted.
    groups : ndarray of shape (n,), dtype int64, or None
        Rows of a group are left out together; −1 for none.
    """
    known = np.flatnonzero(codes >= 0)
    y, folds = codes[known], _folds(known, groups)
    is_own = own_codes[known] >= 0
    columns = Z[known]
    if type(classifier) is LogisticRegression and len(known) < Z.shape[1]:
        # Its predictions depend on the products of rows alone, so that fewer columns do.
        columns = columns @ np.linalg.svd(columns, full_matrices=False)[2].T
    by_spreading = spreading.left_out(folds).argmax(1)
    by_classifier = np.full(len(y), -1)
    for fold in range(folds.max() + 1):
        rest = np.where(folds == fold, -1, y)
        # A class without other labels is unknown.
        left_out = (folds == fold) & is_own & np.isin(y, rest)
        if not left_out.any() or len(np.unique(rest[rest >= 0])) < 2:
            continue
        model = clone(classifier)
        fit_to_known(model, columns, rest, classes, None if weight is None else weight[known])
        by_classifier[left_out] = np.searchsorted(classes, model.predict(columns[left_out]))
    is_judged = by_classifier >= 0
    if not is_judged.any():
        return None
    y, first, second = y[is_judged], by_classifier[is_judged], by_spreading[is_judged]
    n_correct = ((first == y).sum() + (second == y).sum()) / 2
    accuracy = (n_correct + 1) / (len(y) + 2)
    left_out_agreement = ((first == second).sum() + 1) / (len(y) + 2)
    x = logit(np.clip(agreement, 0.01, 0.99)) + (logit(accuracy) - logit(left_out_agreement)) / 2
    return accuracy_from_logit(float(x))


def _folds(known: NDArray, groups: NDArray | None) -> NDArray[np.int64]:
    """Return the fold of each labeled row: one for each row or group, at most a hundred."""
    units = np.arange(len(known))
    if groups is not None:
        units = np.where(groups[known] >= 0, groups[known], groups.max() + 1 + units)
    return np.unique(units, return_inverse=True)[1] % _MOST_FOLDS


def _matching_temperature(probabilities: NDArray, accuracy: float) -> float:
    """Return the temperature at which the mean of the top probabilities is an accuracy.

    Probabilities are those of unlabeled rows, ``p ** (1 / temperature)``, scaled to sum 1. It is 1
    if there is no such temperature between :math:`e^{-3}` and :math:`e^3`.
    """
    logs = np.log(np.maximum(probabilities, _LEAST_SHARE))

    def excess(log_temperature: float) -> float:
        return softmax(logs / np.exp(log_temperature), axis=1).max(1).mean() - accuracy

    is_between = excess(_COLDEST) > 0 > excess(_HOTTEST)
    return float(np.exp(brentq(excess, _COLDEST, _HOTTEST))) if is_between else 1.0


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
