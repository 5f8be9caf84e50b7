r"""The mutual likelihood score of two von Mises–Fisher distributions, pair by pair.

With :math:`\tilde\kappa = |\kappa_i \mu_i + \kappa_j \mu_j|` the score is
:math:`h(\tilde\kappa) - h(\kappa_i) - h(\kappa_j)`. At concentrations of thousands these three
are large and nearly cancel. So the part of h that grows is split off,

.. math:: h(\kappa) = (t - b) + g(\kappa), \qquad t = \sqrt{b^2 + \kappa^2}, \qquad b = (d + 1)/2,

and is summed up in closed form: with :math:`m = t - b`,

.. math:: s_{ij} = 2\, \frac{\kappa_i \kappa_j \cos\theta - m_i m_j}{\tilde t + m_i + m_j + b}
    + g(\tilde\kappa) - g(\kappa_i) - g(\kappa_j).

A sample is held as :math:`(\kappa\mu, m, -g(\kappa))`. In float64, g is exact. In float32 it is

.. math:: g(\kappa) = -a \log\frac{a + t}{a + b} + P(2b/t - 1), \qquad a = (d - 1)/2,

with a polynomial P that is fitted once for each d. The first term has the right slope at 0 and
the right growth at infinity; the rest, P, is less than .24 and smooth in b/t. P is within 3e-7
and is of degree 8 for d ≥ 8, up to 15 for d = 2. The slope of a score with respect to
:math:`\kappa_i \kappa_j \cos\theta` is :math:`A(\tilde\kappa)/\tilde\kappa`; times t it is a
polynomial of the same kind, within 1e-6.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.polynomial import chebyshev
from numpy.typing import NDArray
from torch import Tensor

from ._bessel import log_partition_of_square, ratio_of_square

_TOLERANCE = 3e-7
_SLOPE_TOLERANCE = 1e-6
_LARGEST_DEGREE = 20
# Number of pairs worked on at a time, so that they stay in cache.
_CHUNK = 2**16


def parts_of(kappa: Tensor, d: int) -> tuple[Tensor, Tensor]:
    """Return m and −g(κ) of concentrations, differentiable.

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
        m and −g(κ), as `parts_of` returns them.
    d : int
        Dimension of the space.
    """
    (m_i, minus_g_i), (m_j, minus_g_j) = u_terms.unbind(-1), v_terms.unbind(-1)
    b = (d + 1) / 2
    # Opposite directions of high concentration cancel: what is left of κ̃² is rounding.
    y = (m_i * (m_i + 2 * b) + m_j * (m_j + 2 * b) + 2 * products).clamp_min(0)
    t = (b * b + y).sqrt()
    grown = 2 * (products - m_i * m_j) / (t + m_i + m_j + b)
    return grown + _remainder(y, t, y / (t + b), d) + minus_g_i + minus_g_j


def _remainder(y: Tensor, t: Tensor, m: Tensor, d: int) -> Tensor:
    """Return g as a function of κ²."""
    if t.dtype == torch.float64:
        return log_partition_of_square(y, d) - m
    a, b = (d - 1) / 2, (d + 1) / 2
    x, p = 2 * b / t - 1, torch.zeros_like(t)
    for c in reversed(_fitted(d)[0]):
        p = p * x + c
    return p - a * (m / (a + b)).log1p()


class MutualLikelihood(torch.autograd.Function):
    """Mutual likelihood scores of all pairs over a temperature, in place of their products.

    Its slopes are written by hand: those of the polynomials would be less exact, and autograd
    would hold some thirty numbers for each pair.
    """

    @staticmethod
    def forward(
        ctx: Any, products: Tensor, u_terms: Tensor, v_terms: Tensor, d: int, temperature: float
    ) -> Tensor:
        slopes = torch.empty_like(products) if any(ctx.needs_input_grad) else None
        link_in_place(products, u_terms, v_terms, slopes, d, temperature)
        ctx.mark_dirty(products)
        ctx.slopes, ctx.terms = slopes, (u_terms, v_terms)
        ctx.d, ctx.temperature = d, temperature
        return products

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # a second derivative would silently lack this part
            raise RuntimeError("VonMisesFisher scores can be differentiated once.")
        d_products = ctx.slopes * grad

        def of_terms(terms: Tensor, axis: int) -> Tensor:
            # A score is a function of κ²/2 = m(m + d + 1)/2 as it is of the products, minus m.
            t = terms[:, 0] + (ctx.d + 1) / 2
            d_scores = grad.sum(axis) / ctx.temperature
            return torch.stack([t * d_products.sum(axis) - d_scores, d_scores], 1)

        u_terms, v_terms = ctx.terms
        return d_products, of_terms(u_terms, 1), of_terms(v_terms, 0), None, None


def link_in_place(
    products: Tensor,
    u_terms: Tensor,
    v_terms: Tensor,
    slopes: Tensor | None,
    d: int,
    temperature: float,
) -> None:
    """Turn products into scores over the temperature, and write their slopes.

    Parameters
    ----------
    products : Tensor of shape (n, m)
        κ_i κ_j cos θ; overwritten by the scores.
    u_terms, v_terms : Tensor of shapes (n, 2) and (m, 2)
        m and −g(κ), as `parts_of` returns them.
    slopes : Tensor of shape (n, m) or None
        Overwritten by the derivatives of the scores with respect to the products.
    d : int
        Dimension of the space.
    temperature : float
        The scores are divided by it.
    """
    n, n_columns = products.shape
    n_rows = min(n, max(1, _CHUNK // max(1, n_columns)))
    if products.device.type != "cpu":
        n_rows = n
    link: Callable[..., None] = partial(_exact_link, d=d, temperature=temperature)
    if products.dtype != torch.float64:
        # With the temperature in the coefficients, dividing by it costs nothing.
        scale = 1 / temperature
        polynomials = [products.new_tensor(c).mul(scale).unbind() for c in _fitted(d)]
        buffers = products.new_empty(4, n_rows, n_columns)
        link = partial(_fast_link, d=d, scale=scale, polynomials=polynomials, buffers=buffers)
    for start in range(0, n, max(1, n_rows)):
        rows = slice(start, start + n_rows)
        out = None if slopes is None else slopes[rows]
        link(products[rows], u_terms[rows, None], v_terms, out)


def _exact_link(
    x: Tensor, u_terms: Tensor, v_terms: Tensor, slopes: Tensor | None, d: int, temperature: float
) -> None:
    """Turn products into scores in float64, exactly."""
    if slopes is not None:
        m_i, m_j, b = u_terms[..., 0], v_terms[..., 0], (d + 1) / 2
        y = m_i * (m_i + 2 * b) + m_j * (m_j + 2 * b) + 2 * x
        torch.div(ratio_of_square(y.clamp_min_(0), d), temperature, out=slopes)
    torch.div(mutual_score(x, u_terms, v_terms, d), temperature, out=x)


def _fast_link(
    x: Tensor,
    u_terms: Tensor,
    v_terms: Tensor,
    slopes: Tensor | None,
    d: int,
    scale: float,
    polynomials: Sequence[Sequence[Tensor]],
    buffers: Tensor,
) -> None:
    """Turn products into scores in float32: few passes, in buffers that stay in cache."""
    (m_i, minus_g_i), (m_j, minus_g_j) = u_terms.unbind(-1), v_terms.unbind(-1)
    a, b, (of_value, of_slope) = (d - 1) / 2, (d + 1) / 2, polynomials
    y, t, ratio, p = buffers[:, : len(x)]
    # y = κ_i² + κ_j² + 2x, the squared concentration of both together, with κ² = m (m + 2b);
    # t = √(y + b²).
    torch.add(m_i * (m_i + 2 * b), x, alpha=2, out=y)
    y.add_(m_j * (m_j + 2 * b)).clamp_min_(0)
    torch.add(y, b * b, out=t).sqrt_()
    # t − b − m_i − m_j as 2 (x − m_i m_j) / (t + b + m_i + m_j), in which nothing cancels.
    x.addcmul_(m_i, m_j, value=-1)
    x.div_(torch.add(t, m_i + b, out=ratio).add_(m_j))
    # The rest is a polynomial of 2b/t − 1, which lies in [−1, 1] ...
    torch.div(t.new_tensor(2 * b), t, out=ratio).sub_(1)
    if slopes is not None:
        torch.div(_polynomial(ratio, of_slope, p), t, out=slopes)
    torch.add(_polynomial(ratio, of_value, p), x, alpha=2 * scale, out=x)
    x.add_(scale * minus_g_i).add_(scale * minus_g_j)
    # ... and −a log(1 + y / ((a + b) (b + t))).
    torch.add(t.new_tensor(b * (a + b)), t, alpha=a + b, out=t)
    x.sub_(y.div_(t).log1p_(), alpha=a * scale)


def _polynomial(x: Tensor, coefficients: Sequence[Tensor], out: Tensor) -> Tensor:
    """Return a polynomial, lowest coefficient first, by Horner's rule: one pass for each."""
    torch.addcmul(coefficients[-2], x, coefficients[-1], out=out)
    for c in coefficients[-3::-1]:
        torch.addcmul(c, out, x, out=out)
    return out


@functools.lru_cache(maxsize=256)
def _fitted(d: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the coefficients of P and of t times the slope, lowest first."""
    return _fit(_wanted, d, _TOLERANCE), _fit(_wanted_slope, d, _SLOPE_TOLERANCE)


def _fit(
    function: Callable[[NDArray, int], NDArray], d: int, tolerance: float
) -> tuple[float, ...]:
    """Return the coefficients of a polynomial that is within a tolerance of a function."""
    check = np.linspace(-0.999, 1, 2001)
    exact = function(check, d)
    for degree in range(6, _LARGEST_DEGREE + 1):
        nodes = np.cos(np.pi * (np.arange(degree + 1) + 0.5) / (degree + 1))
        series = chebyshev.chebfit(nodes, function(nodes, d), degree)
        if np.abs(chebyshev.chebval(check, series) - exact).max() < tolerance:
            break
    return tuple(chebyshev.cheb2poly(series).tolist())


def _wanted(x: NDArray, d: int) -> NDArray:
    """Return the function that P approximates, at 2b/t − 1 = x."""
    a, b = (d - 1) / 2, (d + 1) / 2
    t = 2 * b / (torch.from_numpy(x) + 1)
    y = t * t - b * b
    m = y / (t + b)
    return (log_partition_of_square(y, d) - m + a * (m / (a + b)).log1p()).numpy()


def _wanted_slope(x: NDArray, d: int) -> NDArray:
    """Return t times the slope at 2b/t − 1 = x; from b/d to 1."""
    b = (d + 1) / 2
    t = 2 * b / (torch.from_numpy(x) + 1)
    return (t * ratio_of_square(t * t - b * b, d)).numpy()
