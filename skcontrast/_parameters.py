"""Parameter objects, the ranges of their parameters, and their checks."""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from fractions import Fraction
from numbers import Integral
from typing import Any, Literal

import numpy as np

from ._sklearn_compat import Interval as _Interval
from ._sklearn_compat import InvalidParameterError, StrOptions, validate_parameter_constraints
from ._unknown_names import NamesChecked

# Names that resemble each other this much are taken for a misspelling.
_CLOSE = 0.85


class ParameterObject(NamesChecked):
    """A choice with hyperparameters, passed as one parameter of an estimator.

    Losses, similarities, frameworks, encoders and schedules are parameter objects: they have
    ``get_params``, ``set_params``, ``clone`` and ``repr`` as every scikit-learn object, so that
    ``embedder__loss__tau_plus`` is a name that a grid search can reach. Their values are checked
    against ``_parameter_constraints`` where they are used, never in ``__init__``.
    """

    _parameter_constraints: dict = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        check_names(cls)

    @classmethod
    @functools.cache
    def _get_param_names(cls) -> list[str]:
        # scikit-learn reads the signature at each call, which shows in a loss of small batches.
        return super()._get_param_names()

    def validate(self) -> None:
        """Raise ValueError for combinations of values that the constraints cannot exclude."""

    def _check_protocol(self) -> None:
        """Raise TypeError for a class that lacks what its base class needs."""


def belongs_to_package(thing: Any) -> bool:
    """Return whether a class or function is defined in this package, not by a user."""
    return str(getattr(thing, "__module__", "")).partition(".")[0] == __package__


def check_names(cls: type) -> None:
    """Raise TypeError for a user's class with a name that is nearly one of its base class.

    Such a method would never be called, nor would those of other libraries, such as ``forward``.
    A helper that the class itself reads may have any name. An overridden method must take its
    arguments in the order in which they are passed.
    """
    if belongs_to_package(cls):
        return
    bases = cls.__mro__[1:]
    known = [
        name
        for base in bases
        if belongs_to_package(base)
        for name in vars(base)
        if not name.startswith("_") or name == "_parameter_constraints"
    ]
    mixins = [base for base in bases if base.__module__ == cls.__module__]
    own = [cls, *mixins]
    for name in dict.fromkeys(name for owner in own for name in vars(owner)):
        owner = next((b for b in bases if b not in mixins and name in vars(b)), None)
        if owner is not None:
            _check_order(cls, name, getattr(cls, name), vars(owner)[name])
            continue
        if name in ("forward", "__call__"):
            raise TypeError(
                f"{cls.__name__}.{name} would never be called. Override the methods that the "
                f"documentation of {bases[0].__name__} names."
            )
        is_public = not name.startswith("_") or name.startswith("_param")
        close = difflib.get_close_matches(name, known, 1, _CLOSE) if is_public else []
        if close and not any(name in _names_read_by(owner) for owner in own):
            raise TypeError(
                f"{cls.__name__}.{name} would never be used: did you mean {close[0]}? If not, "
                "begin its name with an underscore."
            )


def _check_order(cls: type, name: str, method: Any, replaced: Any) -> None:
    """Raise TypeError for a method that has two arguments of the one it replaces swapped."""
    if name.startswith("_") or not (inspect.isfunction(method) and inspect.isfunction(replaced)):
        return
    codes = inspect.unwrap(method).__code__, inspect.unwrap(replaced).__code__
    takes, passed = (code.co_varnames[1 : code.co_argcount] for code in codes)
    if [a for a in takes if a in passed] != [a for a in passed if a in takes]:
        raise TypeError(
            f"{cls.__name__}.{name} takes {', '.join(takes)}, but is called with "
            f"{', '.join(passed)}, in this order."
        )


def _names_read_by(cls: type) -> set[str]:
    """Return the names of attributes and globals that the functions of a class read."""
    functions = [inspect.unwrap(getattr(f, "fget", None) or f) for f in vars(cls).values()]
    codes = [f.__code__ for f in functions if inspect.isfunction(f)]
    for code in codes:
        codes += [constant for constant in code.co_consts if inspect.iscode(constant)]
    return {name for code in codes for name in code.co_names}


def check_constraints(obj: ParameterObject) -> None:
    """Raise TypeError if a class does not say which values a parameter may have."""
    for name in type(obj)._get_param_names():
        if name not in obj._parameter_constraints:
            raise TypeError(
                f"{type(obj).__name__} does not say which values its parameter {name!r} may have. "
                f"Add it to _parameter_constraints, such as {name!r}: interval(0, 1, 'left') with "
                "skcontrast.schedules.interval, with auto='tau_plus' or auto='alpha' if it may be "
                f"estimated; or {name!r}: 'no_validation'."
            )


def validate_parameters(obj: Any) -> None:
    """Raise ``InvalidParameterError`` if a parameter of `obj` is outside its range.

    Parameter objects inside `obj` are checked too, at any depth.
    """
    parameters = obj.get_params(deep=False)
    if isinstance(obj, ParameterObject):
        obj._check_protocol()
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
        for constraint in obj._parameter_constraints.get(name, ()):
            if not isinstance(value, str) or not isinstance(constraint, StrOptions):
                continue
            close = difflib.get_close_matches(value.lower(), constraint.options, 1, 0.7)
            if close and value not in constraint.options:
                return f" Did you mean {close[0]!r}?"
    return ""


def choices_instead(value: str, base: type, parameter: str) -> str:
    """Return the end of a message: which objects there are instead of a string.

    Parameters
    ----------
    value : str
        The string that the user passed.
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
            f"got {value!r} of type {type(value).__name__}.{_instead(value, base, parameter)}"
        )
    return value


def _instead(value: Any, base: type, parameter: str) -> str:
    """Return the end of a message: what to pass instead of a string or a function."""
    if isinstance(value, str):
        return choices_instead(value, base, parameter)
    if inspect.isroutine(value):
        return f" Derive a class from {base.__name__}: see 'Your own pieces' in the user guide."
    return ""


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
