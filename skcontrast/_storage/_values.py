"""Objects as JSON and tensors, and back, without running any code that a file could name.

JSON scalars, lists and dictionaries with names as keys are written unchanged. All else is a
dictionary with one of these keys:

=============  ====================================================================================
``$float``     "nan", "inf" or "-inf"
``$tuple``     the elements
``$pairs``     keys and values of a dictionary whose keys are not names
``$tensor``    the name of a tensor, and whether it was a "tensor", an "array" of NumPy, a
               "parameter" of a network or a "frozen" one
``$strings``   an array of strings
``$class``     the name of a class itself, such as an optimizer
``$object``    the name of a class, with the attributes of an object in ``state``
``$same``      a module that occurs before, by its place among those that are complete
``$library``   how a network of timm or transformers is built, with its ``state_dict``
``$own``       the name of something that is neither of skcontrast nor of torch, and is passed when
               the file is read: a module with its ``state_dict``, an object with its ``params``,
               or anything else, such as a function
=============  ====================================================================================
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from .._layers._pretrained import is_copy_of_pretrained
from ._user_objects import (
    check_own,
    has_parameters,
    own_name,
    rebuilt,
    recipe_of,
    with_parameters,
    with_weights,
)

# The attributes that every module has, and those of them that a file holds.
_MODULE = frozenset(vars(nn.Module()))
_MEMBERS = {
    "_parameters": nn.Parameter,
    "_buffers": Tensor,
    "_modules": nn.Module,
}
# More modules than a network has, each counted as often as it occurs.
_MOST_MODULES = 10**5
# What changes the output of a module or its gradient, and is not in its class.
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Writer:
    """Turns objects into JSON, and collects their tensors.

    Parameters
    ----------
    classes : dict of str to type
        The classes that the file may name.

    Attributes
    ----------
    tensors : dict of str to Tensor
        The numbers, by the names that the JSON has for them.
    own : dict of str to str
        Names of what must be passed when the file is read, and where it occurs first.
    """

    def __init__(self, classes: Mapping[str, type]):
        self.names = {cls: name for name, cls in classes.items()}
        self.tensors: dict[str, Tensor] = {}
        self.own: dict[str, str] = {}
        self._custom: dict[str, list[Any]] = {}
        # By id, with the object itself: the id of one that is freed may be given to the next.
        self._seen: dict[int, tuple[str, Any]] = {}
        self._modules: dict[int, int] = {}

    def write(self, value: Any, name: str) -> Any:
        """Return a part of the file as JSON, in which custom objects are counted anew."""
        self._custom = {}
        return self._write(value, name)

    def _write(self, value: Any, name: str) -> Any:
        """Return an object as JSON; `name` is its place, for the names of tensors."""
        # What JSON has, or nearly.
        if value is None or isinstance(value, (bool, int, str)):
            return value
        if isinstance(value, float):
            return value if math.isfinite(value) else {"$float": str(value)}
        if isinstance(value, np.generic):
            return self._write(value.item(), name)
        if isinstance(value, (np.ndarray, Tensor)):
            return self._array(value, name)
        if isinstance(value, (list, tuple, range)):
            items = [self._write(item, f"{name}.{k}") for k, item in enumerate(value)]
            return items if isinstance(value, list) else {"$tuple": items}
        if isinstance(value, dict):
            return self._dictionary(value, name)
        # Objects: a class by its name, a module that occurs again by its number, all else in full.
        if inspect.isclass(value) and value in self.names:
            return {"$class": self.names[value]}
        if id(value) in self._modules:
            return {"$same": self._modules[id(value)]}
        if isinstance(value, nn.Module) and any(map(nn.parameter.is_lazy, value.parameters())):
            raise TypeError(
                f"{name} has a lazy layer, which cannot be written before it has seen a sample: "
                "call the module once, on a batch."
            )
        found = (self._object if type(value) in self.names else self._own)(value, name)
        if isinstance(value, nn.Module):
            self._modules[id(value)] = len(self._modules)
        return found

    def _array(self, value: np.ndarray | Tensor, name: str) -> dict[str, Any]:
        """Return where an array or tensor is kept; the same one is kept once."""
        if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
            if not all(isinstance(item, str) for item in value.flat) or value.ndim != 1:
                raise TypeError(f"{name} is an array of objects, which cannot be written.")
            return {"$strings": value.tolist(), "object": value.dtype == object}
        if id(value) not in self._seen:
            self._seen[id(value)] = (name, value)
            # torch takes neither read-only arrays nor those that run backwards.
            array = np.array(value, order="C") if isinstance(value, np.ndarray) else value
            tensor = torch.as_tensor(array).detach().cpu()
            self.tensors[name] = tensor.clone(memory_format=torch.contiguous_format)
        name = self._seen[id(value)][0]
        if isinstance(value, np.ndarray):
            return {"$tensor": name, "is": "array"}
        role = "tensor"
        if isinstance(value, nn.Parameter):
            role = "parameter" if value.requires_grad else "frozen"
        found: dict[str, Any] = {"$tensor": name, "is": role}
        if value.stride() != self.tensors[name].stride():
            # Another layout takes another kernel, which rounds differently.
            found["stride"] = list(value.stride())
        return found

    def _dictionary(self, value: dict, name: str) -> Any:
        """Return a dictionary, unchanged where its keys are names."""
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: self._write(item, f"{name}.{key}") for key, item in value.items()}
        items = list(value.items())
        return {"$pairs": [self._write([*item], f"{name}.{k}") for k, item in enumerate(items)]}

    def _object(self, value: Any, name: str) -> dict[str, Any]:
        """Return an object of skcontrast, or a module of torch, with its attributes."""
        state = vars(value)
        left_out = {*getattr(value, "_samples", ()), *getattr(value, "_transient", ())}
        if isinstance(value, nn.Module):
            _check_hooks(value, name)
            left_out |= _MODULE - _MEMBERS.keys()
            state = {**state, "volatile": sorted(value._non_persistent_buffers_set)}
        found = {
            key: self._write(item, name if key in _MEMBERS else f"{name}.{key}")
            for key, item in state.items()
            if key not in left_out
        }
        return {"$object": self.names[type(value)], "state": found}

    def _own(self, value: Any, name: str) -> dict[str, Any]:
        """Return the name of something that the reader of the file must have, and its state."""
        check_own(value, name)
        if not isinstance(value, nn.Module):
            found: dict[str, Any] = {"$own": self._custom_name(value, name)}
            if has_parameters(value):
                parameters = value.get_params(deep=False)
                found["params"] = self._dictionary(parameters, name)
            return found
        tensors = value.state_dict(keep_vars=True)
        if (recipe := recipe_of(value)) is not None:
            return {"$library": recipe, "state_dict": self._dictionary(dict(tensors), name)}
        state = self._dictionary(dict(tensors), name)
        found = {"$own": self._custom_name(value, name), "state_dict": state}
        return {**found, "without_head": True} if is_copy_of_pretrained(value) else found

    def _custom_name(self, value: Any, place: str) -> str:
        """Return the name of a custom object, which is at a place in the file.

        The second object of a class has the name of the class with ``#2``, and so on. They are
        counted anew in each part of the file, so that a copy has the name of the original.
        """
        base = own_name(value)
        known = self._custom.setdefault(base, [])
        is_copy = is_copy_of_pretrained(value)
        number = next((k for k, one in enumerate(known) if is_copy or one is value), len(known))
        if number == len(known):
            known.append(value)
        name = f"{base}#{number + 1}" if number else base
        self.own.setdefault(name, place)
        return name


class Reader:
    """Makes objects of JSON and tensors.

    Parameters
    ----------
    classes : dict of str to type
        The classes that a file may name.
    tensors : dict of str to Tensor
        The numbers.
    own : dict of str to object
        The objects that the user has passed, by their names in the JSON.
    """

    def __init__(
        self, classes: Mapping[str, type], tensors: Mapping[str, Tensor], own: Mapping[str, Any]
    ):
        self.classes, self.tensors, self.own = classes, tensors, own
        self._parameters: dict[str, nn.Parameter] = {}
        # The modules that are complete, and how many are in each; how many there are in all.
        self._modules: list[tuple[nn.Module, int]] = []
        self._n_modules = 0

    def read(self, value: Any) -> Any:
        """Return an object from JSON."""
        if isinstance(value, list):
            return [self.read(item) for item in value]
        if not isinstance(value, dict):
            return value
        tags = [key for key in value if key.startswith("$")]
        if not tags:
            return {key: self.read(item) for key, item in value.items()}
        reader = getattr(self, f"_read_{tags[0][1:]}", None)
        if len(tags) > 1 or reader is None:
            raise ValueError(f"it holds something unknown, {tags}")
        return reader(value)

    def _read_float(self, value: dict) -> float:
        return float(value["$float"])

    def _read_tuple(self, value: dict) -> tuple:
        return tuple(self.read(value["$tuple"]))

    def _read_pairs(self, value: dict) -> dict:
        return dict(self.read(value["$pairs"]))

    def _read_strings(self, value: dict) -> np.ndarray:
        return np.array(value["$strings"], dtype=object if value["object"] else str)

    def _read_tensor(self, value: dict) -> np.ndarray | Tensor:
        name, role = value["$tensor"], value["is"]
        tensor = self.tensors[name]
        if role == "array":
            return tensor.numpy()
        if "stride" in value:
            tensor = _laid_out(tensor, value["stride"], name)
        if role == "tensor":
            return tensor
        parameter = nn.Parameter(tensor, requires_grad=role == "parameter")
        return self._parameters.setdefault(name, parameter)

    def _read_class(self, value: dict) -> type:
        return self._known(value["$class"])

    def _read_own(self, value: dict) -> Any:
        name = value["$own"]
        if "params" in value:
            return with_parameters(self.own[name], self.read(value["params"]), name)
        if "state_dict" not in value:
            return self.own[name]
        has_head = not value.get("without_head", False)
        state = self.read(value["state_dict"])
        module = with_weights(self.own[name], state, name, has_head=has_head)
        return self._complete(module, self._n_modules, len(list(module.modules())))

    def _read_library(self, value: dict) -> nn.Module:
        module = rebuilt(value["$library"], self.read(value["state_dict"]))
        return self._complete(module, self._n_modules, len(list(module.modules())))

    def _read_same(self, value: dict) -> nn.Module:
        module, n_modules = self._modules[value["$same"]]
        self._count(n_modules)
        return module

    def _read_object(self, value: dict) -> Any:
        name, before = value["$object"], self._n_modules
        cls = self._known(name)
        state = {key: self.read(item) for key, item in value["state"].items()}
        if not issubclass(cls, nn.Module):
            _check_attributes(state, cls, name)
            return _object(cls, state)
        return self._complete(_module(cls, state, name), before, 1)

    def _complete(self, module: nn.Module, before: int, n_modules: int) -> nn.Module:
        """Keep a module, which may be repeated, with the modules since so many before it."""
        self._count(n_modules)
        self._modules.append((module, self._n_modules - before))
        return module

    def _count(self, n_modules: int) -> None:
        """Count modules as often as they occur: nested repetition would explode when called."""
        self._n_modules += n_modules
        if self._n_modules > _MOST_MODULES:
            raise ValueError(f"its network has more than {_MOST_MODULES} modules")

    def _known(self, name: str) -> type:
        """Return the class of a name in a file."""
        if name not in self.classes:
            raise ValueError(f"it names {name!r}, which this version of skcontrast does not know")
        return self.classes[name]


def _check_hooks(module: nn.Module, name: str) -> None:
    """Raise TypeError if a module does something that is not in its class."""
    hooks = [hook for key in _HOOKS for hook in getattr(module, key).values()]
    if hooks or "forward" in vars(module):
        raise TypeError(
            f"{name} is a {type(module).__name__} with a {'hook' if hooks else 'new forward'}, "
            "which cannot be written. Remove it, or put what it does into the forward of a custom "
            "module."
        )


def _laid_out(tensor: Tensor, strides: list[int], name: str) -> Tensor:
    """Return a tensor in the layout in memory that it had."""
    last = sum((n - 1) * stride for n, stride in zip(tensor.shape, strides, strict=True))
    if min(strides) < 0 or last != tensor.numel() - 1:
        raise ValueError(f"it lays out {name} by the strides {strides}, which do not fit it")
    return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype).copy_(tensor)


def _check_attributes(state: dict[str, Any], cls: type, name: str) -> None:
    """Raise ValueError for an attribute that would take the place of a method or of torch's."""
    taken = _MODULE if issubclass(cls, nn.Module) else ()
    for key in state:
        if key in taken or key.startswith("__") or callable(getattr(cls, key, None)):
            raise ValueError(f"it gives {name} an attribute {key!r}, which it may not have")


def _module(cls: type, state: dict[str, Any], name: str) -> nn.Module:
    """Return a module of a class with attributes, parameters, buffers and children."""
    module: Any = object.__new__(cls)
    nn.Module.__init__(module)
    module._non_persistent_buffers_set.update(state.pop("volatile"))
    for part, kind in _MEMBERS.items():
        for key, member in state.pop(part).items():
            if not (member is None or isinstance(member, kind)):
                raise ValueError(f"it gives {name} {key!r} as one of its {part[1:]}")
            getattr(module, part)[key] = member
    _check_attributes(state, cls, name)
    vars(module).update(state)
    return module.eval()


def _object(cls: type, state: dict[str, Any]) -> Any:
    """Return an object with attributes; parameters that are missing have their defaults.

    Raises
    ------
    TypeError, ValueError
        If there is an attribute that the class does not have, or none where it needs one.
    """
    if is_dataclass(cls):
        return cls(**state)
    made: Any = object.__new__(cls)
    if issubclass(cls, BaseEstimator):
        known = getattr(cls, "_learned", ())
        learned = {key for key in state if key.endswith("_") or key in known}
        made = cls(**{key: item for key, item in state.items() if key not in learned})
        state = {key: state[key] for key in learned}
    vars(made).update(state)
    return made
