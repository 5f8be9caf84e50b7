"""What is neither of skcontrast nor of torch: how a file names it, and what it holds of it.

Numbers and arrays in the attributes of such an object are in the file, like the weights of a
module. Texts, and whatever else an attribute holds, are compared with those of the object that is
handed over when the file is read. Code is neither stored nor compared.
"""

from __future__ import annotations

import copy
import functools
import inspect
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn
from torch.nn.modules.lazy import LazyModuleMixin

from .._comparison._contents import describe_contents
from .._comparison._description import flattened

# The attributes that every module has.
MODULE = frozenset(vars(nn.Module()))
# The attributes in which a lazy layer keeps its hooks until it has seen a sample.
LAZY = ("_initialize_hook", "_load_hook")
_DEEPEST = 12
_UNKNOWN = "unknown"


class Names:
    """Names of things that are handed over; things that need different ones have different names.

    Attributes
    ----------
    places : dict of str to str
        Where each name stands first.
    """

    def __init__(self) -> None:
        self.places: dict[str, str] = {}
        self._known: dict[str, list[tuple[Any, dict[str, str]]]] = {}

    def name(self, value: Any, place: str) -> str:
        """Return the name of a thing: its class, with a number from the second of a class on.

        Raises
        ------
        TypeError
            If a different function of the same name stands elsewhere.
        """
        base, traits = own_name(value), {**texts(value), **_shapes(value)}
        known = self._known.setdefault(base, [])
        alike = [k for k, (_, before) in enumerate(known) if _agree(traits, before)]
        number = alike[0] if alike else len(known)
        name = base if number == 0 else f"{base}#{number + 1}"
        if not alike:
            known.append((value, traits))
            self.places[name] = place
        elif is_callable(value) and not _is_same(value, known[number][0]):
            raise TypeError(
                f"{place} and {self.places[name]} are different functions that are both called "
                f"{base}, so that they cannot be told apart in a file. Define each by def, under "
                "a name of its own."
            )
        return name


def own_name(value: object) -> str:
    """Return the name under which a file mentions what is not in skcontrast or torch."""
    some = value if inspect.isclass(value) or inspect.isroutine(value) else type(value)
    return f"{some.__module__}.{some.__qualname__}"


def is_callable(value: Any) -> bool:
    """Return whether something is handed over as it is: a function or a class."""
    is_partial = isinstance(value, functools.partial)
    return is_partial or inspect.isclass(value) or inspect.isroutine(value)


def numbers(value: Any) -> dict[str, dict[str, Any]]:
    """Return the attributes that a file holds, for each part of a thing."""
    found = {path: _divided(part)[0] for path, part in _parts(value).items()}
    return {path: attributes for path, attributes in found.items() if attributes}


def texts(value: Any) -> dict[str, str]:
    """Return what is compared when a file is read, by the names of attributes."""
    if is_callable(value):
        description = _lasting(describe_contents(value))
        given = description[1] if isinstance(description, tuple) else {}
        return {key: _text(item) for key, item in given.items()}
    found = {}
    for path, part in _parts(value).items():
        start = f"{path}." if path else ""
        if path:
            found[path] = f"a {_layer_class(part).__name__}"
        for key, item in _divided(part)[1].items():
            found[start + key] = _text(_lasting(describe_contents(item)))
    return found


def check_registered(module: nn.Module, name: str) -> None:
    """Raise TypeError if an attribute holds modules or parameters that torch does not find."""
    registered = {id(part) for part in (*module.modules(), *module.parameters())}
    for path, part in module.named_modules():
        for key, item in _attributes(part).items():
            if any(id(found) not in registered for found in _trained_in(item)):
                raise TypeError(
                    f"{name} has layers or parameters in {f'{path}.{key}'.lstrip('.')} that torch "
                    "does not find, so that they are neither trained nor written. Put them into "
                    "a ModuleList, ModuleDict or ParameterList of torch.nn."
                )


def made(given: Any, name: str) -> Any:
    """Return the object for a name: what was handed over, or what it returns when called."""
    if not is_callable(given):
        return given
    try:
        return given()
    except Exception as error:
        raise ValueError(
            f"own[{name!r}] must be an object, or a class or function that returns one when it is "
            f"called without arguments, but the call failed: {error}"
        ) from error


def with_weights(given: Any, state: dict[str, Any] | None, name: str) -> nn.Module:
    """Return a copy of a module with the weights of a file."""
    if not isinstance(given, nn.Module):
        raise ValueError(
            f"own[{name!r}] must be a module, with weights to be replaced in a copy, got a "
            f"{type(given).__name__}"
        )
    module = copy.deepcopy(given)
    try:
        if state is not None:
            module.load_state_dict(state)
    except RuntimeError as error:
        raise ValueError(
            f"the module that was passed as own[{name!r}] has other weights: {error}"
        ) from error
    return module


def check_texts(given: Any, before: dict[str, str], held: dict[str, Any], name: str) -> None:
    """Raise ValueError, naming the attribute, if a thing is not what it was.

    Parameters
    ----------
    given : object
        What was handed over.
    before : dict of str to str
        The texts of the file.
    held : dict of str to dict
        Its numbers.
    name : str
        The name of the thing.
    """
    now, held_now = texts(given), numbers(given)
    for key in sorted(before.keys() | now.keys()):
        old = before.get(key) or _missing(key, held)
        new = now.get(key) or _missing(key, held_now)
        if old != new:
            raise ValueError(f"own[{name!r}] differs: its {key} was {old} and is {new} now")


def restored(thing: Any, stored: dict[str, dict[str, Any]]) -> Any:
    """Return a thing with the numbers of a file; of one that is not a module, a copy."""
    thing = thing if isinstance(thing, nn.Module) or not stored else copy.copy(thing)
    parts = _parts(thing)
    for path, attributes in stored.items():
        for key, item in attributes.items():
            check_attribute(key, type(parts[path]), own_name(thing))
            if not (_is_numbers(item) and _takes_numbers(parts[path], key)):
                raise ValueError(
                    f"it gives {own_name(thing)} an attribute {key!r}, which is not a number"
                )
            vars(parts[path])[key] = item
    return thing


def check_attribute(key: str, some: type, name: str) -> None:
    """Raise ValueError for an attribute that would take the place of a method."""
    if key in MODULE or key.startswith("__") or callable(getattr(some, key, None)):
        raise ValueError(f"it gives {name} an attribute {key!r}, which it may not have")


def _missing(key: str, held: dict[str, Any]) -> str:
    """Return what an attribute is that is not among the texts."""
    path, _, attribute = key.rpartition(".")
    return "a number or None" if attribute in held.get(path, ()) else "not there"


def _parts(value: Any) -> dict[str, Any]:
    """Return what has attributes, by its path."""
    if is_callable(value):
        return {}
    return dict(value.named_modules()) if isinstance(value, nn.Module) else {"": value}


def _attributes(part: Any) -> dict[str, Any]:
    """Return what a part holds; of an object with parameters, these."""
    if isinstance(part, BaseEstimator):
        return part.get_params(deep=False)
    found = getattr(part, "__dict__", {})
    if not isinstance(part, nn.Module):
        return dict(found)
    is_torch = _layer_class(part).__module__.startswith("torch.nn.")
    return {
        key: item
        for key, item in found.items()
        if key not in MODULE and key not in LAZY and not (is_torch and key.startswith("_"))
    }


def _divided(part: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the attributes that are numbers, and the others."""
    attributes = _attributes(part)
    held = {key: item for key, item in attributes.items() if _is_numbers(item)}
    others = {key: item for key, item in attributes.items() if key not in held}
    return held, {key: item for key, item in others.items() if not [*_trained_in(item)]}


def _is_numbers(value: Any, depth: int = 0) -> bool:
    """Return whether a value is None or consists of numbers."""
    if value is None or isinstance(value, (bool, int, float)):
        return True
    if isinstance(value, (np.ndarray, np.generic)):
        return value.dtype.kind in "biuf" and value.dtype.itemsize <= 8 and value.dtype.isnative
    if isinstance(value, Tensor):
        is_plain = value.layout is torch.strided and not value.is_meta and not value.is_quantized
        return is_plain and not value.is_complex() and not isinstance(value, nn.Parameter)
    if type(value) is dict and all(isinstance(key, str) for key in value):
        value = list(value.values())
    is_list = type(value) in (list, tuple) and depth < _DEEPEST
    return is_list and all(_is_numbers(item, depth + 1) for item in value)


def _takes_numbers(part: Any, key: str) -> bool:
    """Return whether a part has numbers under a name, or nothing."""
    attributes = _attributes(part)
    if key in attributes:
        return _is_numbers(attributes[key])
    members: Any = vars(part).keys()
    if isinstance(part, nn.Module):
        members = {*members, *part._parameters, *part._buffers, *part._modules}
    return key not in members and not isinstance(part, BaseEstimator)


def _layer_class(module: Any) -> type:
    """Return the class of a part; of a lazy layer the one that it will have."""
    if isinstance(module, LazyModuleMixin) and module.cls_to_become is not None:
        return module.cls_to_become
    return type(module)


def _trained_in(value: Any, depth: int = 0) -> Iterator[nn.Module | nn.Parameter]:
    """Yield the modules and parameters in an attribute, also in lists and dictionaries."""
    if isinstance(value, (nn.Module, nn.Parameter)):
        yield value
    elif isinstance(value, (list, tuple, dict)) and depth < _DEEPEST:
        for item in value.values() if isinstance(value, dict) else value:
            yield from _trained_in(item, depth + 1)


def _shapes(value: Any) -> dict[str, str]:
    """Return the shapes of weights, by which modules of a class are told apart."""
    if not isinstance(value, nn.Module):
        return {}
    state = value.state_dict(keep_vars=True)
    tensors = {key: item for key, item in state.items() if isinstance(item, Tensor)}
    return {
        f"shape of {key}": _UNKNOWN if nn.parameter.is_lazy(item) else str(tuple(item.shape))
        for key, item in tensors.items()
    }


def _agree(traits: dict[str, str], others: dict[str, str]) -> bool:
    """Return whether one thing can be handed over for two."""
    return traits.keys() == others.keys() and all(
        text == others[key] or _UNKNOWN in (text, others[key]) for key, text in traits.items()
    )


def _is_same(function: Any, other: Any) -> bool:
    """Return whether two functions do the same, or two classes are one."""
    if function is other:
        return True
    is_class = inspect.isclass(function) or inspect.isclass(other)
    return not is_class and describe_contents(function) == describe_contents(other)


def _lasting(description: Any) -> Any:
    """Return a description without code, which may be mended, and weights, which are stored."""
    if isinstance(description, list):
        return [_lasting(item) for item in description]
    if isinstance(description, dict):
        is_function, is_module = "code" in description, "weights" in description
        left_out = {"code", "globals"} if is_function else set()
        left_out |= {"weights", "attributes"} if is_module else set()
        return {key: _lasting(item) for key, item in description.items() if key not in left_out}
    if isinstance(description, tuple) and len(description) == 2:
        return description[0], _lasting(description[1])
    return description


def _text(description: Any) -> str:
    """Return a description on one line; a long one ends in a checksum."""
    text = description if isinstance(description, str) else json.dumps(description, default=str)
    return next(flattened("", text))[1]
