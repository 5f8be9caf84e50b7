"""Estimates of α, τ⁺ and the posterior of SoftRing, from known classes or from ranks."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike
from scipy.optimize import minimize
from scipy.stats import binom
from torch import Tensor

from .._checks import FRACTION, NON_NEGATIVE, POSITIVE_INT, Interval
from .._checks._arguments import as_numbers, check_component, validated
from .._data._metadata import validate_labels
from .._runtime import guarded
from ..losses._posterior import false_negative_probability, invert_unlabeled_cdf, ranks_inside
from ..metrics._labeled import measure
from ..metrics._scorers import make_embedding_scorer
from ..similarity import Similarity
from ._samples import (
    Estimate,
    ScoreSample,
    checked_sample,
    class_aucs,
    contrast_of,
    count_outscored,
    true_negatives_by_rank,
)

# Bounds of the logarithm of the sharpness, and of the floor.
_BOUNDS = [(np.log(0.01), np.log(100.0)), (0.0, 1.0)]


@validated(auc=[*FRACTION, Estimate], standard_error=[*NON_NEGATIVE, "nan"])
def alpha_from_auc(auc: float | Estimate, standard_error: float = math.nan) -> Estimate:
    r"""Return BCL's α from a macro-AUC.

    .. math:: \alpha = (6A - 1)/4, \qquad \mathrm{clipped\ to}\ [1/2, 1]

    since the model has :math:`A = P(s_{\mathrm{FN}} > s_{\mathrm{TN}}) = (1 + 4\alpha)/6`. The
    paper uses A itself as α [1]_, as does ``BCL(alpha="auto", form="printed")``.

    Parameters
    ----------
    auc : float or Estimate
        Probability, in [0, 1], that a sample of the anchor's class scores above one of a different
        class, as :func:`macro_auc` returns it.
    standard_error : float, default=nan
        The standard error of `auc`, if that is a float.

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
    return Estimate(float(min(max((6 * value - 1) / 4, 0.5), 1.0)), 1.5 * error)


def tau_plus_from_labels(y: Sequence | np.ndarray) -> Estimate:
    r"""Return the class prior: the probability that two random samples share a class.

    .. math:: \tau^+ = \sum_k p_k^2

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        Classes; −1 where unknown, which are ignored.

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
    """Return the probability that the anchor's class scores above another class.

    Parameters
    ----------
    *views : Tensor or array-like of shape (n, d), or tuple of two
        Embeddings of one or more views of the same n samples. For ``VonMisesFisher`` tuples of
        mean directions (n, d) and concentrations (n,).
    y : array-like of shape (n,)
        Classes; −1 where unknown: such samples are ignored.
    similarity : Similarity, default=None
        The score; None is ``Cosine()``.

    Returns
    -------
    auc : Estimate
        Mean over the anchors of the area under the ROC curve, in [0, 1].

    Raises
    ------
    ValueError
        If no anchor has both a sample of its class and one of another class.

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
        raise ValueError("y must hold two samples of one class and one of another class.")
    return Estimate(float(aucs.mean()), float(aucs.std(correction=0)) / math.sqrt(len(aucs)))


@guarded()
def estimate_soft_ring(sample: ScoreSample) -> dict[str, float]:
    r"""Estimate the sharpness and the floor of ``SoftRing`` from scores with known labels.

    They minimise the Brier score, the mean over all candidates of
    :math:`(p(\mathrm{FN} \mid u) - \mathbb 1[\mathrm{FN}])^2`, with τ⁺ set to the share of
    false negatives. A sharpness fitted to the macro-AUC would be too low if part of a class is far
    from the rest.

    Parameters
    ----------
    sample : ScoreSample
        Scores and true classes, from :meth:`ScoreSample.from_views
        <skcontrast.estimation.ScoreSample.from_views>`.

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
    skcontrast.estimation.reliability : Checks the probabilities on another sample.

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
    check_component(sample, ScoreSample, "estimate_soft_ring", "sample")
    observed = torch.from_numpy(1 - true_negatives_by_rank(checked_sample(sample)))
    tau_plus = float(observed.mean())
    if not 0 < tau_plus < 1:
        raise ValueError("sample must hold both true and false negatives.")
    sharpness, floor = _fit_posterior(observed, tau_plus)
    return {"sharpness": sharpness, "tau_plus": tau_plus, "floor": floor}


def _fit_posterior(observed: Tensor, tau_plus: float) -> tuple[float, float]:
    """Return the sharpness and the floor that minimise the Brier score.

    `observed`, shape (n,), are the shares of false negatives in n equal intervals of ranks.
    """
    u = ranks_inside(len(observed))

    def error(point: np.ndarray) -> float:
        p = false_negative_probability(u, math.exp(point[0]), tau_plus, float(point[1]))
        return float((p - observed).square().mean())

    log_sharpness, floor = minimise(error, _BOUNDS)
    return math.exp(log_sharpness), float(floor)


_ALPHA_RANGE = (0.5, 1.0)
_TAU_RANGE = (0.001, 0.9)


@guarded()
def positive_ranks(*views: Any, similarity: Similarity | None = None) -> np.ndarray:
    """Return the rank of each anchor's positives among its candidate negatives.

    Parameters
    ----------
    *views : Tensor or array-like of shape (n, d), or tuple of two
        Embeddings of two or more views of the same n samples. Every view is an anchor; its
        n_views · (n − 1) candidates are the views of the other samples. For ``VonMisesFisher``
        tuples of mean directions (n, d) and concentrations (n,).
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
    contrast, similarity = contrast_of(views, similarity, None, least=2)
    n_candidates = len(contrast.candidates) - contrast.excluded.shape[1]
    counts = count_outscored(contrast, similarity).flatten()
    return (counts.double() / n_candidates).cpu().numpy()


@guarded()
@validated(
    alpha=[Interval(Real, 0.5, 1, closed="both"), None],
    tau_plus=[*FRACTION, None],
    n_candidates=[*POSITIVE_INT, None],
)
def estimate_alpha_and_tau_plus(
    ranks: ArrayLike,
    *,
    alpha: float | None = None,
    tau_plus: float | None = None,
    n_candidates: int | None = None,
) -> dict[str, Estimate]:
    r"""Estimate BCL's α and the class prior τ⁺ from the ranks of the positives.

    Maximises the likelihood of :math:`f(v; \alpha, \tau^+)` (see the top of this page) over the
    parameters that are None. About 50,000 ranks determine α to ±.01; 2,000 are too few. If α is
    near .5, ranks do not determine τ⁺, and its standard error is large.

    Parameters
    ----------
    ranks : array-like of shape (n_positives,)
        Shares of the candidates, in [0, 1], that score at most as high as the positive.
    alpha : float, default=None
        Location parameter α in [.5, 1], if it is known.
    tau_plus : float, default=None
        Class prior τ⁺ in [0, 1), if it is known.
    n_candidates : int, default=None
        N, the number of candidates of each anchor. If given, the likelihood is that of a rank
        among N, :math:`\int \mathrm{Binom}(Nv; N, v') f(v')\, dv'`; else, and for N > 1,024,
        ranks are treated as exact, which biases the estimates for small N.

    Returns
    -------
    estimates : dict of str to Estimate
        "alpha" in [.5, 1] and "tau_plus" in [.001, .9]. Standard errors are from the observed
        information; at a bound, such as α = 1, those of the problem without bounds, which are too
        large; 0 for fixed values.

    See Also
    --------
    positive_ranks : The ranks, from embeddings of views.
    alpha_from_auc : α from known classes.
    tau_plus_from_labels : τ⁺ from known classes.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.estimation import estimate_alpha_and_tau_plus
    >>> rng = np.random.default_rng(0)
    >>> u = np.sqrt(rng.random(50_000))  # α = 1: the larger of two
    >>> ranks = 1.8 * u - 0.8 * u**2  # τ⁺ = .1
    >>> found = estimate_alpha_and_tau_plus(ranks)
    >>> bool(abs(found["alpha"].value - 1) < 0.02), bool(abs(found["tau_plus"].value - 0.1) < 0.02)
    (True, True)
    """
    expected = "an array of shares in [0, 1], shape (n_positives,)"
    options: dict[str, Any] = {"ensure_2d": False, "allow_nd": True}
    shares: np.ndarray = as_numbers(ranks, "ranks", expected, dtype=np.float64, **options)
    if shares.ndim != 1 or shares.min() < 0 or shares.max() > 1:
        raise ValueError("ranks must be an array of shape (n_positives,) of shares in [0, 1].")
    bounds = {"alpha": _ALPHA_RANGE, "tau_plus": _TAU_RANGE}
    fixed: dict[str, Any] = {"alpha": alpha, "tau_plus": tau_plus}
    free = [name for name, value in fixed.items() if value is None]
    likelihood = Likelihood(shares, n_candidates)

    def negative_log_likelihood(point: Tensor) -> Tensor:
        values = {**fixed, **dict(zip(free, point, strict=True))}
        return -likelihood(values["alpha"], values["tau_plus"])

    # Standard errors follow from the curvature of the likelihood at its maximum.
    box = [bounds[name] for name in free]
    point = minimise(lambda x: negative_log_likelihood(torch.from_numpy(x)).item(), box)
    errors = standard_errors(negative_log_likelihood, point, len(shares))
    estimates = map(Estimate, point.tolist(), errors.tolist())
    constant = {name: Estimate(value, 0.0) for name, value in fixed.items() if name not in free}
    return {**constant, **dict(zip(free, estimates, strict=True))}


# Ranks among more candidates than this are treated as exact.
_MOST_CANDIDATES = 1024
_NODES = 512


class Likelihood:
    """Mean log-likelihood of ranks as a function of α and τ⁺, float64 tensors or floats."""

    def __init__(self, ranks: np.ndarray, n_candidates: int | None):
        if n_candidates is None or n_candidates > _MOST_CANDIDATES:
            self.table = None
            n = n_candidates or 5e5
            # A rank of k among n is about k + 1/2 of n + 1: a rank of 0 is not impossible.
            self.v = torch.from_numpy((ranks * n + 0.5) / (n + 1))
            return
        counts = np.rint(ranks * n_candidates).astype(np.int64)
        observed, times = np.unique(counts, return_counts=True)
        self.times = torch.from_numpy(times / len(ranks))
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        self.v = torch.from_numpy((nodes + 1) / 2)
        table = binom.pmf(observed[:, None], int(n_candidates), self.v.numpy()) * weights / 2
        self.table = torch.from_numpy(table)

    def __call__(self, alpha: float | Tensor, tau_plus: float | Tensor) -> Tensor:
        u = invert_unlabeled_cdf(self.v, alpha, tau_plus)
        a = (1 - 2 * alpha) * (1 - 2 * tau_plus)
        density = 2 * (1 - alpha + (2 * alpha - 1) * u) / (1 - a + 2 * a * u)
        if self.table is None:
            return density.log().mean()
        return self.times @ (self.table @ density).log()


def minimise(
    function: Callable[[np.ndarray], float], bounds: list[tuple[float, float]]
) -> np.ndarray:
    """Return the minimum of a smooth function of few variables in a box."""
    inner = [np.linspace(low, high, 9)[1:-1] for low, high in bounds]
    starts = np.stack([axis.ravel() for axis in np.meshgrid(*inner)], axis=1)
    return minimize(function, min(starts, key=function), method="L-BFGS-B", bounds=bounds).x


def standard_errors(function: Callable[[Tensor], Tensor], point: np.ndarray, n: int) -> np.ndarray:
    """Return standard errors from the observed information; infinite without information."""
    at = torch.tensor(point, dtype=torch.float64)
    information = n * torch.autograd.functional.hessian(function, at)
    values, vectors = torch.linalg.eigh(information)
    variance = torch.where(values > 0, 1 / values, torch.inf)
    return (vectors**2 @ variance).sqrt().nan_to_num(nan=math.inf, posinf=math.inf).numpy()
