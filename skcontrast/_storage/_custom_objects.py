"""Custom objects, of neither skcontrast nor torch: their names in a file and what it holds.

Of a module, a file holds the ``state_dict``; of an object with parameters, such as a loss or an
augmentation, these; of functions and classes only the name. Everything else is as in the object
that is passed when the file is read. Networks of timm and transformers are names and numbers,
built again without code from a file: only the architecture is named, never where weights are.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any

import torch
from torch import nn

from .._layers._pretrained import without_head

# How transformers would find weights and code elsewhere.
_PLACES = ("_name_or_path", "attn_implementation", "_attn_implementation", "auto_map")


def own_name(value: object) -> str:
    """Return the name of a class or a function, or of the class of an object."""
    cls = value if inspect.isclass(value) or inspect.isroutine(value) else type(value)
    return f"{cls.__module__}.{cls.__qualname__}"


def has_parameters(value: Any) -> bool:
    """Return whether a value is an object with parameters as scikit-learn has them."""
    return hasattr(value, "get_params") and not inspect.isclass(value)


def check_custom(value: Any, place: str) -> None:
    """Raise TypeError for an object of which a file would lose something."""
    is_known = isinstance(value, nn.Module) or callable(value) or has_parameters(value)
    if not is_known and getattr(value, "__dict__", None):
        raise TypeError(
            f"{place} is a {type(value).__name__}, whose attributes cannot be written. Derive its "
            "class from torch.nn.Module, with what it learns in buffers, or from "
            "sklearn.base.BaseEstimator, with parameters only."
        )


def with_weights(passed: Any, state: dict[str, Any], name: str, has_head: bool) -> nn.Module:
    """Return a copy of a module with the weights of a file."""
    if not isinstance(passed, nn.Module):
        raise ValueError(f"custom_objects[{name!r}] must be a module, got {passed!r}")
    module = copy.deepcopy(passed)
    if not has_head:
        without_head(module.float())
    try:
        return filled(module, state)
    except RuntimeError as error:
        raise ValueError(
            f"the module passed as custom_objects[{name!r}] differs: {error}"
        ) from error


def filled(module: nn.Module, state: dict[str, Any]) -> nn.Module:
    """Return a module with the weights of a file, in their layout, frozen as they were."""
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


# Networks of timm and transformers
def recipe_of(module: Any) -> dict[str, Any] | None:
    """Return how a network is built again, None if it is of neither library or was changed."""
    origin = type(module).__module__.partition(".")[0]
    if origin == "timm" and hasattr(module, "pretrained_cfg"):
        known = module.pretrained_cfg
        name = known.get("architecture") if isinstance(known, dict) else known.architecture
        n_classes = getattr(module, "num_classes", 0)
        recipe = {"library": "timm", "name": name, "num_classes": n_classes}
    elif origin == "transformers" and hasattr(module, "config"):
        config = {**module.config.to_diff_dict(), "model_type": module.config.model_type}
        recipe = {"library": "transformers", "name": type(module).__name__, "config": config}
        recipe["config"] = _without_places(config)
    else:
        return None
    # Built again without memory for weights: a network that was changed differs in shapes or text.
    try:
        with torch.device("meta"):
            again = _built(recipe)
    except Exception:
        return None
    return recipe if _shapes(again) == _shapes(module) and repr(again) == repr(module) else None


def rebuilt(recipe: Any, state: dict[str, Any]) -> nn.Module:
    """Return the network of a recipe in a file, with the weights of the file.

    Raises
    ------
    ValueError
        If the recipe names no network of the library itself.
    RuntimeError
        If the weights are not of it.
    ImportError
        If the library is not installed.
    """
    with torch.random.fork_rng(devices=[]):
        module = _built(recipe)
    return filled(module, state).eval()


def _shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}


def _without_places(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration, with those nested in it, that names nothing outside the library."""
    return {
        key: _without_places(value) if isinstance(value, dict) else value
        for key, value in config.items()
        if key not in _PLACES
    }


def _built(recipe: dict[str, Any]) -> nn.Module:
    """Return a network with random weights, of an architecture that the library itself has."""
    library, name = recipe["library"], recipe["name"]
    if library == "timm":
        import timm

        if timm.is_model(name):
            n_classes = int(recipe["num_classes"])
            return timm.create_model(name, pretrained=False, num_classes=n_classes)
    elif library == "transformers":
        import transformers

        cls: Any = getattr(transformers, name, None)
        is_model = isinstance(cls, type) and issubclass(cls, transformers.PreTrainedModel)
        if is_model:
            config = _without_places(recipe["config"])
            return cls._from_config(transformers.AutoConfig.for_model(**config))
    raise ValueError(f"{library!r} has no network {name!r}")
