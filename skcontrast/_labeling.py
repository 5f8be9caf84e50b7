"""Choice of samples to label, and cross-validation with few labels."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import pairwise_distances
from sklearn.model_selection import BaseCrossValidator, StratifiedGroupKFold, check_cv
from sklearn.utils import check_consistent_length, check_random_state, gen_batches
from threadpoolctl import threadpool_limits

from ._checks import POSITIVE_INT
from ._checks._arguments import as_numbers, check_argument, naming, validated
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
# Maximum number of unlabeled samples among which rows are chosen that cover the others, and of
# rows of distances in memory at once.
_MOST_COVERED, _CHUNK = 10_000, 1024
# The distance to this neighbour is the width of the kernel of coverage.
_NEIGHBOR = 10


@guarded()
@validated(random_state=["random_state"])
def rows_to_label(
    H: ArrayLike,
    n: int,
    y: ArrayLike | None = None,
    *,
    uncertainty: ArrayLike | None = None,
    random_state: int | np.random.RandomState | None = None,
) -> NDArray[np.int64]:
    r"""Choose the samples to label first, or next: active learning.

    Without labels, k-means divides the partially whitened, normalised embedding into n clusters,
    and the medoid of each is returned [1]_. With labels, the rows are chosen one after another,
    each of which covers most of what no labeled or chosen row C covers [2]_:

    .. math:: \arg\max_i \sum_j u_j \max\bigl(0, k(i, j) - \max_{c \in C} k(c, j)\bigr),
        \qquad k(i, j) = \exp(-\lVert z_i - z_j \rVert^2 / \sigma^2)

    with centred, normalised embeddings z, the median squared distance σ² to the tenth neighbour,
    and the uncertainty u. A classifier learns more from such rows than from the same number of
    random rows, see :ref:`what-to-label`.

    Parameters
    ----------
    H : array-like of shape (n_samples, n_features)
        An embedding of the samples: the output of ``transform`` of an embedder, of features or of
        a :class:`ContrastiveClassifier`.
    n : int
        Number of rows.
    y : array-like of shape (n_samples,), default=None
        The labels so far; −1, None, NaN or ``pandas.NA`` where unknown. None is no labels.
    uncertainty : array-like of shape (n_samples,), default=None
        Weights ≥ 0 of the samples, if some have labels, such as ``uncertainty_`` of a
        :class:`ContrastiveClassifier`; entries of labeled rows are ignored. They help
        the predictions for these samples more than those for new ones. None is equal weights.
    random_state : int, RandomState instance or None, default=None
        Seeds k-means, and the choice of 10,000 rows if more have no label. Pass an int for the
        same rows in each call.

    Returns
    -------
    rows : ndarray of shape (n,), dtype int64
        Distinct unlabeled rows, the most important first: of the largest clusters, or those that
        cover most.

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
    .. [2] K. Wei, R. Iyer, J. Bilmes, "Submodularity in Data Subset Selection and Active
       Learning", ICML 2015.

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
    weights = _weights(uncertainty, has_label)
    if has_label.any():
        rows = _covering(vectors, n, has_label, weights, generator)
    else:
        rows = _central(vectors, n, generator)
    # Identical samples are one cluster, so there may be fewer than n.
    others = np.setdiff1d(np.flatnonzero(~has_label), rows)
    rest = generator.choice(others, n - len(rows), replace=False)
    return np.array([*rows, *rest], dtype=np.int64)


def _weights(uncertainty: ArrayLike | None, has_label: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Return the weights of all rows; those of labeled ones are 0."""
    if uncertainty is None:
        return np.where(has_label, 0, 1).astype(np.float32)
    if not has_label.any():
        raise ValueError(
            "uncertainty must be None without labels, because rows are then chosen by clusters: "
            "pass y, with the labels so far."
        )
    expected = f"{len(has_label)} numbers ≥ 0, one for each row"
    with naming("uncertainty", expected, uncertainty):
        weights = np.asarray(uncertainty, dtype=np.float64)
        if weights.shape != has_label.shape:
            raise ValueError(f"its shape is {weights.shape}")
        weights = np.where(has_label, 0.0, weights)
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError("it has other values")
    return weights.astype(np.float32)


def _covering(
    vectors: NDArray,
    n: int,
    has_label: NDArray[np.bool_],
    weights: NDArray[np.float32],
    generator: np.random.RandomState,
) -> list[np.int64]:
    """Return unlabeled rows that cover what no labeled row covers, one after another."""
    with naming("H", EMBEDDINGS):
        points = on_sphere(vectors - vectors.mean(0)).astype(np.float32)
    rows = np.sort(generator.permutation(np.flatnonzero(~has_label))[:_MOST_COVERED])
    weights, labeled = weights[rows], points[has_label]
    points = points[rows]
    chunks = list(gen_batches(len(rows), _CHUNK))
    kernel = np.empty((len(rows), len(rows)), np.float32)
    neighbor, distances = min(_NEIGHBOR, len(rows) - 1), []
    for chunk in chunks:
        kernel[chunk] = np.maximum(2 - 2 * points[chunk] @ points.T, 0)
        distances.append(np.partition(kernel[chunk], neighbor, axis=1)[:, neighbor])
    scale = -1 / max(float(np.median(np.concatenate(distances))), 1e-6)
    cover = np.zeros(len(rows), np.float32)
    for chunk in chunks:
        kernel[chunk] = np.exp(scale * kernel[chunk])
        cosines = (points[chunk] @ labeled.T).max(1)
        cover[chunk] = np.exp(scale * np.maximum(2 - 2 * cosines, 0))
    gain = np.concatenate([np.maximum(kernel[c] - cover, 0) @ weights for c in chunks])
    chosen: list[int] = []
    while len(chosen) < min(n, len(rows)):
        # Gains only fall, so that the largest is known once it is up to date.
        best = int(gain.argmax())
        present = np.maximum(kernel[best] - cover, 0) @ weights
        if present < gain[best]:
            gain[best] = present
            continue
        chosen.append(best)
        gain[best] = -1
        cover = np.maximum(cover, kernel[best])
    return list(rows[chosen])


def _central(vectors: NDArray, n: int, generator: np.random.RandomState) -> list[np.int64]:
    """Return the medoids of n clusters, the largest first."""
    with naming("H", EMBEDDINGS):
        whitened = PartialWhitening(_N_COMPONENTS, random_state=generator).fit_transform(vectors)
    points, options = on_sphere(whitened), {"n_init": 3, "random_state": generator}
    are_many = len(points) * n > _MOST
    model = MiniBatchKMeans(n, batch_size=4096, **options) if are_many else KMeans(n, **options)
    # The rounding of several threads is not reproducible.
    quiet = warnings.catch_warnings(action="ignore", category=ConvergenceWarning)
    with threadpool_limits(1), quiet:  # identical samples
        clusters = model.fit_predict(points)
    sizes = np.bincount(clusters)
    largest = [k for k in np.argsort(-sizes, kind="stable")[:n] if sizes[k]]
    return [_medoid(points, np.flatnonzero(clusters == k), generator) for k in largest]


def _medoid(points: NDArray, rows: NDArray, generator: np.random.RandomState) -> np.int64:
    """Return the row with the smallest sum of distances, in a sample of a large set."""
    sample = generator.permutation(rows)[:_MOST_COMPARED]
    return sample[pairwise_distances(points[sample]).sum(axis=1).argmin()]


class LabeledFolds(BaseCrossValidator):
    """Cross-validation on labeled samples; unlabeled samples are in every training set.

    Other splitters put samples of unknown class into test sets, where most scorers count every
    prediction as wrong. ``cross_val_predict`` needs test sets of all samples: loop over `split`.

    Parameters
    ----------
    cv : int or splitter, default=5
        The splitter of the labeled samples; an int is the number of stratified folds. If `split`
        gets groups, these folds do not divide the labeled samples of a group.

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
            Groups that folds do not divide, or that a splitter such as ``GroupKFold`` needs; −1
            for none.

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
            cv = self.cv
            if groups is not None:
                alone = groups.max(initial=-1) + 1 + np.arange(len(groups))
                groups = np.where(groups < 0, alone, groups)
                cv = StratifiedGroupKFold(cv) if isinstance(cv, Integral) else cv
        with naming("cv", "a number of folds, or a splitter, that suits y and groups"):
            folds = check_cv(cv, values, classifier=True).split(known, values, groups)
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
