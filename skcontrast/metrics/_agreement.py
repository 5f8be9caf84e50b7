"""Measures of two embeddings, or two views, of the same samples: how far they agree."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from .._data._statistics import as_tensor
from .._objective._functional import contrastive_loss
from ..similarity import Similarity
from ._embeddings import check_views
from ._labeled import OF_TWO_VIEWS, check_count, measure
from ._search import batches, nearest, on_sphere

# Cosines that differ by less are equal: they were computed in a different order.
_ROUNDING = 1e-12


@measure(OF_TWO_VIEWS)
def neighbor_agreement(z1: ArrayLike, z2: ArrayLike, n_neighbors: int = 10) -> float:
    r"""Return the share of nearest neighbours that two embeddings of the same samples agree on.

    .. math:: \frac1{nk} \sum_i \left| N_k(z_i) \cap N_k(z_i') \right|

    where :math:`N_k(z_i)` are the k samples j ≠ i whose embeddings have the highest cosines with
    :math:`z_i`, and :math:`N_k(z_i')` the same in the second embedding: the mutual k-nearest
    neighbours of [1]_. For two views it shows whether a sample keeps its neighbourhood when it is
    seen differently. Unlike a comparison of :math:`z_i` with :math:`z_i'`, it asks for samples
    that belong together, not for a sample to be told from all others. Ties are broken at random,
    differently in each embedding, so that a collapsed embedding agrees by chance only,
    k/(n − 1). It also compares two embedders, or a representation with its input.

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
    make_view_scorer : Makes it a scorer with custom views.
    linear_cka : Compares the geometry at large.

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
    check_count(n_neighbors, "n_neighbors")
    first, second = check_views(z1, z2, of_one_width=False)
    n, k = len(first), min(n_neighbors, len(first) - 1)
    shared: int = 0
    # The two searches have different seeds, which break ties differently.
    searches = [nearest(z, None, k, seed=seed) for seed, z in enumerate((first, second))]
    for (_, in_first), (_, in_second) in zip(*searches, strict=True):
        both = np.sort(np.hstack([in_first, in_second]), axis=1)
        shared += int(np.count_nonzero(both[:, 1:] == both[:, :-1]))
    return float(shared / (n * k))


@measure(OF_TWO_VIEWS, debiased=["boolean"])
def linear_cka(z1: ArrayLike, z2: ArrayLike, *, debiased: bool = True) -> float:
    r"""Return how similar the geometry of two embeddings of the same samples is.

    Centred kernel alignment with linear kernels [1]_,

    .. math:: \frac{\mathrm{HSIC}(K, K')}{\sqrt{\mathrm{HSIC}(K, K)\, \mathrm{HSIC}(K', K')}},
        \qquad K = Z Z^\top,\quad K' = Z' Z'^\top

    which is 1 if the second embedding is the first one, turned, shifted or scaled. It looks at
    large distances and is ruled by the directions of largest variance, where
    :func:`neighbor_agreement` looks at the nearest samples only: embeddings may agree in one and
    not in the other. Memory grows with n, not with its square.

    Parameters
    ----------
    z1, z2 : array-like of shape (n_samples, d1) and (n_samples, d2)
        Embeddings of the same samples, at least four.
    debiased : bool, default=True
        Whether HSIC is estimated without bias [2]_, so that 0 is chance. The biased estimate,
        usual in papers, is far above 0 for unrelated embeddings unless there are many more
        samples than dimensions: about d/(n + d) for Gaussian ones.

    Returns
    -------
    cka : float
        In [−1, 1], by chance 0; in [0, 1] if biased. 0 if an embedding is constant.

    Raises
    ------
    ValueError
        If the embeddings are not finite, differ in length or there are fewer than four.

    See Also
    --------
    neighbor_agreement : Compares neighbourhoods.

    References
    ----------
    .. [1] S. Kornblith, M. Norouzi, H. Lee, G. Hinton, "Similarity of Neural Network
       Representations Revisited", ICML 2019.
    .. [2] L. Song, A. Smola, A. Gretton, J. Bedo, K. Borgwardt, "Feature Selection via Dependence
       Maximization", JMLR 2012 (equation 5).

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.metrics import linear_cka
    >>> z, other = np.random.default_rng(0).normal(size=(2, 200, 100))
    >>> round(linear_cka(z, 3 * z + 1), 6), abs(linear_cka(z, other)) < 0.1
    (1.0, True)
    >>> round(linear_cka(z, other, debiased=False), 1)
    0.3
    """
    first, second = check_views(z1, z2, of_one_width=False)
    if len(first) < 4:
        raise ValueError(f"linear_cka needs at least four samples, got {len(first)}.")
    first, second = _scaled(first), _scaled(second)
    across = _hsic(first, second, debiased)
    within = _hsic(first, first, debiased) * _hsic(second, second, debiased)
    return float(across / np.sqrt(within)) if within > 0 else 0.0


@measure(OF_TWO_VIEWS)
def top_k(z1: ArrayLike, z2: ArrayLike, *, k: int = 1) -> float:
    r"""Return how often a sample's own other view is among the k nearest of all other views.

    Each :math:`z_i` searches among :math:`z_1', \dots, z_n'` by the cosine, and each
    :math:`z_i'` among :math:`z_1, \dots, z_n`; the result is the mean over both directions. With
    k = 1 this is the accuracy of the contrastive task [1]_. Of candidates at equal distance any
    may come first, so that a collapsed embedding has k/n. The more samples there are, the harder
    it is: compare results of the same n only.

    It asks that samples are told apart, also those of one class. So it shows whether training
    works, not whether the embedding serves a classifier: see :func:`recall_at_k` and
    :func:`knn_accuracy` where there are classes, :func:`neighbor_agreement` where there are none,
    and ``top_k`` of :func:`linear_probe` for the top-k accuracy of predictions.

    Parameters
    ----------
    z1, z2 : array-like of shape (n_samples, d)
        Embeddings of two views of the same samples.
    k : int, default=1
        Number of neighbours, from 1 to n_samples.

    Returns
    -------
    top_k : float
        In [0, 1]; by chance k/n_samples.

    Raises
    ------
    ValueError
        If the embeddings are not finite, their shapes differ or `k` is outside its range.

    See Also
    --------
    bits_above_chance : The same question to the loss.
    make_view_scorer : Makes it a scorer.

    References
    ----------
    .. [1] A. van den Oord, Y. Li, O. Vinyals, "Representation Learning with Contrastive
       Predictive Coding", 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.metrics import top_k
    >>> z = np.eye(10)
    >>> top_k(z, z), top_k(z, np.roll(z, 1, axis=0)), top_k(np.ones((10, 3)), np.ones((10, 3)))
    (1.0, 0.0, 0.1)
    """
    first, second = (on_sphere(z) for z in check_views(z1, z2))
    n = len(first)
    check_count(k, "k", n, "the number of samples")
    own, total = (first * second).sum(axis=1)[:, None], 0.0
    for queries, candidates in ((first, second), (second, first)):
        for rows in batches(n, n):
            margin = queries[rows] @ candidates.T - own[rows]
            n_above = (margin > _ROUNDING).sum(axis=1)
            n_equal = (np.abs(margin) <= _ROUNDING).sum(axis=1)
            total += float(((k - n_above) / n_equal).clip(0, 1).sum())
    return total / (2 * n)


@measure(OF_TWO_VIEWS)
def bits_above_chance(
    z1: ArrayLike, z2: ArrayLike, *, similarity: Similarity | None = None
) -> float:
    r"""Return how many bits about its sample a view tells, by the InfoNCE loss; 0 is chance.

    .. math:: \log_2 N - \frac{L_{\mathrm{InfoNCE}}}{\ln 2}, \qquad N = 2n - 1

    where each of the 2n views is an anchor and N the number of its candidates: its positive and
    the 2(n − 1) views of other samples. A loss of 4.1 means nothing by itself; this is 0 for
    embeddings that know nothing, below 0 for embeddings that are surely wrong, and on average a
    lower bound of the mutual information of the two views [1]_ [2]_.

    It never exceeds :math:`\log_2 N`, however good the embedding is. So compare results of the
    same n and the same similarity only, and do not compare temperatures by it: at temperature t,
    the cosine allows at most :math:`2/(t \ln 2)` bits.

    Parameters
    ----------
    z1, z2 : array-like of shape (n_samples, d)
        Embeddings of two views of the same samples.
    similarity : Similarity, default=None
        The score; None is ``Cosine()``.

    Returns
    -------
    bits : float
        At most :math:`\log_2(2n - 1)`.

    Raises
    ------
    ValueError
        If the embeddings or their scores are not finite, or shapes differ.

    See Also
    --------
    top_k : The accuracy of the same task.
    skcontrast.contrastive_loss : The loss itself.

    References
    ----------
    .. [1] A. van den Oord, Y. Li, O. Vinyals, "Representation Learning with Contrastive
       Predictive Coding", 2018.
    .. [2] B. Poole, S. Ozair, A. van den Oord, A. Alemi, G. Tucker, "On Variational Bounds of
       Mutual Information", ICML 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.metrics import bits_above_chance
    >>> from skcontrast.similarity import Cosine
    >>> z = np.eye(32)
    >>> round(bits_above_chance(z, z, similarity=Cosine(0.05)), 2)  # log₂ 63
    5.98
    >>> round(abs(bits_above_chance(np.ones((32, 4)), np.ones((32, 4)))), 6)
    0.0
    """
    first, second = (as_tensor(z) for z in check_views(z1, z2))
    with torch.no_grad():
        loss = float(contrastive_loss(first, second, similarity=similarity))
    if not math.isfinite(loss):
        raise ValueError("z1 and z2 are too large for their scores: divide them by a number.")
    return math.log2(2 * len(first) - 1) - loss / math.log(2)


def _scaled(z: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return embeddings around 0 whose largest coordinate is 1; constant ones are 0."""
    centred = z - z.mean(axis=0)
    largest, rounding = np.abs(centred).max(), 1e-12 * np.abs(z).max()
    return centred / largest if largest > rounding else np.zeros_like(z)


def _hsic(x: NDArray[np.float64], y: NDArray[np.float64], debiased: bool) -> float:
    """Return an estimate of HSIC with linear kernels, up to a factor; x and y are centred."""
    columns = range(0, x.shape[1], 256)  # all pairs of many columns would take more than x and y
    together = sum(np.square(x[:, k : k + 256].T @ y).sum() for k in columns)
    if not debiased:
        return float(together)
    # The kernels without their diagonals: traces and sums of rows, which are −diagonal.
    n, own_x, own_y = len(x), np.square(x).sum(axis=1), np.square(y).sum(axis=1)
    diagonal = own_x @ own_y
    of_sums = own_x.sum() * own_y.sum() / ((n - 1) * (n - 2))
    return float(together - diagonal + of_sums - 2 / (n - 2) * diagonal)
