"""How likely a candidate is a true negative, by the rank of its score among the candidates."""

from __future__ import annotations

from numbers import Integral

import torch
from torch import Tensor

from .._parameters import Interval, StrOptions

CDF_BINS = [Interval(Integral, 2, None, closed="left"), StrOptions({"auto"}), None]


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
    # Rounding must not make a probability of 1 − Φ negative.
    return (2 * cdf / (b + (b**2 + 4 * a * cdf).clamp_min(0).sqrt())).clamp_max(1.0)


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
