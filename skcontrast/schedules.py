"""Schedules: a schedule is a value that depends on the progress of the fit.

A schedule maps progress in [0, 1] to a number. It stands wherever a numeric hyperparameter of a
loss or of a similarity stands, and as ``lr_schedule`` of the embedder::

    BCL(alpha=Linear(0.5, 0.85), beta=Linear(2, 0))
"""

from __future__ import annotations

import math
from numbers import Integral, Real

from sklearn.base import clone

from ._sklearn_compat import Interval, ParameterObject, StrOptions, validate_parameters

__all__ = ["Auto", "CosineDecay", "Linear", "Schedule", "Steps", "at_progress"]

_NUMBER = [Interval(Real, None, None, closed="neither")]
_FRACTION = [Interval(Real, 0, 1, closed="both")]


class Schedule(ParameterObject):
    """Base class of the schedules: a callable on progress in [0, 1] that returns a float."""

    def __call__(self, progress):
        raise NotImplementedError


class Linear(Schedule):
    """A straight line from `start` to `stop`, or a staircase along it.

    .. math:: v(p) = \\mathrm{start} + (\\mathrm{stop} - \\mathrm{start})\\,p

    Parameters
    ----------
    start : float
        Value at the first epoch.
    stop : float
        Value at the last epoch.
    n_steps : int, default=None
        If given, the value only changes at the beginning of each of `n_steps` equal parts of the
        progress, and stays short of `stop`.

    Examples
    --------
    >>> from skcontrast.schedules import Linear
    >>> Linear(0.5, 0.9)(0.25)
    0.6
    >>> beta = Linear(2, 0, n_steps=20)  # of 400 epochs: 2 − 0.005 · epoch, every 20 epochs
    >>> beta(0), beta(19 / 399), beta(20 / 399)
    (2.0, 2.0, 1.9)
    """

    _parameter_constraints: dict = {
        "start": _NUMBER,
        "stop": _NUMBER,
        "n_steps": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(self, start, stop, n_steps=None):
        self.start = start
        self.stop = stop
        self.n_steps = n_steps

    def __call__(self, progress):
        """Return the value at `progress` in [0, 1]."""
        if self.n_steps is not None:
            progress = min(math.floor(progress * self.n_steps), self.n_steps - 1) / self.n_steps
        return float(self.start + (self.stop - self.start) * progress)


class CosineDecay(Schedule):
    """Half a cosine wave from `start` to `stop`, after an optional linear warm-up from 0.

    .. math:: v(p) = \\mathrm{stop} + (\\mathrm{start} - \\mathrm{stop})\\,(1 + \\cos \\pi q)/2,
        \\qquad q = (p - w) / (1 - w)

    for progress p past the warm-up fraction w [1]_.

    Parameters
    ----------
    start : float, default=1.0
        Value at the end of the warm-up.
    stop : float, default=0.0
        Value at the end.
    warmup : float, default=0.0
        Fraction of the progress, in [0, 1], during which the value rises linearly from 0.

    References
    ----------
    .. [1] I. Loshchilov, F. Hutter, "SGDR: Stochastic Gradient Descent with Warm Restarts", 2017.

    Examples
    --------
    >>> from skcontrast.schedules import CosineDecay
    >>> CosineDecay(2.0)(0.5)
    1.0
    """

    _parameter_constraints: dict = {"start": _NUMBER, "stop": _NUMBER, "warmup": _FRACTION}

    def __init__(self, start=1.0, stop=0.0, warmup=0.0):
        self.start = start
        self.stop = stop
        self.warmup = warmup

    def __call__(self, progress):
        """Return the value at `progress` in [0, 1]."""
        if progress < self.warmup:
            return float(self.start * progress / self.warmup)
        rest = (progress - self.warmup) / (1 - self.warmup) if self.warmup < 1 else 0.0
        return float(self.stop + (self.start - self.stop) * (1 + math.cos(math.pi * rest)) / 2)


class Steps(Schedule):
    """A staircase: ``values[k]`` from ``milestones[k - 1]`` up to ``milestones[k]``.

    Parameters
    ----------
    values : sequence of float
        One value per step.
    milestones : sequence of float
        Increasing fractions in [0, 1] at which the next value takes over, one fewer than `values`.

    Examples
    --------
    >>> from skcontrast.schedules import Steps
    >>> alpha = Steps([0.5, 0.7], milestones=[0.75])
    >>> alpha(0.5), alpha(0.75)
    (0.5, 0.7)
    """

    _parameter_constraints: dict = {"values": ["array-like"], "milestones": ["array-like"]}

    def __init__(self, values, milestones):
        self.values = values
        self.milestones = milestones

    def validate(self):
        """Check that values are finite numbers, milestones increasing fractions, one fewer."""
        if not all(isinstance(v, Real) and math.isfinite(v) for v in self.values):
            raise ValueError(
                f"The 'values' parameter of Steps must hold finite numbers, got {self.values!r}."
            )
        if len(self.values) != len(self.milestones) + 1:
            raise ValueError(
                f"Steps needs one value more than milestones, got {len(self.values)} values and "
                f"{len(self.milestones)} milestones."
            )
        inside = all(0 <= milestone <= 1 for milestone in self.milestones)
        if not inside or list(self.milestones) != sorted(self.milestones):
            raise ValueError(
                f"Steps needs increasing milestones in [0, 1], got {self.milestones!r}."
            )

    def __call__(self, progress):
        """Return the value at `progress` in [0, 1]."""
        passed = sum(progress >= milestone for milestone in self.milestones)
        return float(self.values[passed])


class Auto(ParameterObject):
    """A hyperparameter that is read off the data while the embedder trains.

    May stand for ``alpha`` and ``tau_plus`` of a loss; the string ``"auto"`` is short for
    ``Auto()``. Every few epochs the value is estimated anew from the ranks of the positives,
    pooled over an epoch, as in :func:`skcontrast.estimation.estimate_alpha`. If `fit` gets classes
    as y, the estimates are those of :func:`skcontrast.estimation.alpha_from_auc` and
    :func:`skcontrast.estimation.tau_plus_from_labels` instead, the latter from the first epoch on.

    Parameters
    ----------
    every : int, default=5
        Epochs between two estimates.
    initial : float, default=None
        Value until the first estimate; None is .5 for α, which trusts no ranks, and .1 for τ⁺.

    Examples
    --------
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.losses import BCL
    >>> from skcontrast.schedules import Auto
    >>> ContrastiveEmbedder(loss=BCL(alpha=Auto(every=20), tau_plus="auto"))
    ContrastiveEmbedder(loss=BCL(alpha=Auto(every=20), tau_plus='auto'))
    """

    _parameter_constraints: dict = {
        "every": [Interval(Integral, 1, None, closed="left")],
        "initial": [Interval(Real, 0, 1, closed="both"), None],
    }

    def __init__(self, every=5, initial=None):
        self.every = every
        self.initial = initial


def is_auto(name, value):
    """Return whether a hyperparameter is to be read off the data."""
    if isinstance(value, Auto):
        return True
    return name.rsplit("__")[-1] in {"alpha", "tau_plus"} and value == "auto"


def interval(low, high, closed, auto=False):
    """Return the constraint of a hyperparameter that is a number in a range or a schedule.

    With `auto` it may also be read off the data.
    """
    estimated = [StrOptions({"auto"}), Auto] if auto else []
    return [Interval(Real, low, high, closed=closed), Schedule, *estimated]


def at_progress(obj, progress):
    """Return a copy of a parameter object in which every schedule is replaced by its value.

    Parameters
    ----------
    obj : ParameterObject
        A loss or a similarity.
    progress : float
        Progress of the fit in [0, 1].

    Returns
    -------
    obj : ParameterObject
        A clone without schedules, its values checked against their ranges.

    Examples
    --------
    >>> from skcontrast.losses import DCL
    >>> from skcontrast.schedules import Linear, at_progress
    >>> at_progress(DCL(tau_plus=Linear(0.0, 0.4)), 0.5)
    DCL(tau_plus=0.2)
    """
    validate_parameters(obj)
    scheduled = {
        name: value(progress)
        for name, value in obj.get_params().items()
        if isinstance(value, Schedule)
    }
    # A schedule's own parameters appear in get_params too; replacing the schedule drops them.
    resolved = clone(obj).set_params(**scheduled)
    validate_parameters(resolved)
    return resolved


def check_numbers(component):
    """Check the hyperparameters of a component that is used outside of `fit`.

    Raises
    ------
    ValueError
        If one is a schedule or "auto", or lies outside its range.
    """
    for name, value in component.get_params().items():
        if is_auto(name, value):
            raise ValueError(
                f"The {name!r} parameter of {type(component).__name__} is read off the data in "
                "fit only; outside of it pass a number, such as "
                f"skcontrast.estimation.estimate_{name.split('__')[-1]}(ranks).value."
            )
        if isinstance(value, Schedule):
            raise ValueError(
                f"The {name!r} parameter of {type(component).__name__} is a schedule; outside of "
                "fit it needs a number: pass skcontrast.schedules.at_progress(obj, progress)."
            )
    validate_parameters(component)
