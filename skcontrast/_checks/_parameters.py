"""Parameters that are declared once, in the body of a class: name, type, default and range."""

from __future__ import annotations

import inspect
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
    """Give a class whose body declares parameters an ``__init__`` that stores them."""
    declared = {name: one for name, one in vars(cls).items() if isinstance(one, _Parameter)}
    later = [name for name, one in vars(cls).items() if isinstance(one, _Learned)]
    for name in [*declared, *later]:
        delattr(cls, name)
    if not declared:
        return
    constraints = {name: one.constraints for name, one in declared.items()}
    cls._parameter_constraints = constraints  # type: ignore[attr-defined]
    known = [inspect.Parameter(n, p.kind, default=p.default) for n, p in declared.items()]
    itself = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    signature = inspect.Signature([itself, *known])

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


@dataclass_transform(field_specifiers=(parameter, learned))
class Declared(NamesChecked):
    """The base of objects whose classes declare parameters in their body."""

    _parameter_constraints: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        _add_constructor(cls)
        super().__init_subclass__(**kwargs)
