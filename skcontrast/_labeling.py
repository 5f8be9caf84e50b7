"""Choice of samples to label, and cross-validation with few labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import BaseCrossValidator, check_cv
from sklearn.utils import check_consistent_length, check_random_state
from threadpoolctl import threadpool_limits

from ._checks import POSITIVE_INT, as_numbers, check_argument, naming, validated
from ._data._metadata import group_codes, known_classes, split_known
from ._runtime import guarded
from .features import PartialWhitening
from .metrics._embeddings import on_sphere
from .metrics._labeled import EMBEDDINGS

# Number of principal components for clustering.
_N_COMPONENTS = 64
# Samples × clusters above which k-means uses mini-batches.
_MOST = 10_000_000
# Maximum number of samples of a cluster whose distances are computed.
_MOST_COMPARED = 2000


@guarded()
@validated(random_state=["random_state"])
def rows_to_label(
    H: ArrayLike,
    n: int,
    y: ArrayLike | None = None,
    *,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.int64]:
    """Choose the samples to label first: active learning from a cold start.

    k-means divides the partially whitened, normalised embedding into one cluster per label. In
    each cluster without a label, the medoid is returned [1]_. A classifier learns more from such
    rows than from the same number of random rows, see :ref:`what-to-label`.

    Parameters
    ----------
    H : array-like of shape (n_samples, n_features)
        An embedding of the samples: the output of ``transform`` of an embedder or of features.
    n : int
        Number of rows.
    y : array-like of shape (n_samples,), default=None
        The labels so far; −1, None, NaN or ``pandas.NA`` where unknown. None is no labels.
    random_state : int, RandomState instance or None, default=None
        Seeds k-means. Pass an int for the same rows in each call.

    Returns
    -------
    rows : ndarray of shape (n,), dtype int64
        Distinct unlabeled rows, those of the largest clusters first.

    Raises
    ------
    ValueError
        If H is not a matrix of finite numbers with two rows or more, y has another number of rows,
        or fewer than n rows have no label.

    See Also
    --------
    ContrastiveClassifier : Learns from labeled and unlabeled samples.

    References
    ----------
    .. [1] G. Hacohen, A. Dekel, D. Weinshall, "Active Learning on a Budget: Opposite Strategies
       Suit High and Low Budgets", ICML 2022, whose TypiClust chooses another row of a cluster.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_digits
    >>> from skcontrast import rows_to_label
    >>> X, y = load_digits(return_X_y=True)
    >>> rows = rows_to_label(X, 10, random_state=0)
    >>> len(np.unique(y[rows])) > 7  # of ten classes; ten random rows have six or seven
    True
    >>> known = np.full(len(X), -1)
    >>> known[rows] = y[rows]
    >>> more = rows_to_label(X, 10, known, random_state=0)
    """
    check_argument("rows_to_label", "n", n, POSITIVE_INT)
    vectors: NDArray = as_numbers(H, "H", EMBEDDINGS, ensure_min_samples=2)
    has_label = np.full(len(vectors), False) if y is None else split_known(y)[1]
    if len(has_label) != len(vectors):
        raise ValueError(
            f"y must have an entry per row, {len(vectors)}, got {len(has_label)}. For "
            "labels of some rows: known = np.full(len(H), None); known[rows] = y."
        )
    if n > (n_free := int((~has_label).sum())):
        raise ValueError(f"n must be at most {n_free}, the number of unlabeled rows, got {n}.")
    generator = check_random_state(random_state)
    with naming("H", EMBEDDINGS):
        whitened = PartialWhitening(_N_COMPONENTS, random_state=generator).fit_transform(vectors)
    points = on_sphere(whitened)
    clusters = _clusters(points, n + int(has_label.sum()), generator)
    sizes = np.bincount(clusters)
    sizes[clusters[has_label]] = 0
    largest = [k for k in np.argsort(-sizes, kind="stable")[:n] if sizes[k]]
    rows = [_medoid(points, np.flatnonzero(clusters == k), generator) for k in largest]
    # Identical samples are one cluster, so there may be fewer than n clusters without a label.
    others = np.setdiff1d(np.flatnonzero(~has_label), rows)
    rest = generator.choice(others, n - len(rows), replace=False)
    return np.array([*rows, *rest], dtype=np.int64)


def _clusters(
    points: NDArray, n_clusters: int, generator: np.random.RandomState
) -> NDArray[np.int32]:
    """Return the cluster of each point."""
    if len(points) * n_clusters > _MOST:
        model = MiniBatchKMeans(n_clusters, batch_size=4096, n_init=3, random_state=generator)
    else:
        model = KMeans(n_clusters, n_init=3, random_state=generator)
    # The rounding of several threads is not reproducible.
    quiet = warnings.catch_warnings(action="ignore", category=ConvergenceWarning)
    with threadpool_limits(1), quiet:  # identical samples
        return model.fit_predict(points)


def _medoid(points: NDArray, rows: NDArray, generator: np.random.RandomState) -> np.int64:
    """Return the row with the smallest sum of distances, in a sample of a large set."""
    sample = generator.permutation(rows)[:_MOST_COMPARED]
    return sample[pairwise_distances(points[sample]).sum(axis=1).argmin()]


class LabeledFolds(BaseCrossValidator):
    """Cross-validation on labeled samples; unlabeled samples are in every training set.

    Other splitters put samples of unknown class into test sets, where most scorers count every
    prediction as wrong.

    Parameters
    ----------
    cv : int or splitter, default=5
        The splitter of the labeled samples; an int is the number of stratified folds.

    See Also
    --------
    ContrastiveClassifier : A classifier for data with few labels.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast import LabeledFolds
    >>> y = np.array([0, 1, -1, 0, 1, -1])
    >>> for train, test in LabeledFolds(2).split(np.zeros(6), y):
    ...     print(train, test)
    [2 3 4 5] [0 1]
    [0 1 2 5] [3 4]
    """

    __metadata_request__split = {"groups": True}

    def __init__(self, cv: Any = 5):
        self.cv = cv

    def split(
        self, X: Any, y: ArrayLike, groups: ArrayLike | None = None
    ) -> Iterator[tuple[NDArray[np.intp], NDArray[np.intp]]]:
        """Yield the rows of each training and test set.

        Parameters
        ----------
        X : object
            Ignored.
        y : array-like of shape (n_samples,)
            Classes; −1, None, NaN or ``pandas.NA`` where unknown.
        groups : array-like of shape (n_samples,), default=None
            Groups for a splitter that needs them, such as ``GroupKFold``.

        Yields
        ------
        train, test : ndarray of int
            Rows of X.
        """
        values, is_known = known_classes(y, needed_by="LabeledFolds")
        known, unknown = np.flatnonzero(is_known), np.flatnonzero(~is_known)
        with naming("groups", "an array of groups, one for each entry of y"):
            check_consistent_length(is_known, groups)
            groups = None if groups is None else group_codes(groups, len(is_known))[known]
        with naming("cv", "a number of folds, or a splitter, that suits y and groups"):
            folds = check_cv(self.cv, values, classifier=True).split(known, values, groups)
            folds = [(np.r_[unknown, known[train]], known[test]) for train, test in folds]
        for train, test in folds:
            yield np.sort(train), test

    def get_n_splits(
        self, X: Any = None, y: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> int:
        """Return the number of folds.

        Parameters
        ----------
        X, y, groups : object, default=None
            As in `split`; some splitters need them.

        Returns
        -------
        n_splits : int
        """
        if y is None:
            return check_cv(self.cv).get_n_splits(X, y, groups)
        return sum(1 for _ in self.split(X, y, groups))
