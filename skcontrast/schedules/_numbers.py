"""Hyperparameters as numbers, schedules or estimates."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, TypeVar

from sklearn.base import clone

from .._checks import (
    FRACTION,
    POSITIVE_INT,
    Interval,
    Numbers,
    ParameterObject,
    StrOptions,
    parameter,
    validate_parameters,
)
from .._checks._arguments import check_argument, check_component
from .._checks._constraints import Closed

Quantity: TypeAlias = Literal["alpha", "tau_plus"]
# Any finite number.
NUMBER = [Interval(Real, None, None, closed="neither")]


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

    def __call__(self, progress: float) -> float:
        """Return the value at `progress` in [0, 1]."""
        raise NotImplementedError(f"{type(self).__name__} must implement __call__(progress).")


def _validated_progress(schedule: Schedule, progress: float) -> float:
    """Validate `progress` and the parameters of the schedule, and return `progress`."""
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
        If given, a staircase of `n_steps` equal steps, which does not reach `stop`.

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
        progress = _validated_progress(self, progress)
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
        progress = _validated_progress(self, progress)
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
        Increasing fractions in [0, 1] at which the next value starts, one fewer than `values`.

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
        """Raise ValueError unless there are increasing milestones, one fewer than values."""
        if len(self.values) != len(self.milestones) + 1:
            raise ValueError(
                "Steps needs one value more than milestones, got "
                f"{len(self.values)} values and {len(self.milestones)} milestones."
            )
        if list(self.milestones) != sorted(self.milestones):
            raise ValueError(f"Steps needs increasing milestones, got {self.milestones!r}.")

    def __call__(self, progress: float) -> float:
        """Return the value at `progress` in [0, 1]."""
        progress = _validated_progress(self, progress)
        passed = sum(progress >= milestone for milestone in self.milestones)
        return float(self.values[passed])


class Auto(ParameterObject):
    """A hyperparameter that is estimated from the data while the embedder trains.

    May replace ``alpha`` and ``tau_plus`` of losses, and every hyperparameter of a custom loss
    whose constraint is of such a quantity; the string ``"auto"`` is short for ``Auto()``. Every
    few epochs, the value is estimated from the ranks of the positives of an epoch, as in
    :func:`skcontrast.estimation.estimate_alpha_and_tau_plus`. If `fit` gets classes as y, the
    estimates are those of :func:`skcontrast.estimation.alpha_from_auc` and
    :func:`skcontrast.estimation.tau_plus_from_labels` instead, the latter from the first epoch on.

    If only some samples have classes, label spreading in the representation completes them at
    every estimate, as in :class:`skcontrast.losses.SemiSupCon`. τ⁺ is estimated from the shares of
    the spread classes, so that labeled samples need not be drawn at random: 5 per class are
    enough. α is estimated from labels that are drawn from the class probabilities, or, for losses
    that use labels, from the known labels only.

    Parameters
    ----------
    every : int, default=5
        Epochs between two estimates. Until the first, α is .5, so that ranks have no effect, and
        τ⁺ is .1.

    See Also
    --------
    skcontrast.estimation : The same estimates, outside of a fit.

    Examples
    --------
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.losses import BCL
    >>> from skcontrast.schedules import Auto
    >>> ContrastiveEmbedder(loss=BCL(alpha=Auto(every=20), tau_plus="auto"))
    ContrastiveEmbedder(loss=BCL(alpha=Auto(every=20), tau_plus='auto'))
    """

    every: int = parameter(POSITIVE_INT, default=5)


class Estimated(StrOptions):
    """Constraint on a hyperparameter: "auto" or an ``Auto``, to estimate `quantity`.

    Parameters
    ----------
    quantity : {"alpha", "tau_plus"}
        The quantity that is estimated; the hyperparameter may have another name.
    """

    def __init__(self, quantity: Quantity):
        super().__init__({"auto"})
        self.quantity = quantity

    def is_satisfied_by(self, val: Any) -> bool:
        return is_auto(val)

    def __str__(self) -> str:
        return "the str 'auto' or an instance of 'skcontrast.schedules.Auto'"


class Estimable(NamedTuple):
    """A hyperparameter of an object or its components that may be estimated from the data.

    Attributes
    ----------
    quantity : {"alpha", "tau_plus"}
        The quantity that is estimated.
    prefix : str
        The prefix of its name, such as ``"negatives__"``.
    value : object
        Its current value.
    """

    quantity: str
    prefix: str
    value: Any


def estimable_parameters(obj: ParameterObject, prefix: str = "") -> dict[str, Estimable]:
    """Return by name the hyperparameters of an object with an `Estimated` constraint."""
    estimable = {}
    for name, value in obj.get_params(deep=False).items():
        constraints = obj._parameter_constraints.get(name)
        if declared := [c for c in constraints or () if isinstance(c, Estimated)]:
            estimable[prefix + name] = Estimable(declared[0].quantity, prefix, value)
        elif isinstance(value, ParameterObject):
            estimable.update(estimable_parameters(value, f"{prefix}{name}__"))
    return estimable


def is_auto(value: Any) -> bool:
    """Return whether a value is to be estimated from the data."""
    return isinstance(value, Auto) or (isinstance(value, str) and value == "auto")


_P = TypeVar("_P", bound=ParameterObject)

# A hyperparameter that may be scheduled, and one that may also be estimated. Both are replaced by
# numbers before losses or scores are computed.
if TYPE_CHECKING:

    class Number:
        """A number when read, a number or a schedule when passed."""

        def __get__(self, obj: Any, owner: Any) -> float: ...
        def __set__(self, obj: Any, value: float | Schedule) -> None: ...

    class EstimableNumber:
        """A number when read; a number, a schedule or "auto" when passed."""

        def __get__(self, obj: Any, owner: Any) -> float: ...
        def __set__(self, obj: Any, value: float | Schedule | Auto | Literal["auto"]) -> None: ...

else:
    Number = float | Schedule
    EstimableNumber = float | Schedule | Auto | Literal["auto"]


def interval(
    low: float | None, high: float | None, closed: Closed, auto: Quantity | None = None
) -> list:
    """Return the constraint of a hyperparameter: a number in a range, or a schedule.

    Parameters
    ----------
    low, high : float or None
        The ends of the range; None is infinite.
    closed : {"left", "right", "both", "neither"}
        Which ends belong to it.
    auto : {"alpha", "tau_plus"}, default=None
        The quantity that "auto" estimates; with None, "auto" is not valid.

    See Also
    --------
    Auto : How and when estimates are updated.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.schedules import interval
    >>> from skcontrast.losses import Loss
    >>> class Shrunk(Loss):
    ...     _parameter_constraints = {"prior": interval(0, 1, "left", auto="tau_plus")}
    ...
    ...     def __init__(self, prior=0.1):
    ...         self.prior = prior
    ...
    ...     def coefficients(self):
    ...         return 1 - self.prior, 0.0
    >>> embedder = ContrastiveEmbedder(loss=Shrunk(prior="auto"), max_epochs=6, random_state=0)
    >>> sorted(embedder.fit(torch.eye(16).numpy()).estimates_)
    ['prior']
    """
    estimated = [] if auto is None else [Estimated(auto)]
    return [Interval(Real, low, high, closed=closed), Schedule, *estimated]


def at_progress(obj: _P, progress: float) -> _P:
    """Return a copy of a component in which every schedule is replaced by its value.

    Parameters
    ----------
    obj : ParameterObject
        A loss or a similarity.
    progress : float
        Progress of the fit in [0, 1].

    Returns
    -------
    obj : ParameterObject
        A clone without schedules, with validated values.

    Examples
    --------
    >>> from skcontrast.losses import DCL
    >>> from skcontrast.schedules import Linear, at_progress
    >>> at_progress(DCL(tau_plus=Linear(0.0, 0.4)), 0.5)
    DCL(tau_plus=0.2)
    """
    check_component(obj, ParameterObject, owner="at_progress", parameter="obj")
    values = obj.get_params().items()
    scheduled = {name: value(progress) for name, value in values if isinstance(value, Schedule)}
    # get_params also has the parameters of schedules, which vanish with them.
    resolved = clone(obj).set_params(**scheduled)
    validate_parameters(resolved)
    return resolved


def check_hyperparameters(component: ParameterObject) -> None:
    """Validate the hyperparameters of a component that is used outside of `fit`.

    Raises
    ------
    ValueError
        If one is a schedule or "auto", or is outside its range.
    """
    owner = type(component).__name__
    for name, p in estimable_parameters(component).items():
        if is_auto(p.value):
            raise ValueError(
                f"The {name!r} parameter of {owner} is estimated from the data in fit only; "
                "outside of it pass a number, such as "
                f"skcontrast.estimation.estimate_alpha_and_tau_plus(ranks)[{p.quantity!r}].value."
            )
    for name, value in component.get_params().items():
        if isinstance(value, Schedule):
            raise ValueError(
                f"The {name!r} parameter of {owner} is a schedule; outside of fit it needs a "
                "number: pass skcontrast.schedules.at_progress(obj, progress)."
            )
    validate_parameters(component)


def auto_parameters(loss: Any) -> dict[str, Auto]:
    """Return the settings of a loss's hyperparameters that are "auto", by name."""
    return {
        name: declared.value if isinstance(declared.value, Auto) else Auto()
        for name, declared in estimable_parameters(loss).items()
        if is_auto(declared.value)
    }
