"""Parameters that are declared once, in the body of a class: name, type, default and range."""

from __future__ import annotations

import inspect
from dataclasses import is_dataclass
from typing import Any, ClassVar, Literal, NamedTuple, dataclass_transform

from .._sklearn_compat import StrOptions
from ._names import NamesChecked

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


def _add_constructor(cls: type) -> None:
    """Give a class whose body declares parameters an ``__init__`` that stores them.

    Parameters of its bases come first, as in a dataclass.
    """
    own = _declared_in(cls)
    for name in [*own, *(name for name, one in vars(cls).items() if isinstance(one, _Learned))]:
        delattr(cls, name)
    is_written = _check_body(cls, own)
    declared: dict[str, _Parameter] = {}
    for base in reversed(cls.__mro__[1:]):
        declared |= _declared_in(base)
    if is_written or (not own and declared == getattr(cls, "_declared_parameters", {})):
        return
    declared |= own
    cls._declared_parameters = declared  # type: ignore[attr-defined]
    constraints = {name: one.constraints for name, one in declared.items()}
    cls._parameter_constraints = constraints  # type: ignore[attr-defined]
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
    cls.__init__ = __init__  # type: ignore[misc]


def _declared_in(cls: type) -> dict[str, _Parameter]:
    """Return the parameters of a class that were declared, or of a mixin those in its body."""
    body = {name: one for name, one in vars(cls).items() if isinstance(one, _Parameter)}
    return vars(cls).get("_declared_parameters", body)


def _check_body(cls: type, own: dict[str, _Parameter]) -> bool:
    """Return whether the ``__init__`` of a class is written out; refuse what would be lost."""
    written = next(one for one in cls.__mro__ if "__init__" in vars(one))
    is_written = not (written is NamesChecked or "_declared_parameters" in vars(written))
    lost = [f"{written.__name__}.__init__"] if is_written else []
    lost += [one for one in ("_parameter_constraints", "__post_init__") if one in vars(cls)]
    if own and lost:
        raise TypeError(
            f"{cls.__name__} declares parameters in its body, so {lost[0]} would not be used: "
            "write one or the other."
        )
    if "__init__" in vars(cls) or is_dataclass(cls):
        return is_written
    names = inspect.signature(cls.__init__).parameters  # type: ignore[misc]
    for name, value in vars(cls).items():
        if name in names and not hasattr(value, "__set__"):
            raise TypeError(
                f"{cls.__name__}.{name} would never be used, because {name} is a parameter of "
                f"{written.__name__}: give it another default in an __init__."
            )
    return is_written


@dataclass_transform(field_specifiers=(parameter, learned))
class Declared(NamesChecked):
    """The base of objects whose classes declare parameters in their body."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        _add_constructor(cls)
        super().__init_subclass__(**kwargs)
