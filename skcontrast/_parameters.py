"""Parameter objects, and all that a new one needs: ranges, schedules, estimates, checks."""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from fractions import Fraction
from numbers import Integral, Real
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, cast, get_args

import numpy as np
from sklearn.base import BaseEstimator, clone

from ._sklearn_compat import (
    Interval as _Interval,
)
from ._sklearn_compat import (
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

__all__ = [
    "Auto",
    "Estimable",
    "EstimableNumber",
    "Estimated",
    "IntOptions",
    "Interval",
    "InvalidParameterError",
    "Number",
    "Numbers",
    "ParameterObject",
    "PositiveInts",
    "Schedule",
    "StrOptions",
    "at_progress",
    "check_component",
    "check_numbers",
    "choices_instead",
    "estimable_parameters",
    "interval",
    "is_auto",
    "number",
    "parameter_owners",
    "validate_parameters",
]


_P = TypeVar("_P", bound="ParameterObject")


class ParameterObject(BaseEstimator):
    """A choice with hyperparameters, passed as one parameter of an estimator.

    Losses, similarities, frameworks, encoders and schedules are parameter objects: they have
    ``get_params``, ``set_params``, ``clone`` and ``repr`` as every scikit-learn object, so that
    ``embedder__loss__tau_plus`` is a name that a grid search can reach. Their values are checked
    against ``_parameter_constraints`` where they are used, never in ``__init__``.
    """

    _parameter_constraints: dict = {}

    @classmethod
    @functools.cache
    def _get_param_names(cls) -> list[str]:
        # scikit-learn reads the signature at each call, which shows in a loss of small batches.
        return super()._get_param_names()

    def validate(self) -> None:
        """Raise ValueError for combinations of values that the constraints cannot exclude."""


def validate_parameters(obj: Any) -> None:
    """Raise ``InvalidParameterError`` if a parameter of `obj` lies outside its range.

    Parameter objects inside `obj` are checked too, at any depth.
    """
    parameters = obj.get_params(deep=False)
    try:
        validate_parameter_constraints(
            obj._parameter_constraints, parameters, caller_name=type(obj).__name__
        )
    except InvalidParameterError as error:
        raise InvalidParameterError(f"{error}{_spelling(obj, parameters)}") from None
    for value in obj.get_params(deep=False).values():
        if isinstance(value, ParameterObject):
            validate_parameters(value)
    if hasattr(obj, "validate"):
        obj.validate()


def _spelling(obj: Any, parameters: dict[str, Any]) -> str:
    """Return the end of a message about parameters: how a misspelled string is spelled."""
    for name, value in parameters.items():
        constraints = obj._parameter_constraints.get(name)
        if not isinstance(value, str) or not isinstance(constraints, list):
            continue
        options = [
            option
            for constraint in constraints
            if isinstance(constraint, StrOptions)
            for option in constraint.options
            if isinstance(option, str)
        ]
        close = difflib.get_close_matches(value.lower(), options, 1, 0.7)
        if value not in options and close:
            return f" Did you mean {close[0]!r}?"
    return ""


def choices_instead(value: str, base: type, parameter: str) -> str:
    """Return the end of a message: which objects there are instead of a string.

    Parameters
    ----------
    value : str
        What the user passed.
    base : type
        The class that an admissible value derives from.
    parameter : str
        The name of the parameter.
    """
    names = {name.lower(): name for name in _public_classes(base)}
    close = difflib.get_close_matches(value.lower().replace("_", ""), names, 1, 0.6)
    if close:
        return f" Write {parameter}={names[close[0]]}() instead."
    return f" Choose from {', '.join(f'{name}()' for name in names.values())}." if names else ""


def parameter_owners(base: type, name: str) -> list[str]:
    """Return the names of the public classes derived from `base` that have a parameter."""
    classes = _public_classes(base)
    return [one for one, cls in classes.items() if name in inspect.signature(cls).parameters]


def _public_classes(base: type) -> dict[str, type]:
    """Return by name the classes derived from `base` in the subpackage that defines it."""
    package = sys.modules[base.__module__.partition("._")[0]]
    public = {name: getattr(package, name) for name in sorted(getattr(package, "__all__", ()))}
    return {
        name: thing
        for name, thing in public.items()
        if inspect.isclass(thing) and issubclass(thing, base) and thing is not base
    }


def check_component(
    value: Any, base: type, *, owner: str, parameter: str, default: type | None = None
) -> Any:
    """Return `value`, or ``default()`` for None, after checking that it is an instance of `base`.

    Parameters
    ----------
    value : object
        The value that the user passed.
    base : type
        The class that an admissible value derives from.
    owner, parameter : str
        Names of the estimator and of its parameter, for the message.
    default : type, default=None
        Built when `value` is None.

    Raises
    ------
    TypeError
        If `value` is a class instead of an instance, or an instance of something else.
    """
    if value is None and default is not None:
        return default()
    if inspect.isclass(value) and issubclass(value, base):
        raise TypeError(
            f"The {parameter!r} parameter of {owner} must be an instance, got the class "
            f"{value.__name__}. Write {parameter}={value.__name__}() instead."
        )
    if not isinstance(value, base):
        raise TypeError(
            f"The {parameter!r} parameter of {owner} must be an instance of {base.__name__}, "
            f"got {value!r} of type {type(value).__name__}."
            f"{choices_instead(value, base, parameter) if isinstance(value, str) else ''}"
        )
    return value


class Interval(_Interval):
    """Constraint on a hyperparameter: a finite number in a range; a bool is not a number.

    An int without an upper limit may be as large as 2³¹ − 1, so that sizes fit everywhere.

    Parameters
    ----------
    type : {numbers.Integral, numbers.Real}
        The type of the number.
    left, right : float or None
        The ends of the range; None is infinite.
    closed : {"left", "right", "both", "neither"}
        Which ends belong to it.
    """

    def __init__(
        self,
        type: type,
        left: float | None,
        right: float | None,
        *,
        closed: Literal["left", "right", "both", "neither"],
    ):
        if type is Integral and right is None:
            right, closed = 2**31 - 1, "both" if closed == "left" else "right"
        super().__init__(type, left, right, closed=closed)

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether a value is such a number."""
        if isinstance(val, (bool, Fraction)) or not super().is_satisfied_by(val):
            return False
        # Larger ints have no place in a tensor.
        return bool(abs(val) < (2**63 if isinstance(val, Integral) else np.inf))


class PositiveInts(Interval):
    """Constraint on a hyperparameter: a tuple of positive ints, of at least `min_length`."""

    def __init__(self, min_length: int = 0):
        super().__init__(Integral, 1, None, closed="left")
        self.min_length = min_length

    def is_satisfied_by(self, val: Any) -> bool:
        return (
            isinstance(val, (tuple, list))
            and len(val) >= self.min_length
            and all(map(super().is_satisfied_by, val))
        )

    def __str__(self) -> str:
        length = f" of length {self.min_length} or more" if self.min_length else ""
        return f"a tuple{length} of ints in the range [1, {self.right}]"


class Numbers(Interval):
    """Constraint on a hyperparameter: a sequence of numbers in a range.

    Parameters
    ----------
    of : Interval
        The range of each number.
    """

    def __init__(self, of: Interval):
        super().__init__(of.type, of.left, of.right, closed=of.closed)

    def is_satisfied_by(self, val: Any) -> bool:
        """Return whether a value is a sequence of such numbers."""
        is_row = isinstance(val, (list, tuple, range)) or getattr(val, "ndim", 0) == 1
        return is_row and all(map(super().is_satisfied_by, val))

    def __str__(self) -> str:
        return f"a sequence, each item {super().__str__()}"


class IntOptions(StrOptions):
    """Constraint on a hyperparameter: one of a few ints."""

    def __init__(self, *options: int):
        super().__init__(set())
        self.type = Integral
        self.options = options


class Schedule(ParameterObject):
    """Base class of the schedules: a callable on progress in [0, 1] that returns a float.

    A schedule of one's own implements ``__call__`` and takes its settings in ``__init__``.

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
        raise NotImplementedError


class Auto(ParameterObject):
    """A hyperparameter that is estimated from the data while the embedder trains.

    May stand for ``alpha``, ``tau_plus``, ``sharpness`` and ``floor`` of losses, and for every
    hyperparameter of a loss of one's own whose constraint says which of them it is; the string
    ``"auto"`` is short for ``Auto()``. Every few epochs the value is estimated again from the
    ranks of the positives, pooled over an epoch, as in
    :func:`skcontrast.estimation.estimate_alpha`. If `fit` gets classes as y, the estimates are
    those of :func:`skcontrast.estimation.alpha_from_auc` and
    :func:`skcontrast.estimation.tau_plus_from_labels` instead, the latter from the first epoch on.
    A sharpness and a floor are estimated from classes only: they are those of the least Brier
    score, as in :func:`skcontrast.estimation.estimate_soft_ring`.

    If classes are known for some samples only, they are spread to the others through the
    representation at every estimate, as by :class:`skcontrast.losses.SemiSupCon`. The shares of
    the spread classes give τ⁺, so that the labeled samples need not be drawn at random: five of
    each class will do. Labels that are drawn from the probabilities of the classes give the rest,
    unless the loss reads labels itself; then only given labels do.

    Parameters
    ----------
    every : int, default=5
        Epochs between two estimates.
    initial : float, default=None
        Value until the first estimate, ≥ 0; None is .5 for α and 0 for a sharpness, which trust
        no ranks, 0 for a floor and .1 for τ⁺.
    n_classes : int, default=None
        The number of classes, at least 2, where it is all that is known: without y, τ⁺ is
        1/n_classes, as for classes of equal size, from the first epoch on. For ``tau_plus`` only.

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

    _parameter_constraints: dict = {
        "every": [Interval(Integral, 1, None, closed="left")],
        "initial": [Interval(Real, 0, None, closed="left"), None],
        "n_classes": [Interval(Integral, 2, None, closed="left"), None],
    }

    def __init__(self, every: int = 5, initial: float | None = None, n_classes: int | None = None):
        self.every = every
        self.initial = initial
        self.n_classes = n_classes


# A hyperparameter that may be scheduled, and one that may be estimated as well.
Number: TypeAlias = float | Schedule
EstimableNumber: TypeAlias = float | Schedule | Auto | Literal["auto"]


Quantity: TypeAlias = Literal["alpha", "floor", "sharpness", "tau_plus"]


def number(value: EstimableNumber) -> float:
    """Return a hyperparameter as the number that it is wherever a loss or score is computed.

    Schedules and estimates are replaced by their values before, see `at_progress`; here only the
    type changes.
    """
    return cast(float, value)


class Estimated(StrOptions):
    """Constraint on a hyperparameter: "auto" or an ``Auto``, as an estimate of `quantity`.

    Parameters
    ----------
    quantity : {"alpha", "floor", "sharpness", "tau_plus"}
        The quantity that the hyperparameter stands for, whatever its own name.
    """

    def __init__(self, quantity: Quantity):
        if quantity not in get_args(Quantity):
            raise ValueError(f"Only {get_args(Quantity)} can be estimated, not {quantity!r}.")
        super().__init__({"auto"})
        self.quantity = quantity

    def is_satisfied_by(self, val: Any) -> bool:
        return is_auto(val)

    def __str__(self) -> str:
        return "the str 'auto' or an instance of 'skcontrast.schedules.Auto'"


class Estimable(NamedTuple):
    """A hyperparameter, of an object or of one inside it, that may be estimated from the data.

    Attributes
    ----------
    quantity : {"alpha", "floor", "sharpness", "tau_plus"}
        The quantity that it stands for.
    owner : str
        Where it stands: the part of its name before its own, such as ``"negatives__"``.
    value : object
        Its value at present.
    """

    quantity: str
    owner: str
    value: Any


def estimable_parameters(obj: ParameterObject, owner: str = "") -> dict[str, Estimable]:
    """Return by name the hyperparameters of an object that its constraints call estimable.

    Raises
    ------
    InvalidParameterError
        If a hyperparameter without any constraint is to be estimated: it does not say as what.
    """
    found = {}
    for name, value in obj.get_params(deep=False).items():
        constraints = obj._parameter_constraints.get(name)
        declared = [c for c in constraints or () if isinstance(c, Estimated)]
        if declared:
            found[owner + name] = Estimable(declared[0].quantity, owner, value)
        elif constraints is None and is_auto(value):
            raise InvalidParameterError(
                f"The {name!r} parameter of {type(obj).__name__} cannot be estimated, got "
                f"{value!r}: its class does not declare in _parameter_constraints which quantity "
                f"it stands for. Add {name!r}: interval(0, 1, 'left', auto='tau_plus'), or "
                "auto='alpha'."
            )
        elif isinstance(value, ParameterObject):
            found.update(estimable_parameters(value, f"{owner}{name}__"))
    return found


def is_auto(value: Any) -> bool:
    """Return whether a value stands for an estimate from the data."""
    return isinstance(value, Auto) or (isinstance(value, str) and value == "auto")


def interval(
    low: float | None,
    high: float | None,
    closed: Literal["left", "right", "both", "neither"],
    auto: Quantity | None = None,
) -> list:
    """Return the constraint of a hyperparameter that is a number in a range or a schedule.

    Parameters
    ----------
    low, high : float or None
        The ends of the range; None is infinite.
    closed : {"left", "right", "both", "neither"}
        Which ends belong to it.
    auto : {"alpha", "floor", "sharpness", "tau_plus"}, default=None
        The quantity whose estimate the hyperparameter becomes if it is "auto"; None if it may not
        be "auto".

    See Also
    --------
    Auto : How and when the estimates are made.

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
    if auto is not None and not (isinstance(auto, str) and auto in get_args(Quantity)):
        raise ValueError(f"auto must be None or one of {get_args(Quantity)}, got {auto!r}.")
    for name, end in (("low", low), ("high", high)):
        if not (end is None or Interval(Real, None, None, closed="neither").is_satisfied_by(end)):
            raise ValueError(f"{name} must be a finite number or None, got {end!r}.")
    if low is not None and high is not None and high <= low:
        raise ValueError(f"high must be above low, got {low!r} and {high!r}.")
    if not (isinstance(closed, str) and closed in ("left", "right", "both", "neither")):
        raise ValueError(f"closed must be 'left', 'right', 'both' or 'neither', got {closed!r}.")
    estimated = [] if auto is None else [Estimated(auto)]
    return [Interval(Real, low, high, closed=closed), Schedule, *estimated]


def at_progress(obj: _P, progress: float) -> _P:
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
    check_component(obj, ParameterObject, owner="at_progress", parameter="obj")
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


_ESTIMATORS = {
    "alpha": "estimate_alpha(ranks)",
    "floor": "estimate_soft_ring(sample)",
    "sharpness": "sharpness_from_auc(auc, tau_plus)",
    "tau_plus": "estimate_tau_plus(ranks)",
}


def check_numbers(component: ParameterObject) -> None:
    """Check the hyperparameters of a component that is used outside of `fit`.

    Raises
    ------
    ValueError
        If one is a schedule or "auto", or lies outside its range.
    """
    owner = type(component).__name__
    for name, found in estimable_parameters(component).items():
        if is_auto(found.value):
            raise ValueError(
                f"The {name!r} parameter of {owner} is estimated from the data in fit only; "
                "outside of it pass a number, such as "
                f"skcontrast.estimation.{_ESTIMATORS[found.quantity]}.value."
            )
    for name, value in component.get_params().items():
        if isinstance(value, Schedule):
            raise ValueError(
                f"The {name!r} parameter of {owner} is a schedule; outside of fit it needs a "
                "number: pass skcontrast.schedules.at_progress(obj, progress)."
            )
    validate_parameters(component)
