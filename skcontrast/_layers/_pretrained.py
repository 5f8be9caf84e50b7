"""A pretrained network of images with its preprocessing, and one row per image."""

from __future__ import annotations

import math
from inspect import signature
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

# Usual names of a classification head.
_HEADS = ("fc", "_fc", "classifier", "head", "heads", "last_linear")
# Names of the parameter that is a class token.
_CLASS_TOKENS = ("cls_token", "class_token", "class_embedding")
# The option of networks of transformers that take images of any size.
_INTERPOLATES = "interpolate_pos_encoding"
# How transformers would find weights and code elsewhere.
_PLACES = ("_name_or_path", "attn_implementation", "_attn_implementation", "auto_map")
# First convolutions whose stride is their side, and so large, cut images into patches.
_LEAST_PATCH = 8
# Pixels that are encoded at once in training: the 256 views of a step at 98 pixels, 49 at 224.
_PIXELS, _PIXELS_ON_DEVICE = 256 * 98**2, 4 * 256 * 98**2


def without_head(network: nn.Module) -> str:
    """Remove the classification head of a network, in place, and return what was removed."""
    # A file needs the network itself only once.
    vars(network)["is_copy_of_pretrained"] = True
    if hasattr(network, "reset_classifier"):  # of timm
        network.reset_classifier(0)  # type: ignore[operator]
        return "classifier removed"
    for name, head in network.named_children():
        if name in _HEADS and isinstance(head, (nn.Linear, nn.Conv2d, nn.Sequential)):
            layers = [
                key
                for key, layer in head.named_modules(prefix=name)
                if isinstance(layer, (nn.Linear, nn.Conv2d))
            ]
            if layers:
                network.set_submodule(layers[-1], nn.Identity())
                return f"head {layers[-1]} removed"
    return "no head removed"


def recipe_of(module: Any) -> dict[str, Any] | None:
    """Return how a network is built again, None if it is of neither library or was changed."""
    origin = type(module).__module__.partition(".")[0]
    if origin == "timm" and hasattr(module, "pretrained_cfg"):
        known = module.pretrained_cfg
        name = known.get("architecture") if isinstance(known, dict) else known.architecture
        n_classes = getattr(module, "num_classes", 0)
        recipe = {"library": "timm", "name": name, "num_classes": n_classes}
        recipe["dynamic_img_size"] = getattr(module, "dynamic_img_size", False)
    elif origin == "transformers" and hasattr(module, "config"):
        config = {**module.config.to_diff_dict(), "model_type": module.config.model_type}
        recipe = {"library": "transformers", "name": type(module).__name__, "config": config}
        recipe["config"] = _without_places(config)
    else:
        return None
    # Built again without memory for weights: a network that was changed differs in shapes or text.
    try:
        with torch.device("meta"):
            again = built(recipe)
    except Exception:
        return None
    return recipe if _shapes(again) == _shapes(module) and repr(again) == repr(module) else None


def _shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}


def _without_places(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration, with those nested in it, that names nothing outside the library."""
    return {
        key: _without_places(value) if isinstance(value, dict) else value
        for key, value in config.items()
        if key not in _PLACES
    }


def built(recipe: dict[str, Any]) -> nn.Module:
    """Return a network with random weights, of an architecture that the library itself has."""
    library, name = recipe["library"], recipe["name"]
    if library == "timm":
        import timm

        if timm.is_model(name):
            options: dict[str, Any] = {"num_classes": int(recipe["num_classes"])}
            if recipe.get("dynamic_img_size"):
                options["dynamic_img_size"] = True
            return timm.create_model(name, pretrained=False, **options)
    elif library == "transformers":
        import transformers

        cls: Any = getattr(transformers, name, None)
        is_model = isinstance(cls, type) and issubclass(cls, transformers.PreTrainedModel)
        if is_model:
            config = _without_places(recipe["config"])
            return cls._from_config(transformers.AutoConfig.for_model(**config))
    raise ValueError(f"{library!r} has no network {name!r}")


def for_any_size(network: nn.Module) -> nn.Module:
    """Return a vision transformer of timm that interpolates its positions, or else `network`."""
    recipe = None if getattr(network, "dynamic_img_size", True) else recipe_of(network)
    if recipe is None or patch_of(network) == (1, 1):
        return network
    with torch.random.fork_rng(devices=[]):
        again = built(recipe | {"dynamic_img_size": True})
    again.load_state_dict(network.state_dict())
    return again


def patch_of(network: nn.Module) -> tuple[int, ...]:
    """Return height and width of the patches that become tokens, of a single pixel if none do."""
    first = next((one for one in network.modules() if isinstance(one, nn.Conv2d)), None)
    is_patch = first and first.stride == first.kernel_size and min(first.stride) >= _LEAST_PATCH
    return first.stride if first and is_patch else (1, 1)


def declared_size(network: Any) -> tuple[int, ...] | None:
    """Return the height and width of the images that a network was made for, None if unknown."""
    places = (
        (getattr(network, "patch_embed", None), "img_size"),
        (getattr(network, "config", network), "image_size"),
    )
    size = next((one for one in (getattr(*place, None) for place in places) if one), None)
    if size is None:
        size = (getattr(network, "pretrained_cfg", None) or {}).get("input_size", (None,))[-2:]
    return None if None in np.ravel(size) else tuple(np.broadcast_to(size, 2).tolist())


class Pixels(nn.Module):
    """Bring intensities in [0, 1] to the mean, std and size of a pretrained network.

    Parameters
    ----------
    mean, std : ndarray of shape (channels,)
        Of its training images.
    size : (int, int)
        Height and width.
    patch : (int, int)
        Height and width of what becomes a token.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self,
        mean: np.ndarray,
        std: np.ndarray,
        size: tuple[int, ...],
        patch: tuple[int, ...] = (1, 1),
    ):
        super().__init__()
        self.size, self.patch = size, patch
        self.register_buffer("mean", torch.tensor(mean).float()[:, None, None])
        self.register_buffer("std", torch.tensor(std).float()[:, None, None])

    @property
    def description(self) -> str:
        """The preprocessing."""
        mean, std = (", ".join(f"{one:.3g}" for one in m.flatten()) for m in (self.mean, self.std))
        n_tokens = math.prod(self.size) // math.prod(self.patch)
        tokens = f" ({n_tokens} tokens)" if max(self.patch) > 1 else ""
        return f"input {self.size[0]}×{self.size[1]}{tokens}, mean ({mean}), std ({std})"

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, 1 or channels, height, width) to (n, channels, *size)."""
        sides, size = tuple(x.shape[-2:]), self.size
        if sides != size:
            shrinks = sides[0] > size[0] or sides[1] > size[1]
            x = F.interpolate(x, size, mode="bilinear", antialias=shrinks)
        if x.shape[1] == 1:
            x = x.expand(-1, len(self.mean), -1, -1)
        return (x - self.mean) / self.std


class PretrainedNetwork(nn.Module):
    """A pretrained network, which stays in inference mode, with one row per image.

    Parameters
    ----------
    pixels : Pixels
        Its preprocessing.
    network : torch.nn.Module
        Maps images to rows, maps, tokens, or an output object of transformers.
    pool : {"token", "mean", "both"} or None
        The row of tokens: the class token, the mean of the patches, or both; None is the row that
        the network returns.

    Attributes
    ----------
    original : PretrainedNetwork or None
        A frozen copy from before the training. Its rows and those of the network are divided by
        their root mean square and added.
    notes : list of str
        What was done with it.
    """

    def __init__(self, pixels: Pixels, network: nn.Module, pool: str | None = None):
        super().__init__()
        self.pixels, self.network = pixels, network.eval()
        self.original: PretrainedNetwork | None = None
        self.notes: list[str] = []
        self.pool = _usual_pool(network) if pool is None else pool

    @property
    def description(self) -> str:
        """The name of the network, its preprocessing, and what was done with it."""
        name = type(self.network).__name__
        return f"{name}: {', '.join([self.pixels.description, *self.notes])}"

    def train(self, mode: bool = True) -> PretrainedNetwork:
        """Switch the mode of this module; the network keeps its statistics and drops nothing."""
        super().train(mode)
        self.network.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, height, width) to (n, width).

        In training, large batches are encoded in chunks. All but the last are computed again for
        the gradient (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016).
        """
        n_pixels = _PIXELS if x.device.type == "cpu" else _PIXELS_ON_DEVICE
        n = max(1, n_pixels // math.prod(self.pixels.size))
        if not (self.training and torch.is_grad_enabled()) or len(x) <= n:
            return self._rows(x)
        *others, last = x.chunk(-(-len(x) // n))
        rows = [
            checkpoint(self._rows, chunk, use_reentrant=False, preserve_rng_state=False)
            for chunk in others
        ]
        return torch.cat([*rows, self._rows(last)])

    def _rows(self, x: Tensor) -> Any:
        pixels = self.pixels(x)
        if self.original is None:
            return self._own_rows(pixels)
        with torch.no_grad():
            # In training at the size of the trained network, which takes less time.
            frozen = self.original._own_rows(pixels if self.training else self.original.pixels(x))
        shape = frozen.shape[1:]
        return F.rms_norm(self._own_rows(pixels), shape) + F.rms_norm(frozen, shape)

    def _own_rows(self, x: Tensor) -> Any:
        network = self.network
        if self.pool is not None:
            return self._pooled_tokens(_output(getattr(network, "forward_features", network), x))
        found = _output(network, x)
        if hasattr(found, "last_hidden_state"):
            found = self._pooled(found)
        found = getattr(found, "logits", found)  # of a classifier without its head
        n_axes = getattr(found, "ndim", 2)
        return found if n_axes == 2 else found.mean(1 if n_axes == 3 else (2, 3))

    def _pooled_tokens(self, tokens: Any) -> Tensor:
        """Return the class token, the mean of the patches, or both."""
        tokens = getattr(tokens, "last_hidden_state", tokens)
        n, name = _n_prefix_tokens(self.network), type(self.network).__name__
        if getattr(tokens, "ndim", 0) != 3:
            raise ValueError(f"pool={self.pool!r} needs tokens, which {name} does not return")
        if n == 0 and self.pool != "mean":
            raise ValueError(f"{name} has no class token for pool={self.pool!r}")
        norm = getattr(self.network, "fc_norm", nn.Identity())  # of timm
        rows = {"token": tokens[:, 0], "mean": tokens[:, n:].mean(1)}
        return torch.cat([norm(row) for key, row in rows.items() if self.pool in (key, "both")], 1)

    def _pooled(self, output: Any) -> Tensor:
        """Return a row, a map or tokens of an output object of transformers."""
        pooled = getattr(output, "pooler_output", None)
        # Transformers draws a dense pooler at random where a checkpoint has none.
        if pooled is not None and not hasattr(getattr(self.network, "pooler", None), "dense"):
            return pooled
        states = output.last_hidden_state
        return states[:, 0] if _n_prefix_tokens(self.network) else states


def _output(network: Any, x: Tensor) -> Any:
    """Return what a network makes of images; those of transformers interpolate their positions."""
    is_asked = (
        hasattr(network, "config") and _INTERPOLATES in signature(network.forward).parameters
    )
    return network(x, **({_INTERPOLATES: True} if is_asked else {}))


def _usual_pool(network: Any) -> str | None:
    """Return "token" for DINOv3 in timm, which averages, against the advice of its authors."""
    averages = getattr(network, "global_pool", "") == "avg" and _n_prefix_tokens(network)
    # A class token that the last norm has not seen is for pretraining alone.
    is_normalised = isinstance(getattr(network, "fc_norm", None), nn.Identity)
    return "token" if averages and is_normalised else None


def _n_prefix_tokens(network: Any) -> int:
    """Return the number of tokens before those of the patches, 0 without a class token."""
    names = (name for name, _ in network.named_parameters())
    if not any(name.endswith(_CLASS_TOKENS) for name in names):
        return 0
    n_registers = getattr(getattr(network, "config", None), "num_register_tokens", 0)
    return int(getattr(network, "num_prefix_tokens", 1 + n_registers))
