"""Measures of neighbours: of the same class, or in common between two embeddings."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.neighbors import VALID_METRICS, NearestNeighbors

from .._checks import POSITIVE_INT, StrOptions
from ._embeddings import batches, check_views, on_sphere
from ._labeled import LabeledEmbeddings, check_count, check_labeled, measure
from ._scorers import make_embedding_scorer, make_view_scorer

Metric: TypeAlias = str | Callable[..., float]
_METRIC = [StrOptions(set(chain.from_iterable(VALID_METRICS.values()))), callable]


@measure(make_embedding_scorer, n_neighbors=POSITIVE_INT, metric=_METRIC)
def knn_accuracy(
    H: ArrayLike,
    y: ArrayLike,
    H_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    *,
    n_neighbors: int = 20,
    metric: Metric = "cosine",
) -> float:
    """Return the k-NN accuracy: of a majority vote of the nearest neighbours.

    Each test sample gets the most frequent class among its nearest training samples; among
    equally frequent classes, the first in sorted order, as in ``KNeighborsClassifier``. This
    is the k-NN probe of [1]_.

    Parameters
    ----------
    H : array-like of shape (n_samples, d)
        Embeddings of the training part.
    y : array-like of shape (n_samples,)
        Classes, at least two; −1 where unknown: such samples are ignored.
    H_test, y_test : array-like of shape (n_test, d) and (n_test,), default=None
        The test part. If there is none, each sample of H is classified by the others.
    n_neighbors : int, default=20
        Number of neighbours, from 1 to the number of training samples (without a test part, to
        one less).
    metric : str or callable, default="cosine"
        A metric of :class:`sklearn.neighbors.NearestNeighbors`. For the cosine, a row of zeros is
        orthogonal to all other rows.

    Returns
    -------
    accuracy : float
        In [0, 1]. Chance level is the share of the largest class.

    Raises
    ------
    ValueError
        If embeddings are not finite, shapes disagree, fewer than two classes are known or
        `n_neighbors` is outside its range.

    See Also
    --------
    recall_at_k : Retrieval instead of classification.
    linear_probe : The accuracy of a linear classifier.
    make_embedding_scorer : Makes a scorer of it.

    References
    ----------
    .. [1] Z. Wu, Y. Xiong, S. Yu, D. Lin, "Unsupervised Feature Learning via Non-Parametric
       Instance Discrimination", CVPR 2018.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcontrast.metrics import knn_accuracy
    >>> X, y = load_iris(return_X_y=True)
    >>> round(knn_accuracy(X, y, n_neighbors=5), 3)
    0.967
    """
    labeled = check_labeled(H, y, H_test, y_test, "knn_accuracy")
    k, (_, truth) = _check_neighbors(labeled, n_neighbors, "n_neighbors"), labeled.queries
    n_classes, n_right = int(labeled.y.max()) + 1, 0
    for rows, neighbors in nearest(labeled.H, labeled.H_test, k, metric, width=n_classes):
        cells = np.arange(len(neighbors))[:, None] * n_classes + labeled.y[neighbors]
        votes = np.bincount(cells.ravel(), minlength=len(neighbors) * n_classes)
        winners = votes.reshape(-1, n_classes).argmax(axis=1)
        n_right += int(np.count_nonzero(winners == truth[rows]))
    return n_right / len(truth)


@measure(make_embedding_scorer, k=POSITIVE_INT, metric=_METRIC)
def recall_at_k(
    H: ArrayLike,
    y: ArrayLike,
    H_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    *,
    k: int = 1,
    metric: Metric = "cosine",
) -> float:
    r"""Return the share of queries with a sample of their class among the k nearest neighbours.

    .. math:: \frac1n \sum_i \max_{j \in N_k(i)} [y_j = y_i]

    the measure of metric learning [1]_, not the recall of information retrieval: one hit is
    enough, so it increases with k. Queries without another sample of their class are
    ignored.

    Parameters
    ----------
    H : array-like of shape (n_samples, d)
        Embeddings of the samples that are searched.
    y : array-like of shape (n_samples,)
        Classes, at least two; −1 where unknown: such samples are ignored.
    H_test, y_test : array-like of shape (n_test, d) and (n_test,), default=None
        The queries. If None, each sample of H is a query for the others.
    k : int, default=1
        Number of neighbours, from 1 to the number of samples (without queries, to one less).
    metric : str or callable, default="cosine"
        As in :func:`knn_accuracy`.

    Returns
    -------
    recall : float
        In [0, 1]. With C classes of equal size, a random embedding reaches about
        :math:`1 - (1 - 1/C)^k`.

    Raises
    ------
    ValueError
        As :func:`knn_accuracy`, and if no query has another sample of its class.

    See Also
    --------
    map_at_r : Evaluates the order of all samples of the class.
    neighbor_agreement : Without classes.

    References
    ----------
    .. [1] H. Oh Song, Y. Xiang, S. Jegelka, S. Savarese, "Deep Metric Learning via Lifted
       Structured Feature Embedding", CVPR 2016.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcontrast.metrics import recall_at_k
    >>> X, y = load_iris(return_X_y=True)
    >>> round(recall_at_k(X, y, k=1), 3), round(recall_at_k(X, y, k=8), 3)
    (0.96, 0.993)
    """
    labeled = check_labeled(H, y, H_test, y_test, "recall_at_k")
    k, (_, truth) = _check_neighbors(labeled, k, "k"), labeled.queries
    can_succeed, n_right = _n_relevant(labeled) > 0, 0
    for rows, neighbors in nearest(labeled.H, labeled.H_test, k, metric):
        hit = (labeled.y[neighbors] == truth[rows, None]).any(axis=1)
        n_right += int(np.count_nonzero(hit & can_succeed[rows]))
    return n_right / int(can_succeed.sum())


@measure(make_embedding_scorer, metric=_METRIC)
def map_at_r(
    H: ArrayLike,
    y: ArrayLike,
    H_test: ArrayLike | None = None,
    y_test: ArrayLike | None = None,
    *,
    metric: Metric = "cosine",
) -> float:
    r"""Return the mean average precision at R, the number of other samples of a query's class.

    .. math:: \frac1n \sum_i \frac1{R_i} \sum_{m=1}^{R_i} [y_{(m)} = y_i]
        \cdot \frac1m \sum_{l=1}^m [y_{(l)} = y_i]

    where :math:`y_{(m)}` is the class of the m-th nearest neighbour and :math:`R_i` the number of
    samples that share the class of query i [1]_. It is 1 only if these come first for every query,
    and distinguishes embeddings whose :func:`recall_at_k` is near 1. Queries without another
    sample of their class are ignored. The time, but not the memory, grows with R: it is meant for
    many classes of tens or hundreds of samples.

    Parameters
    ----------
    H : array-like of shape (n_samples, d)
        Embeddings of the samples that are searched.
    y : array-like of shape (n_samples,)
        Classes, at least two; −1 where unknown: such samples are ignored.
    H_test, y_test : array-like of shape (n_test, d) and (n_test,), default=None
        The queries. If None, each sample of H is a query for the others.
    metric : str or callable, default="cosine"
        As in :func:`knn_accuracy`.

    Returns
    -------
    map_at_r : float
        In [0, 1].

    Raises
    ------
    ValueError
        As :func:`recall_at_k`.

    See Also
    --------
    recall_at_k : One neighbour of the class is enough.

    References
    ----------
    .. [1] K. Musgrave, S. Belongie, S.-N. Lim, "A Metric Learning Reality Check", ECCV 2020.

    Examples
    --------
    >>> from skcontrast.metrics import map_at_r
    >>> map_at_r([[1, 0], [2, 0.1], [0, 1], [0.1, 1]], [0, 0, 1, 1])
    1.0
    """
    labeled = check_labeled(H, y, H_test, y_test, "map_at_r")
    (_, truth), n_relevant = labeled.queries, _n_relevant(labeled)
    k, total = int(n_relevant.max()), 0.0
    ranks = np.arange(1, k + 1)
    for rows, neighbors in nearest(labeled.H, labeled.H_test, k, metric):
        hits = (labeled.y[neighbors] == truth[rows, None]) & (ranks <= n_relevant[rows, None])
        precision = hits.cumsum(axis=1) / ranks
        total += float(((precision * hits).sum(axis=1) / n_relevant[rows].clip(1)).sum())
    return total / int(np.count_nonzero(n_relevant))


@measure(make_view_scorer, n_neighbors=POSITIVE_INT)
def neighbor_agreement(z1: ArrayLike, z2: ArrayLike, n_neighbors: int = 10) -> float:
    r"""Return the share of nearest neighbours that two embeddings have in common.

    .. math:: \frac1{nk} \sum_i \left| N_k(z_i) \cap N_k(z_i') \right|

    where :math:`N_k(z_i)` are the k samples j ≠ i whose embeddings have the highest cosines with
    :math:`z_i`, and :math:`N_k(z_i')` the same in the second embedding: the mutual k-nearest
    neighbours of [1]_. For two views, it measures whether neighbourhoods are invariant to the
    augmentation. Unlike a comparison of :math:`z_i` with :math:`z_i'`, it does not reward that a
    sample differs from all others. Ties are broken at random, differently in each embedding, so
    that a collapsed embedding has chance level, k/(n − 1). It also compares two embedders, or a
    representation with its input.

    Parameters
    ----------
    z1, z2 : array-like of shape (n_samples, d1) and (n_samples, d2)
        Embeddings of the same samples, at least two.
    n_neighbors : int, default=10
        Number k of neighbours, at least 1; n_samples − 1 if that is less.

    Returns
    -------
    agreement : float
        In [0, 1].

    Raises
    ------
    ValueError
        If the embeddings are not finite or differ in length, or `n_neighbors` is below 1.

    See Also
    --------
    make_view_scorer : Makes a scorer of it, with custom views.
    recall_at_k : With pairs as classes, retrieval of the other view of a sample.

    References
    ----------
    .. [1] M. Huh, B. Cheung, T. Wang, P. Isola, "The Platonic Representation Hypothesis",
       ICML 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.metrics import neighbor_agreement
    >>> z = np.random.default_rng(0).normal(size=(100, 8))
    >>> neighbor_agreement(z, 2 * z)
    1.0
    """
    first, second = check_views(z1, z2, of_one_width=False)
    n, k = len(first), min(int(n_neighbors), len(first) - 1)
    shared: int = 0
    # The two searches have different seeds, which break ties differently.
    searches = [nearest(z, None, k, seed=seed) for seed, z in enumerate((first, second))]
    for (_, in_first), (_, in_second) in zip(*searches, strict=True):
        both = np.sort(np.hstack([in_first, in_second]), axis=1)
        shared += int(np.count_nonzero(both[:, 1:] == both[:, :-1]))
    return float(shared / (n * k))


def _check_neighbors(labeled: LabeledEmbeddings, k: int, name: str) -> int:
    most = len(labeled.H) - (labeled.H_test is None)
    return check_count(k, name, most, "the number of other samples")


def _n_relevant(labeled: LabeledEmbeddings) -> NDArray[np.int64]:
    """Return the number of other samples of the class of each query."""
    _, truth = labeled.queries
    counts = np.bincount(labeled.y, minlength=int(max(labeled.y.max(), truth.max())) + 1)
    n_relevant = counts[truth] - (labeled.H_test is None)
    if not n_relevant.any():
        raise ValueError("No query has another sample of its class in y.")
    return n_relevant


def nearest(
    H: NDArray,
    H_test: NDArray | None,
    k: int,
    metric: Metric = "cosine",
    *,
    width: int = 1,
    seed: int = 0,
) -> Iterator[tuple[slice, NDArray[np.int64]]]:
    """Yield slices of the queries and their k nearest samples, the nearest first.

    Samples at equal distance are in random order, so that a collapsed embedding has chance level.

    Parameters
    ----------
    H : ndarray of shape (n_samples, d)
        Embeddings of the samples.
    H_test : ndarray of shape (n_test, d) or None
        Embeddings of the queries. If None, each sample is a query for the others.
    k : int
        Number of neighbours.
    metric : str or callable, default="cosine"
        A metric of ``NearestNeighbors``.
    width : int, default=1
        Numbers per query that the caller stores, which limit the length of slices.
    seed : int, default=0
        Determines the order of samples at equal distance.
    """
    order = np.random.default_rng(seed).permutation(len(H))
    queries = H if H_test is None else H_test
    if isinstance(metric, str) and metric == "cosine":
        # Unit vectors have the same order by distance, for which scikit-learn is faster.
        H, queries = _all_on_sphere(H, queries)
        metric = "euclidean"
    search = NearestNeighbors(metric=metric).fit(H[order])
    for rows in batches(len(queries), max(k, width)):
        n_found = k + (H_test is None)
        neighbors = order[search.kneighbors(queries[rows], n_found, return_distance=False)]
        yield rows, _without_self(neighbors, rows) if H_test is None else neighbors


def _without_self(neighbors: NDArray[np.int64], rows: slice) -> NDArray[np.int64]:
    """Remove each sample from its neighbours."""
    kept = neighbors != np.arange(rows.start, rows.stop)[:, None]
    kept[kept.all(axis=1), -1] = False
    return neighbors[kept].reshape(len(neighbors), -1)


def _all_on_sphere(*arrays: NDArray) -> list[NDArray]:
    """Return embeddings scaled to length 1; rows of zeros get an extra dimension."""
    unit = [on_sphere(z) for z in arrays]
    is_zero = [~z.any(axis=1, keepdims=True) for z in unit]
    if any(e.any() for e in is_zero):
        return [np.hstack([z, e]).astype(z.dtype) for z, e in zip(unit, is_zero, strict=True)]
    return unit
