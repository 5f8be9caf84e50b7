"""The likelihood of ranks under BCL's model, and its maximum."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.stats import binom
from torch import Tensor

from ..losses._posterior import invert_unlabeled_cdf

# Ranks among more candidates than this are replaced by ranks in a random subset of this size.
_MOST_CANDIDATES = 1024
_NODES = 512


class Likelihood:
    """Mean log-likelihood of ranks as a function of α and τ⁺, float64 tensors or floats."""

    def __init__(self, ranks: np.ndarray, n_candidates: int | None):
        if n_candidates is None:
            self.table = None
            self.v = torch.from_numpy(ranks.clip(1e-6, 1 - 1e-6))
            return
        counts, n = _thinned(np.rint(ranks * n_candidates).astype(np.int64), int(n_candidates))
        observed, self.times = np.unique(counts, return_counts=True)
        self.times = torch.from_numpy(self.times / len(ranks))
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        self.v = torch.from_numpy((nodes + 1) / 2)
        self.table = torch.from_numpy(
            binom.pmf(observed[:, None], n, self.v.numpy()) * weights / 2
        )

    def __call__(self, alpha: float | Tensor, tau_plus: float | Tensor) -> Tensor:
        u = invert_unlabeled_cdf(self.v, alpha, tau_plus)
        a = (1 - 2 * alpha) * (1 - 2 * tau_plus)
        density = 2 * (1 - alpha + (2 * alpha - 1) * u) / (1 - a + 2 * a * u)
        if self.table is None:
            return density.log().mean()
        return self.times @ (self.table @ density).log()


def _thinned(counts: np.ndarray, n: int) -> tuple[np.ndarray, int]:
    """Return the counts in a random subset of the candidates, and its size."""
    if n <= _MOST_CANDIDATES:
        return counts, n
    rng = np.random.default_rng(0)
    return rng.hypergeometric(counts, n - counts, _MOST_CANDIDATES), _MOST_CANDIDATES


def minimise(
    function: Callable[[Tensor], Tensor], bounds: list[tuple[float, float]]
) -> np.ndarray:
    """Return the point of a box at which a smooth function of few variables is lowest."""

    def value_and_gradient(point: np.ndarray) -> tuple[float, np.ndarray]:
        leaf = torch.tensor(point, dtype=torch.float64, requires_grad=True)
        value = function(leaf)
        return value.item(), torch.autograd.grad(value, leaf)[0].numpy()

    inner = [np.linspace(low, high, 9)[1:-1] for low, high in bounds]
    starts = np.stack([axis.ravel() for axis in np.meshgrid(*inner)], axis=1)
    with torch.no_grad():
        start = min(starts, key=lambda point: function(torch.from_numpy(point)).item())
    result = minimize(value_and_gradient, start, jac=True, method="L-BFGS-B", bounds=bounds)
    return result.x


def standard_errors(function: Callable[[Tensor], Tensor], point: np.ndarray, n: int) -> np.ndarray:
    """Return standard errors from the observed information; infinite where there is none."""
    point = torch.tensor(point, dtype=torch.float64)
    information = n * torch.autograd.functional.hessian(function, point)
    values, vectors = torch.linalg.eigh(information)
    variance = torch.where(values > 0, 1 / values, torch.inf)
    return (vectors**2 @ variance).sqrt().nan_to_num(nan=math.inf, posinf=math.inf).numpy()
