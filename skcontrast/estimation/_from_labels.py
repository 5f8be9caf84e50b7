"""α, τ⁺ and the posterior of SoftRing from classes that are known."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from .._checks import FRACTION, NON_NEGATIVE, check_component, checked
from .._data._metadata import validate_labels
from ..losses._posterior import false_negative_probability, ranks_inside
from ..metrics._labeled import measure
from ..metrics._scorers import make_embedding_scorer
from ..similarity import Similarity
from ._samples import (
    Estimate,
    ScoreSample,
    checked_sample,
    class_aucs,
    contrast_of,
    true_negatives_by_rank,
)

# Where the search for the best SoftRing begins.
_SHARPNESSES = np.geomspace(0.1, 10.0, 9)
_FLOOR = 0.1
# Of the logarithm of the sharpness, and of the floor.
_BOUNDS = [(np.log(0.01), np.log(100.0)), (0.0, 1.0)]


@checked(auc=[*FRACTION, Estimate], standard_error=[*NON_NEGATIVE, "nan"])
def alpha_from_auc(auc: float | Estimate, standard_error: float = math.nan) -> Estimate:
    r"""Return BCL's α from a macro-AUC.

    .. math:: \alpha = (6A - 1)/4, \qquad \mathrm{clipped\ to}\ [1/2, 1]

    since the model has :math:`A = P(s_{\mathrm{FN}} > s_{\mathrm{TN}}) = (1 + 4\alpha)/6`. The
    paper takes A itself for α [1]_, as does ``BCL("auto", form="printed")``.

    Parameters
    ----------
    auc : float or Estimate
        Probability, in [0, 1], that a sample of the anchor's class scores above one of a different
        class, as :func:`macro_auc` returns it.
    standard_error : float, default=nan
        The standard error of `auc`, where it is a float.

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
    value, error = auc if isinstance(auc, Estimate) else (auc, standard_error)
    alpha = min(max((6 * value - 1) / 4, 0.5), 1.0)
    return Estimate(float(alpha), 1.5 * error)


def tau_plus_from_labels(y: Sequence | np.ndarray) -> Estimate:
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
    labels = validate_labels(y, None, needed_by="tau_plus_from_labels")
    _, counts = np.unique(labels[labels >= 0], return_counts=True)
    if not len(counts):
        raise ValueError("y must hold at least one known class; all entries are -1.")
    p = counts / counts.sum()
    tau_plus = float((p**2).sum())
    variance = max(0.0, 4 * ((p**3).sum() - tau_plus**2) / counts.sum())
    return Estimate(tau_plus, math.sqrt(variance))


@measure(make_embedding_scorer)
def macro_auc(
    *views: Any, y: Sequence | np.ndarray, similarity: Similarity | None = None
) -> Estimate:
    """Return how often a sample of the anchor's class scores above one of a different class.

    Parameters
    ----------
    *views : Tensor or array-like of shape (n, d), or tuple of two
        Embeddings of one or more views of the same n samples. For ``VonMisesFisher`` tuples of
        mean directions (n, d) and concentrations (n,).
    y : array-like of shape (n,)
        Classes; −1 where unknown: such samples are left out.
    similarity : Similarity, default=None
        The score; None is ``Cosine()``.

    Returns
    -------
    auc : Estimate
        Mean over the anchors of the area under the ROC curve, in [0, 1].

    Raises
    ------
    ValueError
        If no anchor has both a sample of its own class and one of a different class.

    See Also
    --------
    alpha_from_auc : BCL's α from this probability.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.estimation import macro_auc
    >>> macro_auc(np.array([[1, 0], [1, 0.1], [0, 1], [0.1, 1]]), y=[0, 0, 1, 1]).value
    1.0
    """
    labels = torch.from_numpy(validate_labels(y, None, needed_by="macro_auc"))
    contrast, similarity = contrast_of(views, similarity, labels, least=1)
    return mean_auc(class_aucs(contrast, similarity))


def mean_auc(aucs: Tensor) -> Estimate:
    """Return the mean of the anchors' AUCs with its standard error.

    Parameters
    ----------
    aucs : Tensor of shape (n_anchors,)
        NaN for anchors without samples of their own class or without any of a different class.
    """
    aucs = aucs[~aucs.isnan()].double()
    if not len(aucs):
        raise ValueError("y must hold two samples of one class and one of a different class.")
    spread = float(aucs.std(correction=0)) / math.sqrt(len(aucs))
    return Estimate(float(aucs.mean()), spread)


def estimate_soft_ring(sample: ScoreSample) -> dict[str, float]:
    r"""Estimate the sharpness and the floor of ``SoftRing`` from scores whose labels are known.

    They minimise the Brier score, the mean over all candidates of
    :math:`(p(\mathrm{FN} \mid u) - \mathbb 1[\mathrm{FN}])^2`, with τ⁺ set to the share of
    false negatives. The sharpness whose ranks have the macro-AUC would be too low where part of a
    class is far from the rest.

    Parameters
    ----------
    sample : ScoreSample
        Scores and the truth, as :meth:`ScoreSample.from_views
        <skcontrast.estimation.ScoreSample.from_views>` returns them from embeddings and labels.

    Returns
    -------
    parameters : dict of str to float
        "sharpness" in [.01, 100], "tau_plus" and "floor", as ``SoftRing`` takes them.

    Raises
    ------
    ValueError
        If there are no true or no false negatives.
    TypeError
        If `sample` is not a ScoreSample.

    See Also
    --------
    skcontrast.estimation.reliability : How well the probabilities fit a different sample.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.estimation import ScoreSample, estimate_soft_ring, reliability
    >>> from skcontrast.losses import SoftRing
    >>> y = np.repeat(np.arange(10), 20)
    >>> views = np.random.default_rng(0).normal(np.eye(10)[y], 0.3, (2, 200, 10))
    >>> sample = ScoreSample.from_views(*views, y=y)
    >>> loss = SoftRing(**estimate_soft_ring(sample))
    >>> reliability(loss, sample).largest_gap < 0.03
    True
    """
    check_component(sample, ScoreSample, owner="estimate_soft_ring", parameter="sample")
    observed = torch.from_numpy(1 - true_negatives_by_rank(checked_sample(sample)))
    tau_plus = float(observed.mean())
    if not 0 < tau_plus < 1:
        raise ValueError("sample must hold both true and false negatives.")
    sharpness, floor = _fit_posterior(observed, tau_plus)
    return {"sharpness": sharpness, "tau_plus": tau_plus, "floor": floor}


def _fit_posterior(observed: Tensor, tau_plus: float) -> tuple[float, float]:
    """Return the sharpness and the floor of the least Brier score.

    `observed`, shape (n,), are the shares of false negatives in n equal parts of the ranks.
    """
    u, weights = ranks_inside(len(observed)), torch.ones_like(observed) / len(observed)

    def parameters(point: np.ndarray) -> tuple[float, float]:
        return float(np.exp(point[0])), float(point[1])

    def error(point: np.ndarray) -> float:
        k, f = parameters(point)
        return float(weights @ (false_negative_probability(u, k, tau_plus, f) - observed) ** 2)

    start = min((np.array([np.log(k), _FLOOR]) for k in _SHARPNESSES), key=error)
    options = {"xatol": 1e-3, "fatol": 1e-9, "maxiter": 200}
    found = minimize(error, start, method="Nelder-Mead", bounds=_BOUNDS, options=options)
    return parameters(found.x)
