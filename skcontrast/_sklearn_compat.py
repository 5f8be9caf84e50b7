"""The only place that imports names scikit-learn does not promise to keep."""

from __future__ import annotations

import functools
import inspect
from numbers import Integral

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import (
    Interval,
    InvalidParameterError,
    StrOptions,
    validate_parameter_constraints,
)

__all__ = [
    "IntOptions",
    "Interval",
    "InvalidParameterError",
    "ParameterObject",
    "PositiveInts",
    "StrOptions",
    "check_component",
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
