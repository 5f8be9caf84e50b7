"""Objects as JSON and tensors, and back, without running any code that a file could name.

JSON scalars, lists and dictionaries with names as keys are written unchanged. All else is a
dictionary with one of these keys:

=============  ====================================================================================
``$float``     "nan", "inf" or "-inf"
``$tuple``     the elements
``$pairs``     keys and values of a dictionary whose keys are not names
``$array``     the name of a tensor that was a NumPy array
``$tensor``    the name of a tensor, ``$parameter`` of a parameter of a network
``$lazy``      "parameters" or "buffers": one of a lazy layer that has not seen a sample
``$strings``   an array of strings
``$class``     the name of a class itself, such as an optimizer
``$object``    the name of a class, with the attributes of an object in ``state``
``$module``    the name of a class, with the attributes, parameters, buffers and children of a
               ``torch.nn.Module``
``$same``      a module that occurs before, by its place among all modules
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
from torch.nn.modules.lazy import LazyModuleMixin

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

# The attributes that every module has.
_MODULE = frozenset(vars(nn.Module()))
# The attributes in which a lazy layer keeps its hooks until it has seen a sample.
_LAZY = ("_initialize_hook", "_load_hook")
# More modules than a network has, each counted as often as it occurs.
_MOST_MODULES = 10**5
# What changes the output of a module or its gradient, and is not in its class.
_HOOKS = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")


class Writer:
    """Turns objects into JSON, and collects their tensors.

    Parameters
    ----------
    names : dict of type to str
        The names in the file of the classes that it may name.

    Attributes
    ----------
    tensors : dict of str to Tensor
        The numbers, by the names that the JSON has for them.
    own : dict of str to str
        Names of what must be passed when the file is read, and where it occurs first.
    """

    def __init__(self, names: Mapping[type, str]):
        self.names = names
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
        if inspect.isclass(value) and value in self.names:
            return {"$class": self.names[value]}
        if isinstance(value, nn.Module):
            if id(value) in self._modules:
                return {"$same": self._modules[id(value)]}
            self._modules[id(value)] = len(self._modules)
            return (self._module if type(value) in self.names else self._own)(value, name)
        if type(value) not in self.names:
            return self._own(value, name)
        return {"$object": self.names[type(value)], "state": self._state(value, name)}

    def _array(self, value: np.ndarray | Tensor, name: str) -> dict[str, Any]:
        """Return where an array or tensor is kept; the same one is kept once."""
        if isinstance(value, np.ndarray) and value.dtype.kind in "OU":
            if not all(isinstance(item, str) for item in value.flat) or value.ndim != 1:
                raise TypeError(f"{name} is an array of objects, which cannot be written.")
            return {"$strings": value.tolist(), "object": value.dtype == object}
        if isinstance(value, Tensor) and nn.parameter.is_lazy(value):
            return {"$lazy": "parameters" if isinstance(value, nn.Parameter) else "buffers"}
        key = "$array" if isinstance(value, np.ndarray) else "$tensor"
        if isinstance(value, nn.Parameter):
            key = "$parameter"
        if id(value) not in self._seen:
            self._seen[id(value)] = (name, value)
            # torch takes neither read-only arrays nor those that run backwards.
            array = np.array(value, order="C") if isinstance(value, np.ndarray) else value
            tensor = torch.as_tensor(array).detach().cpu()
            self.tensors[name] = tensor.clone(memory_format=torch.contiguous_format)
        found: dict[str, Any] = {key: self._seen[id(value)][0]}
        if isinstance(value, Tensor) and value.stride() != self.tensors[found[key]].stride():
            # Another layout takes another kernel, which rounds differently.
            found["stride"] = list(value.stride())
        if isinstance(value, nn.Parameter) and not value.requires_grad:
            found["frozen"] = True
        return found

    def _dictionary(self, value: dict, name: str) -> Any:
        """Return a dictionary, unchanged where its keys are names."""
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: self._write(item, f"{name}.{key}") for key, item in value.items()}
        items = list(value.items())
        return {"$pairs": [self._write([*item], f"{name}.{k}") for k, item in enumerate(items)]}

    def _state(self, value: Any, name: str) -> dict[str, Any]:
        """Return the attributes of an object."""
        left_out = (*getattr(value, "_samples", ()), *getattr(value, "_transient", ()))
        attributes = {key: item for key, item in vars(value).items() if key not in left_out}
        return {key: self._write(item, f"{name}.{key}") for key, item in attributes.items()}

    def _module(self, module: nn.Module, name: str) -> dict[str, Any]:
        """Return a module of skcontrast or torch, with everything in it."""
        _check_hooks(module, name)
        found: dict[str, Any] = {"$module": self.names[type(module)]}
        left_out = {*_MODULE, *(_LAZY if isinstance(module, LazyModuleMixin) else ())}
        own = {key: item for key, item in vars(module).items() if key not in left_out}
        found["state"] = {key: self._write(item, f"{name}.{key}") for key, item in own.items()}
        found["volatile"] = sorted(module._non_persistent_buffers_set)
        for part in ("_parameters", "_buffers", "_modules"):
            members = getattr(module, part)
            found[part] = {key: self._write(one, f"{name}.{key}") for key, one in members.items()}
        return found

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
        # Lazy layers have no weights before they have seen a sample.
        is_lazy = any(nn.parameter.is_lazy(tensor) for tensor in tensors.values())
        state = None if is_lazy else self._dictionary(dict(tensors), name)
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
        self._modules: list[nn.Module] = []
        # What is in each module, with repetitions, once it has been read; and in all together.
        self._counts: dict[int, int] = {}
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

    def _read_array(self, value: dict) -> np.ndarray:
        return self.tensors[value["$array"]].numpy()

    def _read_tensor(self, value: dict) -> Tensor:
        return self._laid_out(value["$tensor"], value)

    def _read_lazy(self, value: dict) -> Tensor:
        is_parameter = value["$lazy"] == "parameters"
        return nn.UninitializedParameter() if is_parameter else nn.UninitializedBuffer()

    def _laid_out(self, name: str, value: dict) -> Tensor:
        """Return a tensor in the layout in memory that it had."""
        tensor = self.tensors[name]
        if "stride" not in value:
            return tensor
        strides = [int(stride) for stride in value["stride"]]
        steps = zip(tensor.shape, strides, strict=True)
        last = sum((size - 1) * stride for size, stride in steps)
        if min(strides) < 0 or last != tensor.numel() - 1:
            raise ValueError(f"it lays out {name} by the strides {strides}, which do not fit it")
        return torch.empty_strided(tensor.shape, strides, dtype=tensor.dtype).copy_(tensor)

    def _read_parameter(self, value: dict) -> nn.Parameter:
        name = value["$parameter"]
        if name not in self._parameters:
            trains = not value.get("frozen", False)
            tensor = self._laid_out(name, value)
            self._parameters[name] = nn.Parameter(tensor, requires_grad=trains)
        return self._parameters[name]

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
        return self._whole(with_weights(self.own[name], state, name, has_head=has_head))

    def _read_library(self, value: dict) -> nn.Module:
        return self._whole(rebuilt(value["$library"], self.read(value["state_dict"])))

    def _whole(self, module: nn.Module) -> nn.Module:
        """Count a module that was not read part by part, and return it."""
        self._counts[len(self._modules)] = n_modules = len(list(module.modules()))
        self._count(n_modules)
        self._modules.append(module)
        return module

    def _read_object(self, value: dict) -> Any:
        cls = self._known(value["$object"])
        if issubclass(cls, nn.Module):
            raise ValueError(f"{value['$object']} is stored as an object but is a module")
        state = {key: self.read(item) for key, item in value["state"].items()}
        return _object(cls, state, value["$object"])

    def _read_same(self, value: dict) -> nn.Module:
        place = value["$same"]
        if place not in self._counts:
            raise ValueError(f"it repeats the module {place!r}, which is not complete by then")
        self._count(self._counts[place])
        return self._modules[place]

    def _count(self, n_modules: int) -> None:
        """Count modules; nested repetition would otherwise explode."""
        self._n_modules += n_modules
        if self._n_modules > _MOST_MODULES:
            raise ValueError(f"its network has more than {_MOST_MODULES} modules")

    def _read_module(self, value: dict) -> nn.Module:
        cls = self._known(value["$module"])
        if not issubclass(cls, nn.Module):
            raise ValueError(f"{value['$module']} is stored as a module but is none")
        module: nn.Module = object.__new__(cls)
        nn.Module.__init__(module)
        place, before = len(self._modules), self._n_modules
        self._modules.append(module)
        self._count(1)
        for key, item in value["state"].items():
            _check_attribute(key, cls, value["$module"])
            vars(module)[key] = self.read(item)
        for part in ("_parameters", "_buffers", "_modules"):
            members = {key: self.read(item) for key, item in value[part].items()}
            _check_members(members, part, value["$module"])
            getattr(module, part).update(members)
        module._non_persistent_buffers_set.update(value["volatile"])
        if isinstance(module, LazyModuleMixin):
            _make_lazy(module)
        self._counts[place] = self._n_modules - before
        return module.eval()

    def _known(self, name: str) -> type:
        """Return the class of a name in a file."""
        if name not in self.classes:
            raise ValueError(f"it names {name!r}, which this version of skcontrast does not know")
        return self.classes[name]


def _check_hooks(module: nn.Module, name: str) -> None:
    """Raise TypeError if a module does something that is not in its class."""
    hooks = [hook for key in _HOOKS for hook in getattr(module, key).values()]
    if isinstance(module, LazyModuleMixin):
        # Bound methods are equal, not identical.
        hooks = [hook for hook in hooks if hook != module._infer_parameters]
    if hooks or "forward" in vars(module):
        raise TypeError(
            f"{name} is a {type(module).__name__} with a {'hook' if hooks else 'new forward'}, "
            "which cannot be written. Remove it, or put what it does into the forward of a custom "
            "module."
        )


def _check_attribute(key: str, cls: type, name: str) -> None:
    """Raise ValueError for an attribute that would take the place of a method."""
    if key in _MODULE or key.startswith("__") or callable(getattr(cls, key, None)):
        raise ValueError(f"it gives {name} an attribute {key!r}, which it may not have")


def _make_lazy(module: Any) -> None:
    """Register the hooks by which a lazy layer takes its shapes from the first sample."""
    module._load_hook = module._register_load_state_dict_pre_hook(module._lazy_load_hook)
    module._initialize_hook = module.register_forward_pre_hook(
        module._infer_parameters, with_kwargs=True
    )


def _check_members(members: dict[str, Any], part: str, name: str) -> None:
    """Raise ValueError unless parameters are parameters, buffers tensors, children modules."""
    expected = {"_parameters": nn.Parameter, "_buffers": Tensor, "_modules": nn.Module}[part]
    for key, member in members.items():
        if not (member is None or isinstance(member, expected)):
            raise ValueError(f"it gives {name} {key!r} as one of its {part[1:]}, which it is not")


def _object(cls: type, state: dict[str, Any], name: str) -> Any:
    """Return an object with attributes; parameters that are missing have their defaults.

    Raises
    ------
    TypeError, ValueError
        If there is an attribute that the class does not have, or none where it needs one.
    """
    if methods := [key for key in state if callable(getattr(cls, key, None))]:
        raise ValueError(f"it gives {name} an attribute for its {methods[0]}")
    if is_dataclass(cls):
        return cls(**state)
    made: Any = object.__new__(cls)
    learned = state
    if issubclass(cls, BaseEstimator):
        known = getattr(cls, "_learned", ())
        learned = {key: state.pop(key) for key in [*state] if key.endswith("_") or key in known}
        made = cls(**state)
    if hidden := [key for key in learned if key.startswith("__")]:
        raise ValueError(f"it gives {name} an attribute {hidden[0]!r}, which it may not have")
    vars(made).update(learned)
    return made
