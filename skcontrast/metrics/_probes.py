"""Linear probes: the accuracy of a logistic regression on an embedding."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from .._checks import POSITIVE, POSITIVE_INT
from .._checks._constraints import SEEDS, TWO_OR_MORE
from .._runtime import generator_of
from ._labeled import LabeledEmbeddings, check_count, check_labeled, measure
from ._scorers import make_embedding_scorer

_MAX_ITER = 2000


@measure(make_embedding_scorer, scale=["boolean"], C=POSITIVE, cv=TWO_OR_MORE)
def linear_probe(
    H: ArrayLike,
    y: ArrayLike,
    H_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    *,
    scale: bool = True,
    C: float = 1.0,
    cv: int = 5,
) -> float:
    """Return the accuracy of a logistic regression on standardised embeddings.

    The linear evaluation of self-supervised learning [1]_, with scikit-learn's
    ``StandardScaler`` and ``LogisticRegression``.

    Parameters
    ----------
    H : array-like of shape (n_samples, d)
        Embeddings of the training set.
    y : array-like of shape (n_samples,)
        Classes, at least two; −1 where unknown: such samples are ignored.
    H_test, y_test : array-like of shape (n_test, d) and (n_test,), default=None
        The test set. If None, the accuracy is the mean over stratified, shuffled folds of H,
        which are always the same.
    scale : bool, default=True
        Whether each feature is standardised by the training set. If False, the penalty depends
        on the scale of the embedding.
    C : float, default=1.0
        Inverse strength of the penalty, above 0.
    cv : int, default=5
        Number of folds, at least 2, without a test set.

    Returns
    -------
    accuracy : float
        In [0, 1].

    Raises
    ------
    ValueError
        If embeddings are not finite, shapes disagree, fewer than two classes are known or a
        parameter is outside its range.

    See Also
    --------
    few_label_accuracy : The same with few labels.
    knn_accuracy : The accuracy of nearest neighbours.
    make_embedding_scorer : Makes a scorer of it.

    References
    ----------
    .. [1] T. Chen, S. Kornblith, M. Norouzi, G. Hinton, "A Simple Framework for Contrastive
       Learning of Visual Representations", ICML 2020.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcontrast.metrics import linear_probe
    >>> X, y = load_iris(return_X_y=True)
    >>> linear_probe(X[::2], y[::2], X[1::2], y[1::2]) > 0.9
    True
    """
    labeled = check_labeled(H, y, H_test, y_test, "linear_probe")
    probe = _make_probe(scale, C)
    if labeled.H_test is not None:
        return _accuracy(probe, labeled)
    folds = StratifiedKFold(cv, shuffle=True, random_state=0)
    return float(cross_val_score(probe, labeled.H, labeled.y, cv=folds).mean())


@measure(
    make_embedding_scorer,
    scale=["boolean"],
    C=POSITIVE,
    n_labels=POSITIVE_INT,
    n_draws=POSITIVE_INT,
    random_state=SEEDS,
)
def few_label_accuracy(
    H: ArrayLike,
    y: ArrayLike,
    H_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    *,
    n_labels: int = 5,
    n_draws: int = 10,
    random_state: int | np.random.RandomState | None = 0,
    scale: bool = True,
    C: float = 1.0,
) -> NDArray[np.float64]:
    """Return the accuracies of a logistic regression trained on a few labels per class.

    Accuracies of single draws of the labeled samples differ by several percent: compare means over
    the same draws.

    Parameters
    ----------
    H : array-like of shape (n_samples, d)
        Embeddings from which the labeled samples are drawn.
    y : array-like of shape (n_samples,)
        Classes, at least two; −1 where unknown: such samples are ignored.
    H_test, y_test : array-like of shape (n_test, d) and (n_test,), default=None
        The test set. If None, the probe is tested on all other samples of H.
    n_labels : int, default=5
        Labeled samples per class, at most the size of the smallest class.
    n_draws : int, default=10
        Number of draws.
    random_state : int, RandomState or None, default=0
        Draw i has the seed ``random_state + i``, and only depends on y: embeddings of the same
        samples get the same draws. None draws different samples at every call.
    scale : bool, default=True
        Whether each feature is standardised by the labeled samples.
    C : float, default=1.0
        Inverse strength of the penalty, above 0.

    Returns
    -------
    accuracies : ndarray of shape (n_draws,)
        In [0, 1], one per draw.

    Raises
    ------
    ValueError
        If embeddings are not finite, shapes disagree, fewer than two classes are known, a class
        has fewer than `n_labels` samples or a parameter is outside its range.

    See Also
    --------
    linear_probe : The same with all labels.
    compare_paired : Compares the means of two embedders over seeds.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcontrast.metrics import few_label_accuracy
    >>> X, y = load_iris(return_X_y=True)
    >>> accuracies = few_label_accuracy(X, y, n_labels=5, n_draws=3)
    >>> accuracies.shape, bool(accuracies.mean() > 0.8)
    ((3,), True)
    """
    labeled = check_labeled(H, y, H_test, y_test, "few_label_accuracy")
    smallest = int(np.unique(labeled.y, return_counts=True)[1].min())
    check_count(n_labels, "n_labels", smallest, "the size of the smallest class in y")
    probe, accuracies = _make_probe(scale, C), []
    first = _first_seed(random_state, n_draws)
    for seed in range(first, first + n_draws):
        rows = _few_rows(labeled.y, n_labels, seed)
        accuracies.append(_accuracy(probe, _split(labeled, rows)))
    return np.array(accuracies)


def _make_probe(scale: bool, C: float) -> Pipeline:
    scaler: Any = StandardScaler() if scale else "passthrough"
    return make_pipeline(scaler, LogisticRegression(C=float(C), max_iter=_MAX_ITER))


def _first_seed(random_state: Any, n_draws: int) -> int:
    """Return `random_state` if it is an int, otherwise a seed drawn from it."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(generator_of(random_state).randint(2**31 - 1 - n_draws))


def _few_rows(y: NDArray[np.int64], n_labels: int, seed: int) -> NDArray[np.int64]:
    """Return `n_labels` random rows of each class."""
    rng = np.random.default_rng(seed)
    drawn = [rng.choice(np.flatnonzero(y == k), n_labels, replace=False) for k in np.unique(y)]
    return np.concatenate(drawn)


def _split(labeled: LabeledEmbeddings, train: NDArray[np.int64]) -> LabeledEmbeddings:
    """Return training rows, with the test set if there is one, else `test` or all other rows."""
    H, y = labeled.H[train], labeled.y[train]
    if labeled.H_test is not None:
        return LabeledEmbeddings(H, y, labeled.H_test, labeled.y_test)
    if not len(test := np.setdiff1d(np.arange(len(labeled.y)), train)):
        raise ValueError("n_labels leaves no samples to test on: lower it, or pass H_test.")
    return LabeledEmbeddings(H, y, labeled.H[test], labeled.y[test])


def _accuracy(probe: Pipeline, labeled: LabeledEmbeddings) -> float:
    """Return the test accuracy of a probe that is fitted to the training set."""
    return float(probe.fit(labeled.H, labeled.y).score(labeled.H_test, labeled.y_test))
