"""Networks of timm and transformers as names and numbers, built again without code from a file.

Only the architecture is named, never where weights lie: these are in the file.
"""

from __future__ import annotations

import re
from typing import Any

import torch
from torch import nn

from ._user_objects import filled


def recipe_of(module: Any) -> dict[str, Any] | None:
    """Return how a network is built again, None if it is of neither library or was changed."""
    origin = type(module).__module__.partition(".")[0]
    recipe: dict[str, Any] | None = None
    if origin == "timm" and hasattr(module, "pretrained_cfg"):
        known = module.pretrained_cfg
        name = known.get("architecture") if isinstance(known, dict) else known.architecture
        has_head = getattr(module, "num_classes", 0)
        recipe = {"library": "timm", "name": name, "num_classes": has_head}
    elif origin == "transformers" and hasattr(module, "config"):
        config = module.config.to_diff_dict()
        config = {k: v for k, v in config.items() if k not in ("_name_or_path", "auto_map")}
        kind = module.config.model_type
        recipe = {"library": "transformers", "name": type(module).__name__, "config": config}
        recipe["config"]["model_type"] = kind
    if recipe is None:
        return None
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
    if not isinstance(recipe, dict) or not isinstance(recipe.get("name"), str):
        raise ValueError(f"it describes no network: {recipe!r}")
    name = recipe["name"]
    if not re.fullmatch(r"\w+", name):
        raise ValueError(f"{name!r} is no name of an architecture")
    if recipe.get("library") == "timm":
        return _of_timm(name, recipe.get("num_classes"))
    if recipe.get("library") == "transformers":
        return _of_transformers(name, recipe.get("config"))
    raise ValueError(f"it holds a network of {recipe.get('library')!r}, which is not known")


def _of_timm(name: str, num_classes: Any) -> nn.Module:
    import timm

    if not timm.is_model(name) or not isinstance(num_classes, int):
        raise ValueError(f"timm has no network {name!r}")
    return timm.create_model(name, pretrained=False, num_classes=num_classes)


def _of_transformers(name: str, config: Any) -> nn.Module:
    import transformers

    cls: Any = getattr(transformers, name, None)
    is_model = isinstance(cls, type) and issubclass(cls, transformers.PreTrainedModel)
    if not is_model or not isinstance(config, dict):
        raise ValueError(f"transformers has no network {name!r}")
    given = {key: value for key, value in config.items() if key not in ("auto_map", "model_type")}
    known = transformers.AutoConfig.for_model(config.get("model_type"), **given)
    return cls._from_config(known)
