r"""α and τ⁺ read off the data instead of being searched for.

Under the model of BCL, the rank v of an anchor's positive among the candidate negatives (the
share of candidates that score at most as high) has the density

.. math:: f(v; \alpha, \tau^+) = \frac{2(1 - \alpha) + 2(2\alpha - 1)\,u}{b + 2a\,u}, \qquad
    v = b\,u + a\,u^2,\quad a = (1 - 2\alpha)(1 - 2\tau^+),\; b = 1 - a,

so that both parameters can be estimated by maximum likelihood from unlabeled data. Where labels
are known, τ⁺ is the probability that two samples share a class, and α follows from the macro-AUC.
Augmented views are closer than samples of one class: on real data the estimate from ranks is that
of the model, to be compared with the one from labels where there are some.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
import torch
from sklearn.utils import check_array

from ._annotations import validate_labels
from ._likelihood import Likelihood, minimise, standard_errors
from ._rank_statistics import class_aucs, count_outscored
from ._sklearn_compat import check_component
from .objective import in_batch
from .schedules import check_numbers
from .similarity import Cosine, Similarity

__all__ = [
    "Estimate",
    "alpha_from_auc",
    "estimate_alpha",
    "estimate_alpha_and_tau_plus",
    "estimate_tau_plus",
    "macro_auc",
    "positive_ranks",
    "tau_plus_from_labels",
]

_ALPHA_RANGE = (0.5, 1.0)
_TAU_RANGE = (0.001, 0.9)


class Estimate(NamedTuple):
    """A number read off the data.

    Attributes
    ----------
    value : float
        The estimate.
    standard_error : float
        Its standard error as if the observations were independent; infinite where the data say
        nothing about it.
    """

    value: float
    standard_error: float


def alpha_from_auc(auc, standard_error=math.nan):
    r"""Return BCL's α from a macro-AUC.

    .. math:: \alpha = (6A - 1)/4, \qquad \mathrm{clipped\ to}\ [1/2, 1]

    since the model has :math:`A = P(s_{\mathrm{FN}} > s_{\mathrm{TN}}) = (1 + 4\alpha)/6`. The
    paper takes A itself for α [1]_.

    Parameters
    ----------
    auc : float or Estimate
        Probability, in [0, 1], that a sample of the anchor's class scores above one of another;
        what :func:`macro_auc` returns.
    standard_error : float, default=nan
        That of `auc`, where it is a float.

    Returns
    -------
    alpha : Estimate

    References
    ----------
    .. [1] B. Liu, B. Wang, "Bayesian Self-Supervised Contrastive Learning", 2023.

    Examples
    --------
    >>> from skcontrast.estimation import alpha_from_auc
    >>> alpha_from_auc(0.75, standard_error=0.01)
    Estimate(value=0.875, standard_error=0.015)
    """
    if isinstance(auc, Estimate):
        auc, standard_error = auc
    if not (isinstance(auc, Real) and 0 <= auc <= 1):
        raise ValueError(f"auc must be a number in [0, 1], got {auc!r}.")
    alpha = min(max((6 * auc - 1) / 4, _ALPHA_RANGE[0]), _ALPHA_RANGE[1])
    return Estimate(alpha, 1.5 * standard_error)


def tau_plus_from_labels(y):
    r"""Return the class prior: the probability that two random samples share a class.

    .. math:: \tau^+ = \sum_k p_k^2

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Classes; −1 where unknown, which are left out.

    Returns
    -------
    tau_plus : Estimate
        With the standard error of the delta method,
        :math:`2 \sqrt{(\sum_k p_k^3 - (\sum_k p_k^2)^2)/n}`.

    Examples
    --------
    >>> from skcontrast.estimation import tau_plus_from_labels
    >>> tau_plus_from_labels([0, 0, 1, 1, -1]).value
    0.5
    """
    n_samples = 0 if y is None else len(y)
    labels = validate_labels(y, n_samples, needed_by="tau_plus_from_labels")
    _, counts = np.unique(labels[labels >= 0], return_counts=True)
    if not len(counts):
        raise ValueError("y must hold at least one known class; all entries are -1.")
    p = counts / counts.sum()
    tau_plus = float((p**2).sum())
    variance = max(0.0, 4 * ((p**3).sum() - tau_plus**2) / counts.sum())
    return Estimate(tau_plus, math.sqrt(variance))


def positive_ranks(*views, similarity=None):
    """Return the rank of each anchor's positives among its candidate negatives.

    Parameters
    ----------
    *views : Tensor or array-like of shape (n, d)
        Embeddings of two or more views of the same n samples. Every view is an anchor, the other
        samples' views are the n_views · (n − 1) candidates.
    similarity : Similarity, default=None
        The score; None is ``Cosine()``. Ranks do not depend on a temperature.

    Returns
    -------
    ranks : ndarray of shape (n_views * n * (n_views - 1),), dtype float64
        Shares of candidates that score at most as high as the positive, in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.estimation import positive_ranks
    >>> positive_ranks(np.eye(3), np.eye(3))
    array([1., 1., 1., 1., 1., 1.])
    """
    if len(views) < 2:
        raise ValueError(f"positive_ranks needs at least two views, got {len(views)}.")
    contrast, similarity = _contrast_of(views, similarity)
    n_candidates = len(contrast.candidates) - contrast.excluded.shape[1]
    ranks = count_outscored(contrast, similarity).flatten().double() / n_candidates
    return ranks.cpu().numpy()


def macro_auc(*views, y, similarity=None):
    """Return how often a sample of the anchor's class scores above one of another class.

    Parameters
    ----------
    *views : Tensor or array-like of shape (n, d)
        Embeddings of one or more views of the same n samples.
    y : array-like of shape (n,)
        Classes; −1 where unknown: such samples take no part.
    similarity : Similarity, default=None
        The score; None is ``Cosine()``.

    Returns
    -------
    auc : Estimate
        Mean over the anchors of the area under the ROC curve, in [0, 1].

    Raises
    ------
    ValueError
        If no anchor has both a sample of its own class and one of another.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.estimation import macro_auc
    >>> macro_auc(np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1]]), y=[0, 0, 1, 1]).value
    1.0
    """
    n_samples = len(views[0]) if views else 0
    labels = torch.from_numpy(validate_labels(y, n_samples, needed_by="macro_auc"))
    contrast, similarity = _contrast_of(views, similarity, labels)
    return mean_auc(class_aucs(contrast, similarity))


def mean_auc(aucs):
    """Return the mean of the anchors' AUCs with its standard error; NaN where there is none.

    Parameters
    ----------
    aucs : Tensor of shape (n_anchors,)
        NaN for anchors without samples of their own or of another class.
    """
    aucs = aucs[~aucs.isnan()].double()
    if not len(aucs):
        raise ValueError("y must hold two samples of one class and one of another.")
    spread = float(aucs.std(correction=0)) / math.sqrt(len(aucs))
    return Estimate(float(aucs.mean()), spread)


def estimate_alpha(ranks, *, tau_plus=None, n_candidates=None):
    r"""Estimate BCL's location parameter α from the ranks of the positives.

    Maximises the likelihood of :math:`f(v; \alpha, \tau^+)` (see the top of this page), over both
    parameters unless `tau_plus` is given. About 50,000 ranks bring α to ±.01; 2,000 are too few.

    Parameters
    ----------
    ranks : array-like of shape (n_positives,)
        Shares of the candidates, in [0, 1], that score at most as high as the positive.
    tau_plus : float, default=None
        Class prior τ⁺ in [0, 1), if it is known.
    n_candidates : int, default=None
        N, among how many candidates ranks were taken. If given, the likelihood is that of a rank
        among N, :math:`\int \mathrm{Binom}(Nv; N, v') f(v')\, dv'`; else ranks are taken for
        exact, which biases the estimate where N is small.

    Returns
    -------
    alpha : Estimate
        In [.5, 1], with the standard error from the observed information. At a bound, such as
        α = 1, that error is one of the unbounded problem and too large.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.estimation import estimate_alpha
    >>> rng = np.random.default_rng(0)
    >>> u = np.sqrt(rng.random(50_000))  # α = 1: the larger of two
    >>> tau_plus = 0.1
    >>> ranks = (2 - 2 * tau_plus) * u - (1 - 2 * tau_plus) * u**2
    >>> bool(abs(estimate_alpha(ranks).value - 1) < 0.02)
    True
    """
    return estimate_alpha_and_tau_plus(ranks, tau_plus=tau_plus, n_candidates=n_candidates)[
        "alpha"
    ]


def estimate_tau_plus(ranks, *, alpha=None, n_candidates=None):
    r"""Estimate the class prior τ⁺ from the ranks of the positives.

    As :func:`estimate_alpha`; the likelihood is maximised over both parameters unless `alpha` is
    given. Where α is near .5, ranks say nothing about τ⁺ and the standard error is large. Where
    classes are known, use :func:`tau_plus_from_labels`.

    Parameters
    ----------
    ranks : array-like of shape (n_positives,)
        As in :func:`estimate_alpha`.
    alpha : float, default=None
        BCL's α in [.5, 1], if it is known.
    n_candidates : int, default=None
        As in :func:`estimate_alpha`.

    Returns
    -------
    tau_plus : Estimate
        In [.001, .9].

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.estimation import estimate_tau_plus
    >>> rng = np.random.default_rng(0)
    >>> u = np.sqrt(rng.random(50_000))
    >>> ranks = 1.8 * u - 0.8 * u**2  # α = 1, τ⁺ = .1
    >>> bool(abs(estimate_tau_plus(ranks).value - 0.1) < 0.02)
    True
    """
    both = estimate_alpha_and_tau_plus(ranks, alpha=alpha, n_candidates=n_candidates)
    return both["tau_plus"]


def estimate_alpha_and_tau_plus(ranks, *, alpha=None, tau_plus=None, n_candidates=None):
    """Estimate what is not given of α and τ⁺ at once.

    Parameters
    ----------
    ranks : array-like of shape (n_positives,)
        As in :func:`estimate_alpha`.
    alpha, tau_plus : float, default=None
        What is known.
    n_candidates : int, default=None
        As in :func:`estimate_alpha`.

    Returns
    -------
    estimates : dict of str to Estimate
        "alpha" and "tau_plus"; what was given has a standard error of 0.
    """
    ranks = check_array(ranks, ensure_2d=False, dtype=np.float64, input_name="ranks")
    if ranks.ndim != 1 or ranks.min() < 0 or ranks.max() > 1:
        raise ValueError("ranks must be an array of shape (n_positives,) of shares in [0, 1].")
    bounds = {"alpha": _ALPHA_RANGE, "tau_plus": _TAU_RANGE}
    given = {"alpha": alpha, "tau_plus": tau_plus}
    for name, low in (("alpha", 0.5), ("tau_plus", 0)):
        value = given[name]
        if value is not None and not (isinstance(value, Real) and low <= value <= 1):
            raise ValueError(f"{name} must be a number in [{low}, 1], got {value!r}.")
    if not (n_candidates is None or (isinstance(n_candidates, Integral) and n_candidates > 0)):
        raise ValueError(f"n_candidates must be a positive int or None, got {n_candidates!r}.")
    free = [name for name, value in given.items() if value is None]
    likelihood = Likelihood(ranks, n_candidates)

    def negative_log_likelihood(point):
        values = {**given, **dict(zip(free, point, strict=True))}
        return -likelihood(values["alpha"], values["tau_plus"])

    point = minimise(negative_log_likelihood, [bounds[name] for name in free])
    errors = standard_errors(negative_log_likelihood, point, len(ranks))
    found = {
        name: Estimate(float(value), float(error))
        for name, value, error in zip(free, point, errors, strict=True)
    }
    known = {name: Estimate(value, 0.0) for name, value in given.items() if name not in free}
    return {**known, **found}


def _as_array(view):
    return view.detach().cpu().numpy() if isinstance(view, torch.Tensor) else view


def _contrast_of(views, similarity, labels=None):
    similarity = check_component(
        similarity, Similarity, owner="estimation", parameter="similarity", default=Cosine
    )
    check_numbers(similarity)
    if not views:
        raise ValueError("views must be arrays of one shape (n, d), got none.")
    tensors = [
        torch.as_tensor(check_array(_as_array(view), dtype=np.float64, input_name="views"))
        for view in views
    ]
    shapes = {tuple(view.shape) for view in tensors}
    if len(shapes) != 1 or len(tensors[0]) < 2:
        raise ValueError(
            f"views must be arrays of one shape (n, d) with n ≥ 2, got {sorted(shapes)}."
        )
    z = similarity.embed(torch.stack(tensors))
    return in_batch(z, similarity, labels), similarity
