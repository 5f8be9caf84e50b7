"""Values that depend on the progress of the fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real

from .._checks import (
    FRACTION,
    POSITIVE_INT,
    Interval,
    Numbers,
    ParameterObject,
    check_argument,
    parameter,
    validate_parameters,
)


class Schedule(ParameterObject):
    """Base class of the schedules: a callable on progress in [0, 1] that returns a float.

    A custom schedule implements ``__call__`` and takes its settings in ``__init__``.

    See Also
    --------
    skcontrast.schedules.Linear : A straight line, or a staircase along it.
    skcontrast.schedules.CosineDecay : Half a cosine wave, after an optional warm-up.
    skcontrast.schedules.Steps : A staircase with steps of any height and length.
    skcontrast.schedules.at_progress : Replaces the schedules of a loss by their values.

    Examples
    --------
    A value that halves at equal intervals:

    >>> from skcontrast.losses import HCL
    >>> from skcontrast.schedules import Schedule, at_progress
    >>> class Halving(Schedule):
    ...     def __init__(self, start, times=1):
    ...         self.start = start
    ...         self.times = times
    ...
    ...     def __call__(self, progress):
    ...         return self.start * 0.5 ** (self.times * progress)
    >>> at_progress(HCL(beta=Halving(2.0, times=3)), 1.0)
    HCL(beta=0.25)
    """

    def _check_protocol(self) -> None:
        if type(self).__call__ is Schedule.__call__:
            raise TypeError(f"{type(self).__name__} must implement __call__(self, progress).")

    def __call__(self, progress: float) -> float:
        """Return the value at `progress` in [0, 1]."""
        raise NotImplementedError


# Any finite number.
NUMBER = [Interval(Real, None, None, closed="neither")]


def _checked(schedule: Schedule, progress: float) -> float:
    """Return `progress` after checking it and the parameters of the schedule."""
    validate_parameters(schedule)
    check_argument(f"{type(schedule).__name__}()", "progress", progress, FRACTION)
    return progress


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
        progress, and never quite reaches `stop`.

    Examples
    --------
    >>> from skcontrast.schedules import Linear
    >>> Linear(0.5, 0.9)(0.25)
    0.6
    >>> beta = Linear(2, 0, n_steps=20)  # of 400 epochs: 2 − 0.005 · epoch, every 20 epochs
    >>> beta(0), beta(19 / 399), beta(20 / 399)
    (2.0, 2.0, 1.9)
    """

    start: float = parameter(NUMBER)
    stop: float = parameter(NUMBER)
    n_steps: int | None = parameter([*POSITIVE_INT, None], default=None)

    def __call__(self, progress: float) -> float:
        """Return the value at `progress` in [0, 1]."""
        progress = _checked(self, progress)
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

    start: float = parameter(NUMBER, default=1.0)
    stop: float = parameter(NUMBER, default=0.0)
    warmup: float = parameter(FRACTION, default=0.0)

    def __call__(self, progress: float) -> float:
        """Return the value at `progress` in [0, 1]."""
        progress = _checked(self, progress)
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

    values: Sequence[float] = parameter([Numbers(*NUMBER)])
    milestones: Sequence[float] = parameter([Numbers(*FRACTION)])

    def validate(self) -> None:
        """Check that milestones increase, one fewer than values."""
        if len(self.values) != len(self.milestones) + 1:
            raise ValueError(
                "Steps needs one value more than milestones, got "
                f"{len(self.values)} values and {len(self.milestones)} milestones."
            )
        if list(self.milestones) != sorted(self.milestones):
            raise ValueError(f"Steps needs increasing milestones, got {self.milestones!r}.")

    def __call__(self, progress: float) -> float:
        """Return the value at `progress` in [0, 1]."""
        progress = _checked(self, progress)
        passed = sum(progress >= milestone for milestone in self.milestones)
        return float(self.values[passed])
