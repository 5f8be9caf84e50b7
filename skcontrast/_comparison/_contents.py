"""Descriptions of parameters by their contents: weights, code of functions and attributes."""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Iterator
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from ._checksum import checksum
from ._description import ADDRESS, describe

# Libraries whose functions are told apart by name; their versions are compared elsewhere.
_LIBRARIES = {
    "builtins", "numpy", "scipy", "skcontrast", "sklearn", "skorch", "torch", "torchvision",
}  # fmt: skip
_PLAIN = (str, bytes, int, float, complex, np.generic)
_DEEPEST = 12
WEIGHTS = "tensors with checksum "


def describe_contents(value: Any) -> Any:
    """Return a description that also differs for other weights, code and attributes.

    Parameters
    ----------
    value : object
        As in `describe`. Of modules, all tensors and the public attributes count; of functions,
        the code, defaults, captured values and what they read from their module, if it is a
        number, a text, an array, a module of torch or another function there; of other objects,
        the attributes. Values nested more than 12 deep count by their class.

    Returns
    -------
    description : str, tuple, list or dict
        As `describe` returns it, the same in every process.
    """
    return _Contents()(value)


class _Contents:
    """Describes values at any depth; what contains itself is described once."""

    def __init__(self) -> None:
        self._within: list[int] = []

    def __call__(self, value: Any) -> Any:
        """Return the description of a value."""
        if value is None or isinstance(value, (*_PLAIN, type)):
            return repr(value) if isinstance(value, (bytes, complex)) else describe(value)
        if id(value) in self._within or len(self._within) >= _DEEPEST:
            return describe(value) if callable(value) else _class(value)
        self._within.append(id(value))
        try:
            return self._described(value)
        finally:
            self._within.pop()

    def _described(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            return f"tensor {checksum([_array(value)])}"
        if isinstance(value, np.ndarray) and value.dtype != object:
            return describe(value) if value.size <= 1 else f"array {checksum([value])}"
        if isinstance(value, nn.Module):
            return self._module(value)
        if isinstance(value, BaseEstimator):
            return _class(value), self._items(value.get_params(deep=False))
        if isinstance(value, (list, tuple, np.ndarray)):
            return [self(item) for item in value]
        if isinstance(value, (set, frozenset)):
            return sorted((self(item) for item in value), key=str)
        if isinstance(value, dict):
            return {str(key): self(item) for key, item in value.items()}
        if isinstance(value, functools.partial):
            parts = {"func": value.func, "args": value.args, "keywords": value.keywords}
            return "functools.partial", self._items(parts)
        if isinstance(value, (FunctionType, MethodType, BuiltinFunctionType)):
            return self._function(value)
        return self._object(value)

    def _items(self, parts: dict[str, Any]) -> dict[str, Any]:
        return {name: self(part) for name, part in sorted(parts.items())}

    def _module(self, module: nn.Module) -> Any:
        name, parts = describe(module)
        state = {**module.state_dict(keep_vars=True), **dict(module.named_buffers())}
        tensors = {key: item for key, item in state.items() if isinstance(item, Tensor)}
        others = [self(item) for item in state.values() if not isinstance(item, Tensor)]
        attributes = [self(_own(part)) for part in module.modules()]
        text = json.dumps([others, attributes], sort_keys=True)
        return name, {
            **parts,
            "attributes": f"checksum {hashlib.sha256(text.encode()).hexdigest()[:16]}",
            "weights": WEIGHTS + checksum(_array(tensors[key]) for key in sorted(tensors)),
        }

    def _function(self, function: Any) -> Any:
        if isinstance(function, MethodType):
            parts = {"function": function.__func__, "object": function.__self__}
            return "a method", self._items(parts)
        owner = getattr(function, "__self__", None)
        if isinstance(function, BuiltinFunctionType):
            is_method = owner is not None and not isinstance(owner, (ModuleType, type))
            name = f"builtins.{function.__qualname__}"
            return (name, {"object": self(owner)}) if is_method else describe(function)
        is_known = str(function.__module__).partition(".")[0] in _LIBRARIES
        if is_known and "<" not in function.__qualname__:
            return describe(function)
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        parts = {
            "defaults": function.__defaults__,
            "keyword_defaults": function.__kwdefaults__,
            "captured": {name: _content(cell) for name, cell in cells},
            "globals": _globals(function),
            "attributes": {k: v for k, v in vars(function).items() if k != "__wrapped__"},
        }
        text = json.dumps(self._code(function.__code__), sort_keys=True)
        code = {"code": f"checksum {hashlib.sha256(text.encode()).hexdigest()[:16]}"}
        given = {name: part for name, part in parts.items() if part}
        return describe(function), {**code, **self._items(given)}

    def _code(self, code: CodeType) -> list[Any]:
        constants = [
            self._code(item) if isinstance(item, CodeType) else self(item)
            for item in code.co_consts
        ]
        names = [code.co_names, code.co_freevars, code.co_varnames[: code.co_argcount]]
        return [code.co_code.hex(), [list(n) for n in names], constants]

    def _object(self, value: Any) -> Any:
        if isinstance(value, ModuleType):
            return value.__name__
        if hasattr(value, "__wrapped__"):  # such as a function with a cache
            return self(value.__wrapped__)
        if attributes := _attributes(value):
            return _class(value), self._items(attributes)
        is_silent = type(value).__repr__ is object.__repr__
        return _class(value) if is_silent else re.sub(ADDRESS, "", repr(value))


def _class(value: Any) -> str:
    return str(describe(type(value)))


def _array(tensor: Tensor) -> np.ndarray:
    """Return the bytes of a tensor, of any dtype and device, with its shape."""
    if nn.parameter.is_lazy(tensor) or tensor.is_meta:
        return np.array(str(tensor.dtype))
    if tensor.layout is not torch.strided:
        tensor = tensor.to_dense()
    tensor = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16)
    return tensor.numpy()


def _attributes(value: Any) -> dict[str, Any]:
    """Return the attributes of an object, in its dictionary or in slots."""
    slots = [
        name
        for cls in type(value).__mro__
        for name in np.atleast_1d(vars(cls).get("__slots__", ())).tolist()
        if cls.__repr__ is object.__repr__ and hasattr(value, name)
    ]
    found = {name: getattr(value, name) for name in slots if name != "__dict__"}
    return {**found, **getattr(value, "__dict__", {})}


def _own(module: nn.Module) -> dict[str, Any]:
    """Return the public attributes of a module except its parts and its mode."""
    return {k: v for k, v in vars(module).items() if k[0] != "_" and k != "training"}


def _content(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned yet
        return None


def _globals(function: FunctionType) -> dict[str, Any]:
    """Return what a function reads from its module and may hold a choice of the user."""
    found = {name: function.__globals__.get(name) for name in _names(function.__code__)}
    kinds = (*_PLAIN, tuple, np.ndarray, Tensor, nn.Module, functools.partial)
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, kinds) or _is_beside(value, function)
    }


def _is_beside(value: Any, function: FunctionType) -> bool:
    return isinstance(value, FunctionType) and value.__module__ == function.__module__


def _names(code: CodeType) -> Iterator[str]:
    """Yield the global names in a function and in the functions inside it."""
    yield from code.co_names
    for item in code.co_consts:
        if isinstance(item, CodeType):
            yield from _names(item)
