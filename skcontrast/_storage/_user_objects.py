"""Custom objects, of neither skcontrast nor torch: their names in a file and what it holds.

Of a module, a file holds the ``state_dict``; of an object with parameters, such as a loss or an
augmentation, these; of functions and classes only the name. Everything else is as in the object
that is passed when the file is read. Networks of timm and transformers are names and numbers,
built again without code from a file: only the architecture is named, never where weights lie.
"""

from __future__ import annotations

import copy
import inspect
import re
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils.parametrize import is_parametrized

from .._layers._pretrained import without_layers


def own_name(value: object) -> str:
    """Return the name of a class or a function, or of the class of an object."""
    cls = value if inspect.isclass(value) or inspect.isroutine(value) else type(value)
    return f"{cls.__module__}.{cls.__qualname__}"


def has_parameters(value: Any) -> bool:
    """Return whether a value is an object with parameters as scikit-learn has them."""
    return hasattr(value, "get_params") and not inspect.isclass(value)


def check_own(value: Any, place: str) -> None:
    """Raise TypeError for an object of which a file would lose something."""
    if isinstance(value, nn.Module):
        if is_parametrized(value):
            raise TypeError(
                f"{place} is a {type(value).__name__}, a layer with a parametrization of torch "
                "such as weight_norm, which cannot be written. Remove it by "
                "torch.nn.utils.parametrize.remove_parametrizations, or put the layer into a "
                "custom module."
            )
    elif not (callable(value) or has_parameters(value)) and getattr(value, "__dict__", None):
        raise TypeError(
            f"{place} is a {type(value).__name__}, whose attributes cannot be written. Derive its "
            "class from torch.nn.Module, with what it learns in buffers, or from "
            "sklearn.base.BaseEstimator, with parameters only."
        )


def with_weights(
    given: Any, state: dict[str, Any], name: str, *, has_head: bool = True
) -> nn.Module:
    """Return a copy of a module with the weights of a file."""
    if not isinstance(given, nn.Module):
        raise ValueError(f"own[{name!r}] must be a module, an object of its class, got {given!r}")
    module = copy.deepcopy(given)
    module = module if has_head else without_layers(module, set(state))
    try:
        for key, tensor in module.state_dict().items():
            stored = state.get(key)
            if isinstance(stored, Tensor) and tensor.dtype != stored.dtype:
                raise RuntimeError(f"its {key} has {tensor.dtype} instead of {stored.dtype}")
        return filled(module, state)
    except RuntimeError as error:
        raise ValueError(f"the module passed as own[{name!r}] differs: {error}") from error


def filled(module: nn.Module, state: dict[str, Any]) -> nn.Module:
    """Return a module with the weights of a file, in their layout, frozen as they were."""
    trains = {name: getattr(tensor, "requires_grad", False) for name, tensor in state.items()}
    module.load_state_dict(state, assign=True)  # which leaves these as they are in the module
    for name, parameter in module.named_parameters():
        parameter.requires_grad_(trains[name])
    return module


def with_parameters(given: Any, parameters: dict[str, Any], name: str) -> Any:
    """Return a copy of an object with the parameters of a file."""
    if not has_parameters(given):
        raise ValueError(f"own[{name!r}] must be an object with parameters, got {given!r}")
    wrong = sorted(parameters.keys() ^ given.get_params(deep=False).keys())
    if wrong:
        raise ValueError(f"own[{name!r}] and the file do not both have {', '.join(wrong)}")
    return copy.copy(given).set_params(**parameters)


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
        config = {k: v for k, v in config.items() if k not in ("_name_or_path", "auto_map")}
        recipe = {"library": "transformers", "name": type(module).__name__, "config": config}
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
        If the recipe names no network, or the weights are not of it.
    ImportError
        If the library is not installed.
    """
    with torch.device("meta"):  # nothing large is made before it is known to fit the file
        expected = _shapes(_built(recipe))
    if expected != {name: tuple(tensor.shape) for name, tensor in state.items()}:
        raise ValueError(f"its weights are not those of {recipe.get('name')!r}")
    with torch.random.fork_rng(devices=[]):
        module = _built(recipe)
    return filled(module, state).eval()


def _shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}


def _built(recipe: Any) -> nn.Module:
    """Return a network with random weights, of an architecture that the library itself has."""
    library, name = recipe["library"], recipe["name"]
    if not re.fullmatch(r"\w+", name):
        raise ValueError(f"{name!r} is no name of an architecture")
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
            given = {k: v for k, v in recipe["config"].items() if k != "auto_map"}
            return cls._from_config(transformers.AutoConfig.for_model(**given))
    raise ValueError(f"{library!r} has no network {name!r}")
