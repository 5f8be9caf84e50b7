"""The parameters of SoftRing at which its probabilities fit labels best."""

from __future__ import annotations

import numpy as np
import torch
from scipy.optimize import minimize
from torch import Tensor

from .._checks import check_component
from ..losses._posterior import false_negative_probability, ranks_inside
from ._samples import ScoreSample, checked_sample, true_negatives_by_rank

_SHARPNESSES = np.geomspace(0.1, 10.0, 9)
_FLOOR = 0.1
# Of the logarithm of the sharpness, and of the floor.
_BOUNDS = [(np.log(0.01), np.log(100.0)), (0.0, 1.0)]


def estimate_soft_ring(sample: ScoreSample) -> dict[str, float]:
    r"""Estimate the sharpness and the floor of ``SoftRing`` from scores whose labels are known.

    They minimise the Brier score, the mean over all candidates of
    :math:`(p(\mathrm{FN} \mid u) - \mathbb 1[\mathrm{FN}])^2`, with τ⁺ set to the share of
    false negatives. The sharpness that belongs to the AUC (:func:`sharpness_from_auc`) fits the
    order of all pairs instead, and is too low where part of a class is far from the rest.

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
    sharpness_from_auc : The sharpness where only the AUC is known.

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
    sharpness, floor = fit_posterior(observed, torch.ones_like(observed), tau_plus)
    return {"sharpness": sharpness, "tau_plus": tau_plus, "floor": floor}


def fit_posterior(
    false: Tensor,
    counts: Tensor,
    tau_plus: float,
    sharpness: float | None = None,
    floor: float | None = None,
) -> tuple[float, float]:
    """Return the sharpness and the floor of the least Brier score.

    Parameters
    ----------
    false : Tensor of shape (n,), dtype float64
        Numbers of false negatives among the candidates in n equal parts of the ranks.
    counts : Tensor of shape (n,), dtype float64
        Numbers of candidates in these parts.
    tau_plus : float
        Class prior in (0, 1).
    sharpness, floor : float, default=None
        The one that is known; it is returned unchanged.

    Returns
    -------
    sharpness, floor : float
    """
    u, weights = ranks_inside(len(counts)), counts / counts.sum()
    observed = false / counts.clamp_min(1)
    is_free = np.array([sharpness is None, floor is None])

    def parameters(point: np.ndarray) -> tuple[float, float]:
        k = float(np.exp(point[0])) if sharpness is None else sharpness
        return k, float(point[-1]) if floor is None else floor

    def error(point: np.ndarray) -> float:
        k, f = parameters(point)
        return float(weights @ (false_negative_probability(u, k, tau_plus, f) - observed) ** 2)

    start = min((np.array([np.log(k), _FLOOR])[is_free] for k in _SHARPNESSES), key=error)
    bounds = np.array(_BOUNDS)[is_free]
    options = {"xatol": 1e-3, "fatol": 1e-9, "maxiter": 200}
    found = minimize(error, start, method="Nelder-Mead", bounds=bounds, options=options)
    return parameters(found.x)
