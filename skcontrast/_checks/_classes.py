"""Classes of users: names in them that would never be used, and what their methods return."""

from __future__ import annotations

import difflib
import inspect
import reprlib
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

# Names that resemble each other this much are taken for a misspelling.
_CLOSE = 0.85
# What objects of users' classes have passed; a class that has passed so often is trusted.
_PASSED: WeakKeyDictionary[type, set[tuple]] = WeakKeyDictionary()
_OFTEN = 32


def belongs_to_package(thing: Any) -> bool:
    """Return whether a class or function is defined in this package, not by a user."""
    return str(getattr(thing, "__module__", "")).partition(".")[0] == __package__.partition(".")[0]


def check_names(cls: type) -> None:
    """Raise TypeError for a user's class with a name that is nearly one of its base class.

    One that begins with the name of a method is nearly that, too. Such a method would never be
    called, nor would those of other libraries, such as ``forward``.
    A helper that the class itself reads may have any name. An overridden method must take the
    arguments with which it is called.
    """
    if belongs_to_package(cls):
        return
    bases = cls.__mro__[1:]
    ours = [base for base in bases if belongs_to_package(base)]
    known = {name: value for base in reversed(ours) for name, value in vars(base).items()}
    hooks = [name for name in known if not name.startswith("_") or name.startswith("_parameter_c")]
    mixins = [base for base in bases if base.__module__ == cls.__module__]
    own = [cls, *mixins]
    for name in dict.fromkeys(name for owner in own for name in vars(owner)):
        if name in known:
            _check_call(cls, name, known[name])
        if any(name in vars(base) for base in bases if base not in mixins):
            continue
        if name in ("forward", "__call__"):
            raise TypeError(
                f"{cls.__name__}.{name} would never be called. Override the methods that the "
                f"documentation of {bases[0].__name__} names."
            )
        is_public = not name.startswith("_") or name.startswith("_param")
        close = difflib.get_close_matches(name, hooks, 1, _CLOSE) if is_public else []
        if is_public and inspect.isroutine(getattr(cls, name)):  # such as scores_of
            close += [one for one in hooks if name.startswith(f"{one}_")]
        if close and not any(name in _names_read_by(owner) for owner in own):
            raise TypeError(
                f"{cls.__name__}.{name} would never be used: did you mean {close[0]}? If not, "
                "begin its name with an underscore."
            )


def _check_call(cls: type, name: str, replaced: Any) -> None:
    """Raise TypeError for a method that cannot be called as the one that it replaces.

    Optional arguments keep their names, others their order. Private methods are not replaced.
    """
    if name.startswith("__") or not inspect.isfunction(replaced):
        return
    if name.startswith("_"):
        raise TypeError(
            f"{cls.__name__}.{name} would take the place of a method of the package: choose "
            "another name."
        )
    method, (_, *called) = getattr(cls, name), inspect.signature(replaced).parameters.values()
    passed = [one.name for one in called]
    if not callable(method):
        arguments = ", ".join(["self", *passed])
        raise TypeError(f"{cls.__name__}.{name} must be a method: def {name}({arguments}).")
    if not inspect.isfunction(method):
        return
    signature = inspect.signature(method)
    has_self = not isinstance(inspect.getattr_static(cls, name), staticmethod)
    takes = list(signature.parameters.values())[has_self:]
    if name == "row_loss" and len(takes) == 2:  # which needs no labels
        called = called[:2]
    # It can be called so, and no argument stands in the place of another.
    by_name = {one.name: None for one in called if one.kind is one.KEYWORD_ONLY}
    try:
        signature.bind(*[None] * (has_self + len(called) - len(by_name)), **by_name)
        fits = True
    except TypeError:
        fits = False
    for mine, given in zip(takes, called, strict=False):
        is_same = mine.name == given.name or mine.kind is mine.VAR_POSITIONAL
        fits = fits and (is_same or (mine.name not in passed and given.default is given.empty))
    if not fits:
        raise TypeError(
            f"{cls.__name__}.{name} takes {', '.join(one.name for one in takes) or 'nothing'}, "
            f"but is called with {', '.join(passed) or 'nothing'}, in this order."
        )


def _names_read_by(cls: type) -> set[str]:
    """Return the names of attributes and globals that the functions of a class read."""
    functions = [inspect.unwrap(getattr(f, "fget", None) or f) for f in vars(cls).values()]
    codes = [f.__code__ for f in functions if inspect.isfunction(f)]
    for code in codes:
        codes += [constant for constant in code.co_consts if inspect.iscode(constant)]
    return {name for code in codes for name in code.co_names}


def check_once(check: Callable[..., None], piece: Any, *where: Any) -> None:
    """Check an object, unless its class is ours or one with its parameters has passed before.

    Parameters are known by the beginning and the end of what they print, so that nothing is held.
    """
    cls = type(piece)
    if belongs_to_package(cls):
        return
    parameters = piece.get_params(deep=False).values()
    key = (*where, *((id(type(value)), _brief(value)) for value in parameters))
    passed = _PASSED.setdefault(cls, set())
    if key not in passed and len(passed) < _OFTEN:
        check(piece, *where)
        passed.add(key)


def _brief(value: Any) -> str:
    return str(id(value)) if isinstance(value, Tensor) else reprlib.repr(value)


def check_returned(owner: str, found: Any, shape: Sequence[int]) -> Tensor:
    """Return what a user's method has returned; raise unless it is a tensor of this shape."""
    is_tensor, shape = isinstance(found, Tensor), tuple(shape)
    if is_tensor and found.shape == shape:
        return found
    got = f"shape {tuple(found.shape)}" if is_tensor else type(found).__name__
    error = ValueError if is_tensor else TypeError
    raise error(f"{owner} must return a tensor of shape {shape}, got {got}.")


def are_rows(found: Any, *lengths: int) -> bool:
    """Return whether this is a floating tensor of two dimensions and one of these lengths."""
    is_floating = isinstance(found, Tensor) and found.is_floating_point()
    return is_floating and found.ndim == 2 and len(found) in lengths


def check_rows(
    call: Callable[[Any], Any], batch: Any, owner: str, samples: str, advice: str = ""
) -> Tensor:
    """Return the rows (n, width) that a module makes of a batch, each of its sample alone.

    Parameters
    ----------
    call : callable
        Applies the module to a batch.
    batch : Tensor of shape (n, ...) or any other batch
        Some samples.
    owner, samples, advice : str
        The module, the samples, and what to do if rows depend on others, for messages.
    """
    n = len(batch)
    try:
        found = call(batch)
    except Exception as error:
        raise ValueError(f"{owner} failed on {samples}: {error}") from error
    if not (are_rows(found, n) and found.shape[1]):
        raise ValueError(
            f"{owner} must map a batch of {n}, {samples}, to a floating tensor of shape "
            f"({n}, width), got {got(found)}."
        )
    alone = torch.stack([call(batch[torch.full((n,), row)])[row] for row in range(n)])
    slack = 1e-4 * float(found.detach().nan_to_num().abs().max())
    if not torch.allclose(found, alone, rtol=1e-3, atol=slack, equal_nan=True):
        raise ValueError(
            f"{owner} must map each sample by itself in inference, and alike at each call, but "
            f"its rows depend on the other samples of a batch, or on random numbers.{advice}"
        )
    return found


def got(found: Any) -> str:
    """Return what a user's method has returned, for messages."""
    if not isinstance(found, Tensor):
        return f"a {type(found).__name__}"
    return f"a tensor of shape {tuple(found.shape)} and dtype {found.dtype}"
