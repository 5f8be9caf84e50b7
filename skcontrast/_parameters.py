"""What a parameter object is, and all that a new one needs: ranges, schedules, checks."""

from __future__ import annotations

import functools
import inspect
from numbers import Integral, Real

from sklearn.base import BaseEstimator, clone

from ._sklearn_compat import (
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

__all__ = [
    "Auto",
    "IntOptions",
    "Interval",
    "InvalidParameterError",
    "ParameterObject",
    "PositiveInts",
    "Schedule",
    "StrOptions",
    "at_progress",
    "check_component",
    "check_numbers",
    "interval",
    "is_auto",
    "validate_parameters",
]


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
    def _get_param_names(cls):
        # scikit-learn reads the signature at each call, which shows in a loss of small batches.
        return super()._get_param_names()

    def validate(self):
        """Raise ValueError for combinations of values that the constraints cannot exclude."""


def validate_parameters(obj):
    """Raise ``InvalidParameterError`` if a parameter of `obj` lies outside its range.

    Parameter objects inside `obj` are checked too, at any depth.
    """
    validate_parameter_constraints(
        obj._parameter_constraints,
        obj.get_params(deep=False),
        caller_name=type(obj).__name__,
    )
    for value in obj.get_params(deep=False).values():
        if isinstance(value, ParameterObject):
            validate_parameters(value)
    if isinstance(obj, ParameterObject):
        obj.validate()


def check_component(value, base, *, owner, parameter, default=None):
    """Return `value`, or ``default()`` for None, after checking that it is an instance of `base`.

    Parameters
    ----------
    value : object
        What the user passed.
    base : type
        The class that an admissible value derives from.
    owner, parameter : str
        Names of the estimator and of its parameter, for the message.
    default : type, default=None
        Built when `value` is None.

    Raises
    ------
    TypeError
        If `value` is a class where an instance is due, or an instance of something else.
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
        )
    return value


class PositiveInts(Interval):
    """Constraint on a hyperparameter: a tuple of positive ints, of at least `min_length`."""

    def __init__(self, min_length=0):
        super().__init__(Integral, 1, None, closed="left")
        self.min_length = min_length

    def is_satisfied_by(self, val):
        return (
            isinstance(val, (tuple, list))
            and len(val) >= self.min_length
            and all(map(super().is_satisfied_by, val))
        )

    def __str__(self):
        length = f" of length {self.min_length} or more" if self.min_length else ""
        return f"a tuple{length} of ints in the range [1, inf)"


class IntOptions(StrOptions):
    """Constraint on a hyperparameter: one of a few ints."""

    def __init__(self, *options):
        super().__init__(set())
        self.type = Integral
        self.options = options


class Schedule(ParameterObject):
    """Base class of the schedules: a callable on progress in [0, 1] that returns a float."""

    def __call__(self, progress):
        raise NotImplementedError


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
                "fit it needs a number: pass skcontrast._parameters.at_progress(obj, progress)."
            )
    validate_parameters(component)
