"""Layers of pretrained image networks: preprocessing, the network, and pooling."""

from __future__ import annotations

import math
from inspect import signature
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

# Common names of classification heads.
_HEADS = ("fc", "_fc", "classifier", "head", "heads", "last_linear")
# Names of the parameter of a class token.
_CLASS_TOKENS = ("cls_token", "class_token", "class_embedding")
# Argument of networks of transformers that accept images of any size.
_INTERPOLATES = "interpolate_pos_encoding"
# Entries by which transformers would load weights or code from elsewhere.
_SOURCES = ("_name_or_path", "attn_implementation", "_attn_implementation", "auto_map")
# A first convolution whose stride equals its side, and is at least this, cuts images into patches.
_LEAST_PATCH = 8
# Pixels per chunk in training: the 256 views of a step at 98 pixels, or 49 views at 224
# pixels.
_PIXELS, _PIXELS_ON_DEVICE = 256 * 98**2, 4 * 256 * 98**2


def remove_head(network: nn.Module) -> str:
    """Remove the classification head of a network in place; return a note about it."""
    # Marks the copy, which has the name of the original in a file.
    vars(network)["is_copy_of_pretrained"] = True
    if hasattr(network, "reset_classifier"):  # of timm
        network.reset_classifier(0)  # type: ignore[operator]
        return "classifier removed"
    for name, head in network.named_children():
        if name in _HEADS and isinstance(head, (nn.Linear, nn.Conv2d, nn.Sequential)):
            named = head.named_modules(prefix=name)
            if layers := [k for k, part in named if isinstance(part, (nn.Linear, nn.Conv2d))]:
                network.set_submodule(layers[-1], nn.Identity())
                return f"head {layers[-1]} removed"
    return "no head removed"


def recipe_of(module: Any) -> dict[str, Any] | None:
    """Return how to rebuild a network; None if it is changed or not of timm or transformers."""
    origin = type(module).__module__.partition(".")[0]
    if origin == "timm" and hasattr(module, "pretrained_cfg"):
        source = module.pretrained_cfg
        name = source.get("architecture") if isinstance(source, dict) else source.architecture
        n_classes = getattr(module, "num_classes", 0)
        recipe = {"library": "timm", "name": name, "num_classes": n_classes}
        recipe["dynamic_img_size"] = getattr(module, "dynamic_img_size", False)
    elif origin == "transformers" and hasattr(module, "config"):
        config = {**module.config.to_diff_dict(), "model_type": module.config.model_type}
        recipe = {"library": "transformers", "name": type(module).__name__, "config": config}
        recipe["config"] = _without_sources(config)
    else:
        return None
    # Rebuild without allocating weights: if the network was changed, shapes or text differ.
    try:
        with torch.device("meta"):
            rebuilt = build(recipe)
    except Exception:
        return None
    is_same = _shapes(rebuilt) == _shapes(module) and repr(rebuilt) == repr(module)
    return recipe if is_same else None


def _shapes(module: nn.Module) -> dict[str, tuple[int, ...]]:
    return {name: tuple(tensor.shape) for name, tensor in module.state_dict().items()}


def _without_sources(config: dict[str, Any]) -> dict[str, Any]:
    """Return a configuration without references outside the library, also in nested ones."""
    return {
        key: _without_sources(value) if isinstance(value, dict) else value
        for key, value in config.items()
        if key not in _SOURCES
    }


def build(recipe: dict[str, Any]) -> nn.Module:
    """Build a network of timm or transformers with random weights from its recipe."""
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
            config = _without_sources(recipe["config"])
            return cls._from_config(transformers.AutoConfig.for_model(**config))
    raise ValueError(f"{library!r} has no network {name!r}")


def with_any_size(network: Any) -> nn.Module:
    """Return a timm transformer that interpolates its positions; other networks unchanged."""
    if getattr(network, "dynamic_img_size", True) or patch_of(network) == (1, 1):
        return network
    # As its __init__ does for this option. Rotary positions are computed there.
    if getattr(network, "rope", None) is None and hasattr(network, "pos_embed"):
        from timm.layers import Format

        patches, network.dynamic_img_size = network.patch_embed, True
        patches.strict_img_size, patches.flatten = False, False
        patches.output_fmt = Format("NHWC")
    elif (recipe := recipe_of(network)) is not None:
        with torch.random.fork_rng(devices=[]):
            rebuilt = build(recipe | {"dynamic_img_size": True})
        rebuilt.load_state_dict(network.state_dict())
        return rebuilt
    return network


def patch_of(network: nn.Module) -> tuple[int, ...]:
    """Return height and width of the patches that become tokens, (1, 1) without patches."""
    first = next((layer for layer in network.modules() if isinstance(layer, nn.Conv2d)), None)
    is_patch = first and first.stride == first.kernel_size and min(first.stride) >= _LEAST_PATCH
    return first.stride if first and is_patch else (1, 1)


def declared_size(network: Any) -> tuple[int, ...] | None:
    """Return the height and width of images that a network declares, None if unknown."""
    size = getattr(getattr(network, "patch_embed", None), "img_size", None)
    size = size or getattr(getattr(network, "config", network), "image_size", None)
    if not size:
        size = (getattr(network, "pretrained_cfg", None) or {}).get("input_size", (None,))[-2:]
    return None if None in np.ravel(size) else tuple(np.broadcast_to(size, 2).tolist())


class Preprocessing(nn.Module):
    """Resize and standardise images as a pretrained network expects them.

    Parameters
    ----------
    mean, std : ndarray of shape (channels,)
        Mean and standard deviation of the network's training images.
    size : (int, int)
        Height and width.
    patch : (int, int)
        Height and width of a patch that becomes a token.
    """

    mean: Tensor
    std: Tensor

    def __init__(
        self, mean: np.ndarray, std: np.ndarray, size: tuple[int, ...], patch: tuple[int, ...]
    ):
        super().__init__()
        self.size, self.patch = size, patch
        self.register_buffer("mean", torch.tensor(mean).float()[:, None, None])
        self.register_buffer("std", torch.tensor(std).float()[:, None, None])

    @property
    def description(self) -> str:
        """The preprocessing in words."""
        mean, std = (", ".join(f"{x:.3g}" for x in m.flatten()) for m in (self.mean, self.std))
        return f"{self.input}, mean ({mean}), std ({std})"

    @property
    def input(self) -> str:
        """The size of the images in words."""
        n_tokens = math.prod(np.floor_divide(self.size, self.patch).tolist())
        tokens = f" ({n_tokens} tokens)" if max(self.patch) > 1 else ""
        return f"input {self.size[0]}×{self.size[1]}{tokens}"

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
    """A pretrained network in inference mode, which returns one row per image.

    Parameters
    ----------
    pixels : Preprocessing
        Its preprocessing.
    network : torch.nn.Module
        Maps images to rows, feature maps, tokens, or an output object of transformers.
    pool : {"token", "mean", "both"} or None
        Pooling of tokens: the class token, the mean of the patches, or both. None is the output
        of the network.

    Attributes
    ----------
    original : PretrainedNetwork or None
        A frozen copy from before the training. The output is the sum of its rows and those of the
        network, each divided by its root mean square.
    notes : list of str
        Parts of `description`, such as the head that was removed.
    """

    def __init__(self, pixels: Preprocessing, network: nn.Module, pool: str | None = None):
        super().__init__()
        self.pixels, self.network = pixels, network.eval()
        self.original: PretrainedNetwork | None = None
        self.notes: list[str] = []
        self.pool = _default_pool(network) if pool is None else pool

    @property
    def description(self) -> str:
        """The name of the network, its preprocessing and the notes."""
        name = type(self.network).__name__
        return f"{name}: {', '.join([self.pixels.description, *self.notes])}"

    def train(self, mode: bool = True) -> PretrainedNetwork:
        """Switch the mode of this module; the network stays in inference mode."""
        super().train(mode)
        self.network.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, height, width) to (n, width).

        In training, large batches are encoded in chunks. All but the last are recomputed for the
        gradient (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016).
        """
        n_pixels = _PIXELS if x.device.type == "cpu" else _PIXELS_ON_DEVICE
        n = max(1, n_pixels // math.prod(self.pixels.size))
        if not (self.training and torch.is_grad_enabled()) or len(x) <= n:
            return self._rows(x)
        *others, last = x.chunk(-(-len(x) // n))
        options: Any = {"use_reentrant": False, "preserve_rng_state": False}
        rows = [checkpoint(self._rows, chunk, **options) for chunk in others]
        return torch.cat([*rows, self._rows(last)])

    def _rows(self, x: Tensor) -> Any:
        pixels, original = self.pixels(x), self.original
        if original is None:
            return self._network_rows(pixels)
        with torch.no_grad():
            # In training, both have the smaller size of the trained network, which takes less
            # time.
            frozen = original._network_rows(pixels if self.training else original.pixels(x))
        shape = frozen.shape[1:]
        return F.rms_norm(self._network_rows(pixels), shape) + F.rms_norm(frozen, shape)

    def _network_rows(self, x: Tensor) -> Any:
        network = self.network
        if self.pool is not None:
            return self._pooled_tokens(_output(getattr(network, "forward_features", network), x))
        output = _output(network, x)
        if hasattr(output, "last_hidden_state"):
            output = self._pooled(output)
        output = getattr(output, "logits", output)  # of a classifier without its head
        n_axes = getattr(output, "ndim", 2)
        return output if n_axes == 2 else output.mean(1 if n_axes == 3 else (2, 3))

    def _pooled_tokens(self, tokens: Any) -> Tensor:
        """Return the class token, the mean of the patches, or both."""
        tokens = getattr(tokens, "last_hidden_state", tokens)
        n, name = _n_prefix_tokens(self.network), type(self.network).__name__
        if getattr(tokens, "ndim", 0) != 3:
            raise ValueError(
                f"pool={self.pool!r} needs a network that returns tokens (n, tokens, width), as "
                f"those of timm and transformers, but {name} does not: omit pool=."
            )
        if n == 0 and self.pool != "mean":
            raise ValueError(f"{name} has no class token for pool={self.pool!r}: omit pool=.")
        norm = getattr(self.network, "fc_norm", nn.Identity())  # of timm
        rows = {"token": tokens[:, 0], "mean": tokens[:, n:].mean(1)}
        return torch.cat([norm(row) for key, row in rows.items() if self.pool in (key, "both")], 1)

    def _pooled(self, output: Any) -> Tensor:
        """Return rows, feature maps or tokens from an output object of transformers."""
        pooled = getattr(output, "pooler_output", None)
        # If the checkpoint has no pooler, the weights of a dense one are random.
        if pooled is not None and not hasattr(getattr(self.network, "pooler", None), "dense"):
            return pooled
        states = output.last_hidden_state
        return states[:, 0] if _n_prefix_tokens(self.network) else states


def _output(network: Any, x: Tensor) -> Any:
    """Return the output of a network; those of transformers interpolate their positions."""
    arguments = signature(network.forward).parameters if hasattr(network, "config") else ()
    return network(x, **({_INTERPOLATES: True} if _INTERPOLATES in arguments else {}))


def _default_pool(network: Any) -> str | None:
    """Return "token" for DINOv3 in timm, whose default is the mean against the authors' advice."""
    averages = getattr(network, "global_pool", "") == "avg" and _n_prefix_tokens(network)
    # A class token without the last normalisation serves the pretraining alone.
    is_normalised = isinstance(getattr(network, "fc_norm", None), nn.Identity)
    return "token" if averages and is_normalised else None


def _n_prefix_tokens(network: Any) -> int:
    """Return the number of tokens before those of the patches, 0 without a class token."""
    names = (name for name, _ in network.named_parameters())
    if not any(name.endswith(_CLASS_TOKENS) for name in names):
        return 0
    n_registers = getattr(getattr(network, "config", None), "num_register_tokens", 0)
    return int(getattr(network, "num_prefix_tokens", 1 + n_registers))
