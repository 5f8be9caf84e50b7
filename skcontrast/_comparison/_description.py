"""Descriptions of parameters, at any depth, that are the same in every process."""

from __future__ import annotations

import hashlib
import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from torch import nn

ADDRESS = " at 0x[0-9a-fA-F]+"
_LONGEST_TEXT = 100
_LONGEST_ITEM = 16


def describe(value: Any) -> Any:
    """Return a description of a parameter, at any depth, that is the same in every process.

    Parameters
    ----------
    value : object
        A number, a string, an object with parameters, a module, a class, a function, an array, or
        a list, tuple or dictionary of these.

    Returns
    -------
    description : str, tuple, list or dict
        Of an object with parameters and of a module, the name of the class and a dictionary.
    """
    if isinstance(value, BaseEstimator):
        parameters = value.get_params(deep=False)
        return _name(type(value)), {name: describe(v) for name, v in sorted(parameters.items())}
    if isinstance(value, nn.Module):
        tensors = value.state_dict(keep_vars=True).items()
        shapes = {name: _shape(tensor) for name, tensor in tensors}
        return _name(type(value)), {**shapes, "layers": [_layer(m) for m in value.modules()]}
    if inspect.isclass(value) or inspect.isroutine(value):
        return _name(value)
    if isinstance(value, (list, tuple)):
        return [describe(item) for item in value]
    if isinstance(value, dict):
        return {str(key): describe(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (str, int, float)):
        return repr(value)
    return _name(type(value))


def flattened(name: str, description: Any) -> Iterator[tuple[str, str]]:
    """Yield what a description holds, at any depth, as pairs of a name and a text.

    Parameters
    ----------
    name : str
        Of the parameter. Parameters of an object have names such as ``loss__tau_plus``, items of
        a list ``encoder__layers[2]`` and items of a dictionary ``encoder_params['width']``.
    description : object
        As `describe` returns it. Lists of numbers and short texts are not taken apart.
    """
    if _is_of_object(description):
        yield name, description[0]
        for key, item in description[1].items():
            yield from flattened(f"{name}__{key}", item)
    elif isinstance(description, dict):
        yield name, f"a dictionary of {len(description)}"
        for key, item in description.items():
            yield from flattened(f"{name}[{key!r}]", item)
    elif isinstance(description, list) and not all(map(_is_short, description)):
        yield name, f"a list of {len(description)}"
        for k, item in enumerate(description):
            yield from flattened(f"{name}[{k}]", item)
    else:
        yield name, _text(description)


def _is_of_object(description: Any) -> bool:
    """Return whether a description is a name of a class with a dictionary, not a shape."""
    is_pair = isinstance(description, tuple) and len(description) == 2
    return is_pair and isinstance(description[1], dict)


def _is_short(item: Any) -> bool:
    """Return whether an item is better shown within its list than as a line of its own."""
    return (isinstance(item, str) and len(item) <= _LONGEST_ITEM) or isinstance(item, (int, float))


def _text(description: Any) -> str:
    """Return a description in one line; a long one ends in a checksum of the whole."""
    if isinstance(description, list):
        description = f"[{', '.join(map(str, description))}]"
    text = str(description)
    if len(text) <= _LONGEST_TEXT:
        return text
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    return f"{text[:_LONGEST_TEXT]}... (checksum {digest})"


def _shape(item: Any) -> tuple[int, ...]:
    """Return the shape of a tensor, empty for other state and before a lazy module is used."""
    return () if nn.parameter.is_lazy(item) else tuple(getattr(item, "shape", ()))


def _layer(module: nn.Module) -> str:
    """Return the class of a module and what it prints about itself, without addresses."""
    return f"{_name(type(module))}({re.sub(ADDRESS, '', module.extra_repr())})"


def _name(thing: Any) -> str:
    return f"{thing.__module__}.{thing.__qualname__}"
