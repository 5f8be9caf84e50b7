r"""The mutual likelihood score of two von Mises–Fisher distributions, and their normaliser.

The normaliser. With :math:`v = d/2 - 1` and the modified Bessel function :math:`I_v`,

.. math:: h(\kappa) = \log I_v(\kappa) - v \log\kappa + v \log 2 + \log\Gamma(v + 1)
    = \log \mathrm{E}\, e^{\kappa \cos\theta},
    \qquad h'(\kappa) = A(\kappa) = \frac{I_{v+1}(\kappa)}{I_v(\kappa)},

the mean over uniform directions. Both are functions of :math:`y = \kappa^2` without a
singularity. SciPy computes them in float64: by :math:`I_v`, or, where it is small, by the series
:math:`h = \log {}_0F_1(v + 1; y/4)`.

The score. With :math:`\tilde\kappa = |\kappa_i \mu_i + \kappa_j \mu_j|` the score is
:math:`h(\tilde\kappa) - h(\kappa_i) - h(\kappa_j)`. At concentrations of thousands these three
are large and nearly cancel. So the part of h that grows is split off,

.. math:: h(\kappa) = (t - b) + g(\kappa), \qquad t = \sqrt{b^2 + \kappa^2}, \qquad b = (d + 1)/2,

and is summed up in closed form: with :math:`m = t - b`,

.. math:: s_{ij} = 2\, \frac{\kappa_i \kappa_j \cos\theta - m_i m_j}{\tilde t + m_i + m_j + b}
    + g(\tilde\kappa) - g(\kappa_i) - g(\kappa_j).

A sample is stored as :math:`(\kappa\mu, m, -g(\kappa))`. In float64, g is exact. In float32 it is

.. math:: g(\kappa) = -a \log\frac{a + t}{a + b} + P(2b/t - 1), \qquad a = (d - 1)/2,

with a polynomial P that is fitted once for each d. The first term has the right slope at 0 and
the right growth at infinity; the rest, P, is less than .24 and smooth in b/t. P is within 3e-7
and is of degree 8 for d ≥ 8, up to 15 for d = 2.
"""

import functools
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.polynomial import chebyshev
from scipy.special import hyp0f1, ive
from torch import Tensor
from torch.autograd.function import once_differentiable

_TOLERANCE = 3e-7
_LARGEST_DEGREE = 20
# The series of h is used below this square, or below this value of the Bessel functions.
_SMALL, _LEAST = 100.0, 1e-290


def log_partition(kappa: Tensor, d: int) -> Tensor:
    """Return h(κ), the logarithm of the normaliser of a von Mises–Fisher distribution.

    Parameters
    ----------
    kappa : Tensor, float32 or float64
        Concentrations κ ≥ 0, at most 1e6.
    d : int
        Dimension of the space, at least 2.

    Returns
    -------
    h : Tensor of the same shape
        0 for κ = 0, κ²/(2d) for small κ, κ − (d − 1)/2 · log κ + const for large ones. In
        float64 correct to 1e-10, absolute below 1 and relative above.
        Differentiable once.
    """
    return log_partition_of_square(kappa.square(), d)


def log_partition_of_square(y: Tensor, d: int) -> Tensor:
    """Return h(√y), which is smooth at y = 0."""
    return _WithSlope.apply(y, partial(_evaluate, v=d / 2 - 1))


class _WithSlope(torch.autograd.Function):
    """An elementwise function that returns its value and its derivative."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, function: Callable[[Tensor], Any]) -> Tensor:
        value, slope = function(x)
        ctx.save_for_backward(slope)
        return value

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad * ctx.saved_tensors[0], None


def _evaluate(y: Tensor, v: float) -> tuple[Tensor, Tensor]:
    """Return h(√y) and its slope r_v(y) / 2, with r_v(y) = I_{v+1}(√y) / (√y I_v(√y))."""
    squares = y.detach().cpu().double().numpy().ravel()
    kappa, constant = np.sqrt(squares), v * math.log(2) + math.lgamma(v + 1)
    lower, upper = ive(v, kappa), ive(v + 1, kappa)
    with np.errstate(divide="ignore", invalid="ignore"):
        h = np.log(lower) + kappa - v * np.log(kappa) + constant
        ratio = upper / lower / kappa
    # If the Bessel functions underflow, the hypergeometric functions do not overflow.
    is_small = (squares < _SMALL) | (upper < _LEAST)
    first, second = (hyp0f1(v + k, squares[is_small] / 4) for k in (1, 2))
    h[is_small], ratio[is_small] = np.log(first), second / first / (2 * (v + 1))
    return torch.from_numpy(h).to(y).view_as(y), torch.from_numpy(ratio / 2).to(y).view_as(y)


def _horner(coefficients: Sequence[float], x: Tensor) -> tuple[Tensor, Tensor]:
    """Return values of a polynomial and its derivative; `coefficients` start with the constant."""
    value = torch.full_like(x, coefficients[-1])
    slope = torch.zeros_like(x)
    for c in coefficients[-2::-1]:
        slope.mul_(x).add_(value)
        value.mul_(x).add_(c)
    return value, slope


def terms_of(kappa: Tensor, d: int) -> tuple[Tensor, Tensor]:
    """Return the terms m and −g(κ) of the score, see above, differentiable with respect to κ.

    Parameters
    ----------
    kappa : Tensor of shape (...)
    d : int
        Dimension of the space.

    Returns
    -------
    m, minus_g : Tensor of shape (...)
    """
    b = (d + 1) / 2
    y = kappa.square()
    t = (b * b + y).sqrt()
    m = y / (t + b)
    return m, -_remainder(y, t, m, d)


def mutual_score(products: Tensor, u_terms: Tensor, v_terms: Tensor, d: int) -> Tensor:
    """Return mutual likelihood scores by differentiable operations; shapes broadcast.

    Parameters
    ----------
    products : Tensor of shape (...)
        κ_i κ_j cos θ.
    u_terms, v_terms : Tensor of shape (..., 2)
        m and −g(κ), as `terms_of` returns them.
    d : int
        Dimension of the space.
    """
    (m_i, minus_g_i), (m_j, minus_g_j) = u_terms.unbind(-1), v_terms.unbind(-1)
    b = (d + 1) / 2
    # Opposite directions of high concentration cancel, and κ̃² may be negative by rounding.
    y = (m_i * (m_i + 2 * b) + m_j * (m_j + 2 * b) + 2 * products).clamp_min(0)
    t = (b * b + y).sqrt()
    grown = 2 * (products - m_i * m_j) / (t + m_i + m_j + b)
    return grown + _remainder(y, t, y / (t + b), d) + minus_g_i + minus_g_j


def _remainder(y: Tensor, t: Tensor, m: Tensor, d: int) -> Tensor:
    """Return g as a function of κ²."""
    if t.dtype == torch.float64:
        return log_partition_of_square(y, d) - m
    a, b = (d - 1) / 2, (d + 1) / 2
    p = _WithSlope.apply(2 * b / t - 1, partial(_horner, _polynomial(d)))
    return p - a * (m / (a + b)).log1p()


@functools.lru_cache(maxsize=256)
def _polynomial(d: int) -> tuple[float, ...]:
    """Return the coefficients of P."""
    a, b = (d - 1) / 2, (d + 1) / 2

    def wanted(x: Any) -> Any:
        t = 2 * b / (torch.from_numpy(x) + 1)
        y = t * t - b * b
        m = y / (t + b)
        return (log_partition_of_square(y, d) - m + a * (m / (a + b)).log1p()).numpy()

    check = np.linspace(-0.999, 1, 2001)
    exact = wanted(check)
    for degree in range(6, _LARGEST_DEGREE + 1):
        series = chebyshev.chebinterpolate(wanted, degree)
        if np.abs(chebyshev.chebval(check, series) - exact).max() < _TOLERANCE:
            break
    return tuple(chebyshev.cheb2poly(series).tolist())
