"""How likely a candidate is a true negative, by the rank of its score among the candidates."""

import functools

import torch
from scipy.optimize import brentq
from torch import Tensor

# Steps of the integral over ranks; this exponent makes a probability exactly 0 or 1.
_STEPS = 2**14
_FARTHEST = 1000.0


def invert_unlabeled_cdf(cdf: Tensor, alpha: float | Tensor, tau_plus: float | Tensor) -> Tensor:
    r"""Return Φ from Φ_UN, the cdf of a random candidate's score.

    .. math:: \Phi_{\mathrm{UN}} = b \Phi + a \Phi^2, \qquad
        \Phi = \frac{2\, \Phi_{\mathrm{UN}}}{b + \sqrt{b^2 + 4 a\, \Phi_{\mathrm{UN}}}}, \qquad
        a = (1 - 2\alpha)(1 - 2\tau^+),\; b = 1 - a

    Parameters
    ----------
    cdf : Tensor
        Φ_UN, in [0, 1].
    alpha, tau_plus : float
        BCL's location parameter in [.5, 1] and the class prior in [0, 1).

    Returns
    -------
    phi : Tensor
        Φ, in [0, 1].
    """
    a = (1 - 2 * alpha) * (1 - 2 * tau_plus)
    b = 1 - a
    # Rounding must not make a probability of 1 − Φ negative, nor positive for the highest score.
    phi = (2 * cdf / (b + (b**2 + 4 * a * cdf).clamp_min(0).sqrt())).clamp_max(1.0)
    return phi.masked_fill(cdf == 1, 1.0)


def true_negative_probability(phi: Tensor, alpha: float, tau_plus: float) -> Tensor:
    r"""Return the posterior probability that a candidate is a true negative.

    .. math:: p(\mathrm{TN} \mid s) = \frac{\tau^- (\alpha + (1 - 2\alpha)\Phi)}
        {\tau^- (\alpha + (1 - 2\alpha)\Phi) + \tau^+ (1 - \alpha + (2\alpha - 1)\Phi)}

    Parameters
    ----------
    phi : Tensor
        Φ(s), in [0, 1].
    alpha, tau_plus : float
        BCL's location parameter in [.5, 1] and the class prior in [0, 1).
    """
    true = (1 - tau_plus) * (alpha + (1 - 2 * alpha) * phi)
    false = tau_plus * (1 - alpha + (2 * alpha - 1) * phi)
    return ratio(true, true + false)


def ratio(density: Tensor, total: Tensor) -> Tensor:
    """Return the ratio of two densities; 1 where both vanish, at Φ = 1 for α = 1 and τ⁺ = 0."""
    return torch.where(total > 0, density / total, 1.0)


def false_negative_probability(
    u: Tensor, sharpness: float, tau_plus: float, floor: float = 0.0
) -> Tensor:
    r"""Return the probability that a candidate is a false negative, by its unlabeled rank.

    .. math:: p(\mathrm{FN} \mid u) = f \tau^+ + (1 - f \tau^+)\,
        \sigma\bigl(k\,(\operatorname{logit} u - m)\bigr), \qquad
        \int_0^1 p(\mathrm{FN} \mid u)\, du = \tau^+

    Parameters
    ----------
    u : Tensor
        Shares of the candidates that score lower, in [0, 1].
    sharpness, tau_plus : float
        k ≥ 0 and the class prior in [0, 1).
    floor : float, default=0.0
        The least probability f as a share of τ⁺, in [0, 1].
    """
    least = floor * tau_plus
    rest = (tau_plus - least) / (1 - least)  # the mean of the second term's sigmoid
    if rest == 0:
        return torch.full_like(u, least)
    if sharpness == 0:
        return torch.full_like(u, tau_plus)
    middle = _middle(float(sharpness), float(rest))
    return least + (1 - least) * torch.sigmoid(sharpness * torch.logit(u) - middle)


def ranks_inside(n: int) -> Tensor:
    """Return the middles of n equal steps from 0 to 1, shape (n,), dtype float64."""
    return (torch.arange(n, dtype=torch.float64) + 0.5) / n


@functools.lru_cache(maxsize=256)
def _middle(sharpness: float, tau_plus: float) -> float:
    """Return km, the root of a decreasing function."""
    logits = sharpness * torch.logit(ranks_inside(_STEPS))

    def excess(middle: float) -> float:
        return float(torch.sigmoid(logits - middle).mean()) - tau_plus

    farthest = _FARTHEST * max(sharpness, 1.0)
    return float(brentq(excess, -farthest, farthest, xtol=1e-16))
