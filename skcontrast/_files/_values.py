"""Objects as JSON and tensors, and back, without running any code that a file could name.

JSON scalars, lists and dictionaries with names as keys are written unchanged. Every other value
is a dictionary with one of these keys:

=============  ====================================================================================
``$float``     "nan", "inf" or "-inf"
``$tuple``     the elements
``$pairs``     keys and values of a dictionary whose keys are not names
``$tensor``    the name of a tensor, and whether it was a "tensor", an "array" of NumPy, a
               "parameter" of a network or a "frozen" one
``$strings``   an array of strings
``$class``     the name of a class itself, such as an optimizer
``$object``    the name of a class, with the attributes of an object in ``state``
``$library``   the recipe of a network of timm or transformers, with its ``state_dict``
``$custom``    the name of an object that belongs neither to skcontrast nor to torch and must be
               passed when the file is read: a module with its ``state_dict``, an object with its
               ``params``, or anything else, such as a function
=============  ====================================================================================

A file holds the ``state_dict`` of a module, the parameters of an object with parameters, such as a
loss, and the names of functions and classes. Everything else is as in the object that is passed
when the file is read. Networks of timm and transformers are built again from the name of their
architecture.
"""

import copy
import inspect
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from sklearn.base import BaseEstimator
from torch import Tensor, nn

from ..encoders._pretrained_network import build, recipe_of, remove_head, with_any_size

# The attributes of every module, and those of them that are saved.
_MODULE = frozenset(vars(nn.Module()))
_MEMBERS = ("_parameters", "_buffers", "_modules")


class Writer:
    """Turns objects into JSON, and collects their tensors.

    Parameters
    ----------
    classes : dict of str to type
        The classes that the file may name.

    Attributes
    ----------
    tensors : dict of str to Tensor
        The numbers, by their names in the JSON.
    custom : dict of str to str
        Names of the objects that must be passed when the file is read, and where each occurs
        first.
    """

    def __init__(self, classes: Mapping[str, type]):
        self.names = {cls: name for name, cls in classes.items()}
        self.tensors: dict[str, Tensor] = {}
        self.custom: dict[str, str] = {}
        self._by_class: dict[str, list[Any]] = {}
        # By id, with the object, because a freed object's id may be reused.
        self._seen: dict[int, tuple[str, Any]] = {}

    def write(self, value: Any, name: str) -> Any:
        """Return a section of the file as JSON; numbers of custom objects start again in each."""
        self._by_class = {}
        return self._write(value, name)

    def _write(self, value: Any, name: str) -> Any:
        """Return an object as JSON; `name` is its path in the file, which names its tensors."""
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
        is_known = type(value) in self.names and not _has_hooks(value)
        return (self._object if is_known else self._custom)(value, name)

    def _array(self, value: np.ndarray | Tensor, name: str) -> dict[str, Any]:
        """Return a reference to a stored array or tensor; each is stored only once."""
        if isinstance(value, np.ndarray) and value.dtype.kind in "OUMm":
            if not all(isinstance(item, str) for item in value.flat) or value.ndim != 1:
                raise TypeError(f"{name} is an array of dtype {value.dtype}; it cannot be saved.")
            return {"$strings": value.tolist(), "object": value.dtype == object}
        if isinstance(value, Tensor) and nn.parameter.is_lazy(value):
            raise TypeError(
                f"{name} is in a lazy layer, which cannot be written before its first call: "
                "call the module once, on a batch."
            )
        if id(value) not in self._seen:
            self._seen[id(value)] = (name, value)
            # torch takes neither read-only arrays nor negative strides.
            array = np.array(value, order="C") if isinstance(value, np.ndarray) else value
            tensor = torch.as_tensor(array).detach().cpu()
            self.tensors[name] = tensor.clone(memory_format=torch.contiguous_format)
        name = self._seen[id(value)][0]
        if isinstance(value, np.ndarray):
            return {"$tensor": name, "is": "array"}
        role = "tensor"
        if isinstance(value, nn.Parameter):
            role = "parameter" if value.requires_grad else "frozen"
        # A different layout selects another kernel, which rounds differently.
        channels_last = value.ndim == 4 and value.stride() != self.tensors[name].stride()
        return {"$tensor": name, "is": role, "channels_last": channels_last}

    def _dictionary(self, value: dict, name: str) -> Any:
        """Return a dictionary as JSON, unchanged if its keys are names."""
        if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: self._write(item, f"{name}.{key}") for key, item in value.items()}
        items = list(value.items())
        return {"$pairs": [self._write([*item], f"{name}.{k}") for k, item in enumerate(items)]}

    def _object(self, value: Any, name: str) -> dict[str, Any]:
        """Return an object of skcontrast or a module of torch as JSON, with its attributes."""
        state = vars(value)
        left_out = {"_metadata_request", *getattr(value, "_samples", ())}
        if isinstance(value, nn.Module):
            left_out |= _MODULE - {*_MEMBERS}
            state = {**state, "volatile": sorted(value._non_persistent_buffers_set)}
        written = {
            key: self._write(item, name if key in _MEMBERS else f"{name}.{key}")
            for key, item in state.items()
            if key not in left_out
        }
        return {"$object": self.names[type(value)], "state": written}

    def _custom(self, value: Any, name: str) -> dict[str, Any]:
        """Return the name and the state of an object that must be passed when the file is read."""
        check_custom(value, name)
        if not isinstance(value, nn.Module):
            written: dict[str, Any] = {"$custom": self._custom_name(value, name)}
            if has_parameters(value):
                written["params"] = self._dictionary(value.get_params(deep=False), name)
            return written
        state = self._dictionary(dict(value.state_dict(keep_vars=True)), name)
        if (recipe := recipe_of(value)) is not None:
            return {"$library": recipe, "state_dict": state}
        has_head = not getattr(value, "is_copy_of_pretrained", False)
        name = self._custom_name(value, name)
        return {"$custom": name, "state_dict": state, "has_head": has_head}

    def _custom_name(self, value: Any, path: str) -> str:
        """Return the name of a custom object at a path in the file.

        The second object of a class has the name of the class with ``#2``, and so on. Numbers
        start again in each section of the file, so that a copy has the name of the original.
        """
        base = qualified_name(value)
        objects = self._by_class.setdefault(base, [])
        is_copy = getattr(value, "is_copy_of_pretrained", False)
        same = (k for k, other in enumerate(objects) if is_copy or other is value)
        number = next(same, len(objects))
        if number == len(objects):
            objects.append(value)
        name = f"{base}#{number + 1}" if number else base
        self.custom.setdefault(name, path)
        return name


class Reader:
    """Turns JSON and tensors into objects.

    Parameters
    ----------
    classes : dict of str to type
        The classes that a file may name.
    tensors : dict of str to Tensor
        The numbers.
    custom : dict of str to object
        The objects that the user passes, by their names in the JSON.
    """

    def __init__(
        self, classes: Mapping[str, type], tensors: Mapping[str, Tensor], custom: Mapping[str, Any]
    ):
        self.classes, self.tensors, self.custom = classes, tensors, custom
        self._parameters: dict[str, nn.Parameter] = {}

    def read(self, value: Any) -> Any:
        """Return an object from JSON."""
        if isinstance(value, list):
            return [self.read(item) for item in value]
        match value:
            case {"$float": text}:
                return float(text)
            case {"$tuple": items}:
                return tuple(self.read(items))
            case {"$pairs": items}:
                return dict(self.read(items))
            case {"$strings": items}:
                return np.array(items, dtype=object if value["object"] else str)
            case {"$tensor": name}:
                return self._tensor(self.tensors[name], name, value)
            case {"$class": name}:
                return self._known(name)
            case {"$custom": name}:
                return self._custom(self.custom[name], name, value)
            case {"$library": recipe}:
                return rebuild(recipe, self.read(value["state_dict"]))
            case {"$object": name}:
                return self._object(self._known(name), self.read(value["state"]))
            case dict() if any(key.startswith("$") for key in value):
                raise ValueError(f"it has an unknown key {next(iter(value))!r}")
            case dict():
                return {key: self.read(item) for key, item in value.items()}
        return value

    def _tensor(self, tensor: Tensor, name: str, value: dict) -> np.ndarray | Tensor:
        role = value["is"]
        if role == "array":
            return tensor.numpy()
        if value["channels_last"]:
            tensor = torch.empty_like(tensor, memory_format=torch.channels_last).copy_(tensor)
        if role == "tensor":
            return tensor
        parameter = nn.Parameter(tensor, requires_grad=role == "parameter")
        return self._parameters.setdefault(name, parameter)

    def _custom(self, passed: Any, name: str, value: dict) -> Any:
        if "params" in value:
            return with_parameters(passed, self.read(value["params"]), name)
        if "state_dict" not in value:
            return passed
        return with_weights(passed, self.read(value["state_dict"]), name, value["has_head"])

    def _object(self, cls: Any, state: dict[str, Any]) -> Any:
        """Return an object with attributes; missing parameters have their defaults."""
        result = object.__new__(cls)
        if issubclass(cls, nn.Module):
            nn.Module.__init__(result)
            result._non_persistent_buffers_set.update(state.pop("volatile"))
            for members in _MEMBERS:
                getattr(result, members).update(state.pop(members))
            result.eval()
        elif issubclass(cls, BaseEstimator):
            names = [name for name in cls._get_param_names() if name in state]
            result = cls(**{name: state.pop(name) for name in names})
        vars(result).update(state)
        return result

    def _known(self, name: str) -> type:
        """Return the class with a name in a file."""
        if name not in self.classes:
            raise ValueError(f"it names {name!r}, which is not in this version of skcontrast")
        return self.classes[name]


def _has_hooks(value: Any) -> bool:
    """Return whether a module has hooks or a ``forward`` of its own."""
    hooks = ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks")
    is_module = isinstance(value, nn.Module)
    return is_module and ("forward" in vars(value) or any(getattr(value, key) for key in hooks))


# Custom objects, which belong neither to skcontrast nor to torch
def qualified_name(value: object) -> str:
    """Return the name of a class or a function, or of the class of an object."""
    cls = value if inspect.isclass(value) or inspect.isroutine(value) else type(value)
    return f"{cls.__module__}.{cls.__qualname__}"


def has_parameters(value: Any) -> bool:
    """Return whether a value is an object with scikit-learn's ``get_params``."""
    return hasattr(value, "get_params") and not inspect.isclass(value)


def check_custom(value: Any, path: str) -> None:
    """Raise TypeError for an object whose state a file would not keep."""
    is_known = isinstance(value, nn.Module) or callable(value) or has_parameters(value)
    if not is_known and getattr(value, "__dict__", None):
        raise TypeError(
            f"{path} is a {type(value).__name__}, whose attributes cannot be written: derive its "
            "class from torch.nn.Module, or from sklearn.base.BaseEstimator."
        )


def with_weights(passed: Any, state: dict[str, Any], name: str, has_head: bool) -> nn.Module:
    """Return a copy of a module with the weights of a file."""
    if not isinstance(passed, nn.Module):
        raise ValueError(f"custom_objects[{name!r}] must be a module, got {passed!r}")
    module = copy.deepcopy(passed)
    if not has_head:
        module = with_any_size(module.float())
        remove_head(module)
    try:
        return load_weights(module, state)
    except RuntimeError as error:
        raise ValueError(f"the module custom_objects[{name!r}] differs: {error}") from error


def load_weights(module: nn.Module, state: dict[str, Any]) -> nn.Module:
    """Load weights of a file with their layout and ``requires_grad``, and return the module."""
    trained = {name for name, value in state.items() if getattr(value, "requires_grad", False)}
    module.load_state_dict(state, assign=True)  # sets requires_grad to that of the module
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(name in trained)
    return module


def with_parameters(passed: Any, parameters: dict[str, Any], name: str) -> Any:
    """Return a copy of an object with the parameters of a file."""
    if not has_parameters(passed):
        raise ValueError(f"custom_objects[{name!r}] must have parameters, got {passed!r}")
    return copy.copy(passed).set_params(**parameters)


def rebuild(recipe: Any, state: dict[str, Any]) -> nn.Module:
    """Build the network of a recipe in a file, and load the weights of the file.

    Raises
    ------
    ValueError
        If the recipe does not name a network of the library.
    RuntimeError
        If the weights do not fit the network.
    ImportError
        If the library is not installed.
    """
    with torch.random.fork_rng(devices=[]):
        module = build(recipe)
    return load_weights(module, state).eval()
