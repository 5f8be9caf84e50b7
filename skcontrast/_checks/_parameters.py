"""Parameters that are declared once, in the body of a class: name, type, default and range."""

from __future__ import annotations

import functools
import inspect
from dataclasses import is_dataclass
from typing import Any, ClassVar, Literal, NamedTuple, Self, dataclass_transform

from sklearn.base import BaseEstimator

from .._sklearn_compat import StrOptions
from ._constraints import brief, check_values
from ._names import advice_on, names_checked

_REQUIRED = inspect.Parameter.empty


class _Parameter(NamedTuple):
    default: Any
    constraints: Any
    kind: Any


def parameter(
    constraints: Any = "no_validation", *, default: Any = _REQUIRED, kw_only: bool = False
) -> Any:
    """Declare a parameter of the class in whose body this stands.

    Parameters
    ----------
    constraints : list, set of str or "no_validation"
        The values that it may have, as in scikit-learn's ``_parameter_constraints``, or these
        strings; a set may hold None.
    default : object
        The default value, which must not be mutable; without it, the parameter is required.
    kw_only : bool, default=False
        Whether it is passed by name only.
    """
    kind = inspect.Parameter.KEYWORD_ONLY if kw_only else inspect.Parameter.POSITIONAL_OR_KEYWORD
    if not isinstance(constraints, (list, set)) and constraints != "no_validation":
        raise TypeError(f"constraints must be a list or a set, got {constraints!r}.")
    if default.__hash__ is None:
        raise ValueError(f"All objects would share the default {default!r}: use None or a tuple.")
    if isinstance(constraints, set):
        names, rest = constraints - {None}, [None] if None in constraints else []
        constraints = [StrOptions(names), *rest]
    return _Parameter(default, constraints, kind)


class _Learned:
    """An attribute that the constructor does not set."""


def learned(*, init: Literal[False] = False) -> Any:
    """Declare an attribute that is set later, if at all."""
    return _Learned()


def _add_constructor(cls: type[Declared]) -> None:
    """Give a class whose body declares parameters an ``__init__`` that stores them.

    Parameters of its bases come first, as in a dataclass.
    """
    own = {name: one for name, one in vars(cls).items() if isinstance(one, _Parameter)}
    for name in [*own, *(name for name, one in vars(cls).items() if isinstance(one, _Learned))]:
        delattr(cls, name)
    _check_body(cls)
    if not own:
        return
    declared = cls._declared_parameters = {**cls._declared_parameters, **own}
    cls._parameter_constraints = {name: one.constraints for name, one in declared.items()}
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    known = [inspect.Parameter(n, p.kind, default=p.default) for n, p in declared.items()]
    signature = inspect.Signature([itself, *sorted(known, key=lambda one: one.kind)])

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            given = signature.bind(self, *args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{type(self).__name__}() {error}") from None
        given.apply_defaults()
        for name in declared:
            setattr(self, name, given.arguments[name])

    __init__.__signature__ = signature  # type: ignore[attr-defined]
    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    __init__.__module__ = cls.__module__
    cls.__init__ = __init__  # type: ignore[method-assign]


def _check_body(cls: type) -> None:
    """Refuse a class attribute with the name of an inherited parameter, which it would not set."""
    if "__init__" in vars(cls) or is_dataclass(cls):
        return
    names = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    for name, value in vars(cls).items():
        if name in names and not hasattr(value, "__set__"):
            raise TypeError(
                f"{cls.__name__}.{name} would never be used, because {name} is a parameter of its "
                "base class: give it another default in an __init__."
            )


@dataclass_transform(field_specifiers=(parameter, learned))
class Declared(BaseEstimator):
    """The base of objects whose classes declare parameters in their body.

    Their constructors and `set_params` say which name may be meant.
    """

    _declared_parameters: ClassVar[dict[str, _Parameter]] = {}
    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        _add_constructor(cls)
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls):
            cls.__init__ = names_checked(cls.__init__)  # type: ignore[method-assign]

    @names_checked
    def __init__(self) -> None:
        super().__init__()

    def set_params(self, **params: Any) -> Self:
        """Set parameters by name; ``component__parameter`` reaches into a component."""
        known, owner = self.get_params(deep=False), type(self).__name__
        for name, _, nested in (name.partition("__") for name in params):
            if name not in known:
                advice = advice_on(name, known, is_set=True)
                raise ValueError(f"Invalid parameter {name!r} for estimator {owner}{advice}")
            value = params.get(name, known[name])
            if nested and not hasattr(value, "set_params"):
                is_list = isinstance(value, (list, tuple))
                advice = "set the list" if is_list else f"pass an object as {name} first"
                raise ValueError(
                    f"The {name!r} parameter of {owner} is {brief(value)} and has no parameters "
                    f"to set: {advice}."
                )
        return super().set_params(**params)


class ParameterObject(Declared):
    """A choice with hyperparameters, passed as one parameter of an estimator.

    Losses, similarities, frameworks, encoders and schedules are parameter objects: they have
    ``get_params``, ``set_params``, ``clone`` and ``repr`` as every scikit-learn object, so that
    ``embedder__loss__tau_plus`` is a name that a grid search can reach. Their values are checked
    against ``_parameter_constraints`` where they are used, never in ``__init__``.
    """

    @classmethod
    @functools.cache
    def _get_param_names(cls) -> list[str]:
        # scikit-learn reads the signature at each call, which shows in a loss of small batches.
        return super()._get_param_names()

    def validate(self) -> None:
        """Raise ValueError for combinations of values that the constraints cannot exclude."""

    def _check_protocol(self) -> None:
        """Raise TypeError for a class that lacks what its base class needs."""


def validate_parameters(obj: Any) -> None:
    """Raise ``InvalidParameterError`` if a parameter of `obj` is outside its range.

    Parameter objects inside `obj` are checked too, at any depth.
    """
    if isinstance(obj, ParameterObject):
        obj._check_protocol()
    parameters = obj.get_params(deep=False)
    check_values(obj._parameter_constraints, parameters, type(obj).__name__)
    for value in parameters.values():
        if isinstance(value, ParameterObject):
            validate_parameters(value)
    if hasattr(obj, "validate"):
        obj.validate()
