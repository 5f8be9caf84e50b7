"""Measures of embeddings without classes: alignment, uniformity and effective rank."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp
from sklearn.metrics import euclidean_distances
from sklearn.utils import gen_batches

from .._checks import POSITIVE
from .._checks._arguments import as_numbers
from .._data._arrays import spectral_rank
from ._labeled import EMBEDDINGS, measure
from ._scorers import make_embedding_scorer, make_view_scorer

# Maximum size of intermediate arrays: neighbours, votes, or distances.
_ENTRIES = 2**21
_OF_EMBEDDINGS = partial(make_embedding_scorer, needs_y=False)


@measure(make_view_scorer, greater_is_better=False)
def alignment(z1: ArrayLike, z2: ArrayLike) -> float:
    r"""Return the mean squared distance of two views of a sample on the sphere; 0 is best.

    .. math:: \frac1n \sum_i \left\lVert \hat z_i - \hat z_i' \right\rVert^2, \qquad
        \hat z = z / \lVert z \rVert

    which is 2 − 2 cos [1]_. A collapsed embedding has alignment 0, too: use it together
    with :func:`uniformity`.

    Parameters
    ----------
    z1, z2 : array-like of shape (n_samples, d)
        Embeddings of two views of the same samples. Rows of zeros stay zero.

    Returns
    -------
    alignment : float
        In [0, 4].

    Raises
    ------
    ValueError
        If the embeddings are not finite or their shapes differ.

    See Also
    --------
    uniformity : How uniformly the embeddings fill the sphere.

    References
    ----------
    .. [1] T. Wang, P. Isola, "Understanding Contrastive Representation Learning through Alignment
       and Uniformity on the Hypersphere", ICML 2020.

    Examples
    --------
    >>> from skcontrast.metrics import alignment
    >>> alignment([[1.0, 0.0], [0.0, 2.0]], [[3.0, 0.0], [1.0, 0.0]])
    1.0
    """
    first, second = check_views(z1, z2)
    return float(np.square(on_sphere(first) - on_sphere(second)).sum(axis=1).mean())


@measure(_OF_EMBEDDINGS, greater_is_better=False, t=POSITIVE)
def uniformity(z: ArrayLike, t: float = 2.0) -> float:
    r"""Return how uniformly embeddings fill the sphere; lower is more uniform, 0 is one point.

    .. math:: \log \frac{2}{n(n-1)} \sum_{i<j} e^{-t \lVert \hat z_i - \hat z_j \rVert^2}, \qquad
        \hat z = z / \lVert z \rVert

    the logarithm of the mean Gaussian potential of all pairs [1]_. Memory grows with n,
    not with its square.

    Parameters
    ----------
    z : array-like of shape (n_samples, d)
        Embeddings of at least two samples.
    t : float, default=2.0
        Sharpness of the potential, above 0.

    Returns
    -------
    uniformity : float
        In [−4t, 0].

    Raises
    ------
    ValueError
        If the embeddings are not finite or there are fewer than two, or t is not above 0.

    See Also
    --------
    alignment : How close the views of a sample are.
    effective_rank : The number of directions in which embeddings vary.

    References
    ----------
    .. [1] T. Wang, P. Isola, "Understanding Contrastive Representation Learning through Alignment
       and Uniformity on the Hypersphere", ICML 2020.

    Examples
    --------
    >>> from skcontrast.metrics import uniformity
    >>> uniformity([[1.0, 0.0], [-1.0, 0.0]])
    -8.0
    """
    unit = on_sphere(check_embeddings(z))
    n = len(unit)
    sums = [logsumexp(-t * distances) for distances in _distances_to_earlier(unit)]
    return float(logsumexp(sums) - np.log(n * (n - 1) / 2))


@measure(_OF_EMBEDDINGS)
def effective_rank(z: ArrayLike) -> float:
    r"""Return the effective rank of embeddings, between 1 and d.

    .. math:: \exp\Big(-\sum_k p_k \log p_k\Big), \qquad p_k = \sigma_k / \textstyle\sum_l \sigma_l

    with the singular values σ of the matrix of embeddings [1]_, which is not centred, as in RankMe
    [2]_. Values near 1 indicate a collapsed embedding; a matrix of zeros has rank 0.

    Parameters
    ----------
    z : array-like of shape (n_samples, d)
        Embeddings of at least two samples, better many more than d.

    Returns
    -------
    rank : float
        At most the smaller of n_samples and d.

    Raises
    ------
    ValueError
        If the embeddings are not finite or there are fewer than two.

    See Also
    --------
    uniformity : How uniformly the embeddings fill the sphere.

    References
    ----------
    .. [1] O. Roy, M. Vetterli, "The Effective Rank: A Measure of Effective Dimensionality",
       EUSIPCO 2007.
    .. [2] Q. Garrido, R. Balestriero, L. Najman, Y. LeCun, "RankMe: Assessing the Downstream
       Performance of Pretrained Self-Supervised Representations by Their Rank", ICML 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.metrics import effective_rank
    >>> round(effective_rank(np.eye(5)), 6)
    5.0
    """
    return spectral_rank(check_embeddings(z))


def check_embeddings(z: ArrayLike, name: str = "z") -> NDArray[np.float64]:
    """Return the embeddings of at least two samples as float64."""
    return as_numbers(z, name, EMBEDDINGS, dtype=np.float64, ensure_min_samples=2)


def check_views(
    z1: ArrayLike, z2: ArrayLike, *, of_one_width: bool = True
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the embeddings of two views as float64 arrays of one length."""
    first, second = check_embeddings(z1, "z1"), check_embeddings(z2, "z2")
    for axis, extent in enumerate(("long", "wide") if of_one_width else ("long",)):
        n, m = first.shape[axis], second.shape[axis]
        if n != m:
            raise ValueError(f"z1 and z2 must be equally {extent}, got {n} and {m}.")
    return first, second


def _distances_to_earlier(unit: NDArray[np.float64]) -> Iterator[NDArray[np.float64]]:
    """Yield the squared distances of all pairs i < j, in blocks."""
    for rows in batches(len(unit), len(unit)):
        distances = euclidean_distances(unit[rows], unit[: rows.stop], squared=True)
        earlier = np.arange(rows.stop) < np.arange(rows.start, rows.stop)[:, None]
        if earlier.any():
            yield distances[earlier]


def batches(n: int, width: int) -> Iterator[slice]:
    """Yield slices of n rows, short enough for `width` numbers per row."""
    yield from gen_batches(n, max(1, _ENTRIES // width))


def on_sphere(z: NDArray) -> NDArray:
    """Return embeddings scaled to length 1; rows of zeros stay zero."""
    longest = np.abs(z).max(axis=1, keepdims=True)
    scaled = z / np.where(longest > 0, longest, 1)
    length = np.linalg.norm(scaled, axis=1, keepdims=True)
    return scaled / np.where(length > 0, length, 1)
