"""Is a sample told from all others by its two views: the contrastive task itself as a measure."""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import ArrayLike

from .._objective._functional import contrastive_loss
from ..similarity import Similarity
from ._embeddings import check_views
from ._parts import OF_TWO_VIEWS, check_count, measure
from ._search import batches, on_sphere

# Cosines that differ by less are equal: they were computed in a different order.
_ROUNDING = 1e-12


@measure(OF_TWO_VIEWS)
def top_k(z1: ArrayLike, z2: ArrayLike, *, k: int = 1) -> float:
    r"""Return how often a sample's own other view is among the k nearest of all other views.

    Each :math:`z_i` searches among :math:`z_1', \dots, z_n'` by the cosine, and each
    :math:`z_i'` among :math:`z_1, \dots, z_n`; the result is the mean over both directions. With
    k = 1 this is the accuracy of the contrastive task [1]_. Of candidates at equal distance any
    may come first, so that a collapsed embedding has k/n. The more samples there are, the harder
    it is: compare results of the same n only.

    It asks that samples are told apart, also those of one class. So it says whether training
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
    the 2(n − 1) views of other samples. A loss of 4.1 says nothing by itself; this is 0 for
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
        If the embeddings are not finite or their shapes differ.

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
    first, second = (torch.from_numpy(z) for z in check_views(z1, z2))
    with torch.no_grad():
        loss = float(contrastive_loss(first, second, similarity=similarity))
    return math.log2(2 * len(first) - 1) - loss / math.log(2)
