"""Parameter objects, and checks of what is passed as a parameter."""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from typing import Any

from .._sklearn_compat import InvalidParameterError, StrOptions
from ._classes import check_names
from ._constraints import brief, check_values
from ._parameters import Declared


class ParameterObject(Declared):
    """A choice with hyperparameters, passed as one parameter of an estimator.

    Losses, similarities, frameworks, encoders and schedules are parameter objects: they have
    ``get_params``, ``set_params``, ``clone`` and ``repr`` as every scikit-learn object, so that
    ``embedder__loss__tau_plus`` is a name that a grid search can reach. Their values are checked
    against ``_parameter_constraints`` where they are used, never in ``__init__``.
    """

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


def check_constraints(obj: ParameterObject) -> None:
    """Raise TypeError if a class does not say which values a parameter may have."""
    cls = type(obj)
    for name in cls._get_param_names():
        if name in obj._parameter_constraints:
            continue
        advice = (
            f"Add it to _parameter_constraints, such as {name!r}: interval(0, 1, 'left') with "
            "skcontrast.schedules.interval, with auto='tau_plus' or auto='alpha' if it may be "
            f"estimated; or {name!r}: 'no_validation'."
        )
        for base in cls.__mro__:
            if name in vars(base).get("_parameter_constraints", ()):
                inherited = f"**{base.__name__}._parameter_constraints"
                advice = f"Keep those of its base: _parameter_constraints = {{{inherited}, ...}}."
                break
        raise TypeError(
            f"{cls.__name__} does not say which values its parameter {name!r} may have. {advice}"
        )


def validate_parameters(obj: Any) -> None:
    """Raise ``InvalidParameterError`` if a parameter of `obj` is outside its range.

    Parameter objects inside `obj` are checked too, at any depth.
    """
    parameters = obj.get_params(deep=False)
    if isinstance(obj, ParameterObject):
        obj._check_protocol()
    try:
        check_values(obj._parameter_constraints, parameters, type(obj).__name__)
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
            f"got {brief(value)} of type {type(value).__name__}.{_instead(value, base, parameter)}"
        )
    return value


def _instead(value: Any, base: type, parameter: str) -> str:
    """Return the end of a message: what to pass instead of a string or a function."""
    if isinstance(value, str):
        return choices_instead(value, base, parameter)
    if inspect.isroutine(value):
        return f" Derive a class from {base.__name__}: see 'Your own pieces' in the user guide."
    return ""
