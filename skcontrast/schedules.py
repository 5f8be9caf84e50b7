"""Schedules: a schedule is a value that depends on the progress of the fit.

A schedule maps progress in [0, 1] to a number. It stands wherever a numeric hyperparameter of a
loss or of a similarity stands, and as ``lr_schedule`` of the embedder::

    BCL(alpha=Linear(0.5, 0.85), beta=Linear(2, 0))
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real

from ._arguments import check_arguments
from ._parameters import (
    Auto,
    Interval,
    Numbers,
    Schedule,
    at_progress,
    interval,
    validate_parameters,
)

__all__ = ["Auto", "CosineDecay", "Linear", "Schedule", "Steps", "at_progress", "interval"]

# Where users find them, in messages and pickles.
Schedule.__module__ = Auto.__module__ = __name__

_NUMBER = [Interval(Real, None, None, closed="neither")]
_FRACTION = [Interval(Real, 0, 1, closed="both")]


def _checked(schedule: Schedule, progress: float) -> float:
    """Return `progress` after checking it and the parameters of the schedule."""
    validate_parameters(schedule)
    within = {"progress": _FRACTION}
    check_arguments(f"{type(schedule).__name__}()", within, {"progress": progress})
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

    _parameter_constraints: dict = {
        "start": _NUMBER,
        "stop": _NUMBER,
        "n_steps": [Interval(Integral, 1, None, closed="left"), None],
    }

    def __init__(self, start: float, stop: float, n_steps: int | None = None):
        self.start = start
        self.stop = stop
        self.n_steps = n_steps

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

    _parameter_constraints: dict = {"start": _NUMBER, "stop": _NUMBER, "warmup": _FRACTION}

    def __init__(self, start: float = 1.0, stop: float = 0.0, warmup: float = 0.0):
        self.start = start
        self.stop = stop
        self.warmup = warmup

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

    _parameter_constraints: dict = {
        "values": [Numbers(*_NUMBER)],
        "milestones": [Numbers(*_FRACTION)],
    }

    def __init__(self, values: Sequence[float], milestones: Sequence[float]):
        self.values = values
        self.milestones = milestones

    def validate(self) -> None:
        """Check that milestones increase, one fewer than values."""
        if len(self.values) != len(self.milestones) + 1:
            raise ValueError(
                f"Steps needs one value more than milestones, got {len(self.values)} values and "
                f"{len(self.milestones)} milestones."
            )
        if list(self.milestones) != sorted(self.milestones):
            raise ValueError(
                f"Steps needs increasing milestones in [0, 1], got {self.milestones!r}."
            )

    def __call__(self, progress: float) -> float:
        """Return the value at `progress` in [0, 1]."""
        progress = _checked(self, progress)
        passed = sum(progress >= milestone for milestone in self.milestones)
        return float(self.values[passed])
