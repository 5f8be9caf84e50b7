"""Names that do not exist: which one was meant, or what is there instead."""

from __future__ import annotations

import difflib
import functools
import inspect
import sys
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

_F = TypeVar("_F", bound=Callable[..., Any])


def advice_on(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about a name that is none of the known ones.

    Parameters
    ----------
    name : str
        What the user wrote.
    known : iterable of str
        The names of the parameters.
    """
    known = list(known)
    if meant := difflib.get_close_matches(name, known, 1, 0.7):
        return f". Did you mean {meant[0]!r}?"
    return f": its parameters are {', '.join(known)}." if known else ": it has no parameters."


def names_checked(function: _F) -> _F:
    """Return a function that says, if an argument does not exist, which one may be meant."""
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return function
    known = [p.name for p in parameters if p.name != "self"]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for name in kwargs:
            if name not in known:
                is_class = function.__name__ == "__init__"
                owner = type(args[0]).__name__ if is_class else function.__qualname__
                advice = advice_on(name, known)
                raise TypeError(f"{owner}() got an unexpected keyword argument {name!r}{advice}")
        return function(*args, **kwargs)

    return cast(_F, call)


def choices_instead(value: str, base: type, parameter: str) -> str:
    """Return the end of a message: which objects, derived from `base`, there are for a string."""
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
