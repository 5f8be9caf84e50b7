"""Draws from von Mises–Fisher distributions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def draw_von_mises_fisher(
    mu: NDArray, kappa: NDArray, n: int, rng: np.random.RandomState
) -> NDArray[np.float64]:
    r"""Draw points on the unit sphere from several distributions at once, by rejection [1]_.

    Parameters
    ----------
    mu : ndarray of shape (n_distributions, d)
        Mean directions, of length 1; if one is 0, its draws are uniform.
    kappa : ndarray of shape (n_distributions,)
        Concentrations κ ≥ 0.
    n : int
        Number of draws from each.
    rng : numpy.random.RandomState
        Source of randomness.

    Returns
    -------
    points : ndarray of shape (n_distributions, n, d)

    References
    ----------
    .. [1] A. T. A. Wood, "Simulation of the von Mises Fisher distribution", Communications in
       Statistics - Simulation and Computation 23 (1994), after G. Ulrich, Applied Statistics 33
       (1984).
    """
    d = mu.shape[1]
    has_direction = np.asarray(mu.any(1))
    mu = np.where(has_direction[:, None], mu, np.eye(1, d))
    kappa = np.where(has_direction, kappa, 0.0)
    away = _away_from_the_mean(np.repeat(kappa, n), d, rng).reshape(len(mu), n, 1)
    across = rng.normal(size=(len(mu), n, d))
    across -= (across * mu[:, None]).sum(-1, keepdims=True) * mu[:, None]
    across /= np.linalg.norm(across, axis=-1, keepdims=True)
    return (1 - away) * mu[:, None] + np.sqrt(away * (2 - away)) * across


def _away_from_the_mean(kappa: NDArray, d: int, rng: np.random.RandomState) -> NDArray:
    """Draw 1 − cos θ, which may be tiny, directly and not by subtraction, for each κ."""
    b = (d - 1) / (2 * kappa + np.hypot(2 * kappa, d - 1))
    x0 = (1 - b) / (1 + b)
    # log(1 − x₀ w) with w = 1 − away, and its value at w = x₀
    least = 2 * b / (1 + b)
    away, pending = np.empty_like(kappa), np.arange(len(kappa))
    while len(pending):
        bp, xp, lp = b[pending], x0[pending], least[pending]
        z = rng.beta((d - 1) / 2, (d - 1) / 2, size=len(pending))
        new = 2 * bp * z / (1 - (1 - bp) * z)
        log_ratio = kappa[pending] * (lp - new) + (d - 1) * np.log(
            (lp + xp * new) / (lp * (1 + xp))
        )
        # NaN counts as accepted: it would otherwise be drawn again forever.
        accepted = ~(log_ratio < np.log1p(-rng.random_sample(len(pending))))
        away[pending[accepted]] = new[accepted]
        pending = pending[~accepted]
    return away
