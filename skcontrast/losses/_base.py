"""What a loss is: a row of weights and two coefficients."""

from __future__ import annotations

from numbers import Real

from .._sklearn_compat import Interval, ParameterObject
from ..schedules import Schedule

__all__ = ["Loss", "interval"]


def interval(low, high, closed):
    """Return the constraint of a hyperparameter that is a number in a range or a schedule."""
    return [Interval(Real, low, high, closed=closed), Schedule]


class Loss(ParameterObject):
    r"""Base class of the losses: an estimate of an expectation over true negatives.

    For any function :math:`\varphi` of the score, and N candidates of which some may share the
    anchor's class, every loss of this package estimates

    .. math:: \hat E^-[\varphi] = a \cdot \frac1N \sum_j w_j\, \varphi(s_j)
        - b \cdot \frac1M \sum_m \varphi(s^+_m), \qquad w_j \propto e^{c_j + \beta s_j},

    floored at the lowest value that :math:`\varphi` can take. A loss is (c, β, a, b); a new one
    overrides what differs from plain InfoNCE below and takes its hyperparameters in ``__init__``.

    Attributes
    ----------
    beta : float
        The hardness tilt β ≥ 0. Class attribute or hyperparameter.
    detach_weights : bool
        Whether the weights carry no gradient. Only matters where β > 0: the log-prior c never
        carries any.
    normalize_weights : bool
        Whether the weights are scaled to mean 1.
    """

    beta = 0.0
    detach_weights = False
    normalize_weights = True

    def coefficients(self):
        """Return (a, b)."""
        return 1.0, 0.0

    def log_prior(self, scores):
        """Return c, the log-prior of each candidate to be a true negative, or None for c = 0.

        Parameters
        ----------
        scores : Tensor of shape (n_anchors, n_candidates)
            Scores without gradient; excluded candidates hold -inf.

        Returns
        -------
        c : Tensor of shape (n_anchors, n_candidates) or None
        """
        return None
