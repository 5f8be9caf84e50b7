"""Ranks of scores among the candidates, and what they say about true and false negatives."""

from __future__ import annotations

import torch

__all__ = ["empirical_cdf", "invert_unlabeled_cdf", "true_negative_probability"]


def empirical_cdf(scores, n_candidates):
    r"""Return the share of candidates that score at most as high.

    .. math:: \Phi_{\mathrm{UN}}(s_i) = \#\{j : s_j \le s_i\} / N

    Parameters
    ----------
    scores : Tensor of shape (n_anchors, n)
        Scores; the n − N excluded ones hold −inf.
    n_candidates : int
        N.

    Returns
    -------
    cdf : Tensor of shape (n_anchors, n)
        Values in [0, 1]; 0 for excluded ones.
    """
    ordered = scores.sort(dim=1).values
    at_most = torch.searchsorted(ordered, scores.contiguous(), right=True)
    at_most = at_most - (scores.shape[1] - n_candidates)
    return at_most.to(scores.dtype) / n_candidates


def invert_unlabeled_cdf(cdf, alpha, tau_plus):
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
        Φ, in [0, 1).
    """
    a = (1 - 2 * alpha) * (1 - 2 * tau_plus)
    b = 1 - a
    return _below_one(2 * cdf / (b + (b**2 + 4 * a * cdf).clamp_min(0).sqrt()))


def true_negative_probability(phi, alpha, tau_plus):
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
    phi = _below_one(phi)
    true = (1 - tau_plus) * (alpha + (1 - 2 * alpha) * phi)
    false = tau_plus * (1 - alpha + (2 * alpha - 1) * phi)
    return true / (true + false)


def _below_one(phi):
    """Return Φ where rounding neither makes 1 − Φ negative nor 0/0 of two densities at Φ = 1."""
    return phi.clamp_max(1 - torch.finfo(phi.dtype).eps)
