"""A pretrained network of images behind its own pixels, with a row for each image."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

from .._warnings import warn

# What a classifier at the end of a network is called, and what wraps a network.
_HEADS = {"fc", "_fc", "classifier", "head", "heads", "last_linear"}
_WRAPPERS = ("module", "_orig_mod")
# What a class token among tokens is called, where it is a parameter.
_CLASS_TOKENS = {"cls_token", "class_token", "class_embedding", "cls"}
_N_CLASSES_OF_IMAGENET = (1000, 1001, 21841, 21843)


def without_head(network: nn.Module, pixels: Tensor) -> nn.Module:
    """Return a network without the classifier that makes its output; changed in place.

    It is marked, so that a file needs the network itself only once.

    Parameters
    ----------
    network : torch.nn.Module
        In inference mode.
    pixels : Tensor of shape (n, channels, height, width)
        A batch that it takes.
    """
    vars(network)["_is_copy_of_pretrained"] = True
    if hasattr(network, "reset_classifier"):
        cast(Any, network).reset_classifier(0)
        return network
    inner = next((getattr(network, w) for w in _WRAPPERS if hasattr(network, w)), network)
    found, at_end = _at_end(inner, pixels)
    heads = [f"{name}." for name in _HEADS if name in at_end]
    scores = [
        name
        for name, layer in inner.named_modules()
        if any(f"{name}.".startswith(head) for head in heads)
        and (isinstance(layer, nn.Linear) or getattr(layer, "kernel_size", 0) == (1, 1))
    ]
    if scores:
        _leave_out(inner, scores[-1])
    ends = () if scores else map(inner.get_submodule, at_end)
    odd = [end for end in ends if isinstance(end, nn.Linear) and _looks_like_classes(end)]
    for end in ["a softmax"] if _are_shares(found) else odd:
        warn(
            f"The network {type(inner).__name__} of Pretrained ends in {end}: if these are "
            "scores of classes, replace that layer by torch.nn.Identity()."
        )
    return network


def without_layers(network: nn.Module, kept: set[str]) -> nn.Module:
    """Return a network without the classifier, whose parameters are not among the kept ones."""
    vars(network)["_is_copy_of_pretrained"] = True
    if hasattr(network, "reset_classifier"):
        cast(Any, network).reset_classifier(0)
    missing = {key.rpartition(".")[0] for key in network.state_dict() if key not in kept}
    if len(missing) == 1:
        _leave_out(network, missing.pop())
    return network


def _leave_out(network: nn.Module, name: str) -> None:
    path, _, last = name.rpartition(".")
    setattr(network.get_submodule(path), last, nn.Identity())


def _looks_like_classes(layer: nn.Linear) -> bool:
    return layer.out_features < layer.in_features or layer.out_features in _N_CLASSES_OF_IMAGENET


def _are_shares(found: Any) -> bool:
    """Return whether an output is rows that sum to 1, as probabilities do."""
    has_rows = isinstance(found, Tensor) and found.ndim == 2 and found.shape[1] > 1
    return has_rows and bool((found >= 0).all() and (found.sum(1) - 1).abs().max() < 1e-4)


def _at_end(network: nn.Module, pixels: Tensor) -> tuple[Any, list[str]]:
    """Return an output, and the names of the layers that return it, or its logits."""
    outputs: dict[str, Any] = {}
    hooks = [
        layer.register_forward_hook(lambda _, __, out, name=name: outputs.update({name: out}))
        for name, layer in network.named_modules()
        if name
    ]
    try:
        with torch.no_grad():
            found: Any = network(pixels)
    finally:
        for hook in hooks:
            hook.remove()
    found = getattr(found, "logits", found)
    return found, [
        name
        for name, out in outputs.items()
        if isinstance(out, Tensor)
        and isinstance(found, Tensor)
        and (out.data_ptr(), out.numel()) == (found.data_ptr(), found.numel())
    ]


def is_copy_of_pretrained(module: Any) -> bool:
    """Return whether this is a copy of a network that was passed to `Pretrained`."""
    return bool(getattr(module, "__dict__", {}).get("_is_copy_of_pretrained", False))


class NoRows(ValueError):
    """A network returns something else than a row for each image."""


class Pixels(nn.Module):
    """Intensities in [0, 1] as a pretrained network knows them.

    Parameters
    ----------
    mean, std : ndarray of shape (channels,)
        Of the images that it was trained with.
    size : (int, int)
        Height and width.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: np.ndarray, std: np.ndarray, size: tuple[int, int]):
        super().__init__()
        self.size = size
        self.register_buffer("mean", torch.tensor(mean).float()[:, None, None])
        self.register_buffer("std", torch.tensor(std).float()[:, None, None])

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, 1 or channels, height, width) to (n, channels, *size)."""
        sides = tuple(x.shape[-2:])
        if sides != self.size:
            shrinks = sides[0] > self.size[0] or sides[1] > self.size[1]
            x = F.interpolate(x, self.size, mode="bilinear", antialias=shrinks)
        if x.shape[1] == 1:
            x = x.expand(-1, len(self.mean), -1, -1)
        return (x - self.mean) / self.std


class PretrainedNetwork(nn.Module):
    """A pretrained network, which stays in inference mode, with a row for each image.

    Parameters
    ----------
    pixels : Pixels
        Brings the pixels as the network knows them.
    network : torch.nn.Module
        Maps them to rows, maps, tokens, or an object of transformers that has them.
    """

    def __init__(self, pixels: Pixels, network: nn.Module):
        super().__init__()
        self.pixels, self.network = pixels, network.eval()

    def train(self, mode: bool = True) -> PretrainedNetwork:
        """Switch the mode of this module; the network keeps its statistics and drops nothing."""
        super().train(mode)
        self.network.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Map (n, channels, height, width) to (n, width)."""
        return bounded(self._rows, self, x)

    def _rows(self, x: Tensor) -> Tensor:
        found: Any = self.network(self.pixels(x))
        states = getattr(found, "last_hidden_state", None)
        if states is not None:
            found = self._of_states(states, getattr(found, "pooler_output", None))
        elif hasattr(found, "logits"):  # of a classifier whose last layer was left out
            found = found.logits
        if not isinstance(found, Tensor):
            advice = ", such as network.vision_model" if hasattr(found, "image_embeds") else ""
            raise NoRows(
                f"it returns a {type(found).__name__}: pass a module that returns one tensor for "
                f"a batch of images{advice}"
            )
        if found.ndim == 4:
            # Maps of Swin transformers have their channels last.
            is_turned = found.shape[1] == found.shape[2] != found.shape[3]
            return found.mean((1, 2) if is_turned else (2, 3))
        return found.mean(1) if found.ndim == 3 else found

    def _of_states(self, states: Tensor, pooled: Tensor | None) -> Tensor:
        """Return a row, or a map or tokens, of the last states of a network of transformers."""
        pooler = getattr(self.network, "pooler", None)
        # A pooler with weights may never have been trained; the class token has been.
        is_learned = pooler is not None and any(True for _ in pooler.parameters())
        if pooled is not None and not is_learned:
            return pooled
        has_class_token = any(
            name.rpartition(".")[2] in _CLASS_TOKENS for name, _ in self.network.named_parameters()
        ) and not getattr(getattr(self.network, "config", None), "use_mean_pooling", False)
        return states[:, 0] if states.ndim == 3 and has_class_token else states


Encode = Callable[[Tensor], Tensor]

# Bytes that a forward pass may keep for its gradient: on a CPU, and as a share of a GPU's memory.
_CPU_BYTES, _GPU_SHARE = 1.5e9, 0.25
# Of each network, the bytes that it keeps for one sample, by the sample's shape and dtype.
_kept: WeakKeyDictionary[nn.Module, dict[Any, int]] = WeakKeyDictionary()


def bounded(encode: Encode, network: nn.Module, x: Tensor) -> Tensor:
    """Encode samples, each independently of the others, in several batches if need be.

    What it computes for all batches but the last is forgotten, and computed again when the
    gradient is asked for, which is the same but for rounding (Chen et al., "Training Deep Nets
    with Sublinear Memory Cost", 2016).

    Parameters
    ----------
    encode : callable
        Maps samples to rows by means of the network; draws no random numbers.
    network : torch.nn.Module
        Whose parameters are trained.
    x : Tensor of shape (n, ...)
        The samples.
    """
    learns = network.training and torch.is_grad_enabled()
    if not learns or not any(p.requires_grad for p in network.parameters()):
        return encode(x)
    n = max(1, int(_bytes_allowed(x.device) / max(1, _bytes_per_row(encode, network, x))))
    if len(x) <= n:
        return encode(x)
    *others, last = x.split([len(x) % n, *[n] * (len(x) // n)])
    rows = [
        checkpoint(encode, one, use_reentrant=False, preserve_rng_state=False)
        for one in others
        if len(one)
    ]
    return torch.cat([*rows, encode(last)])


def _bytes_allowed(device: torch.device) -> float:
    if device.type != "cuda":
        return _CPU_BYTES
    return _GPU_SHARE * torch.cuda.get_device_properties(device).total_memory


def _bytes_per_row(encode: Encode, network: nn.Module, x: Tensor) -> int:
    """Return what the forward pass of one sample keeps, less what does not grow with samples."""
    known = _kept.setdefault(network, {})
    key = x.shape[1:], x.dtype, torch.is_autocast_enabled(x.device.type)
    if key not in known:
        one, two = (_kept_bytes(encode, x[:1].expand(k, *x.shape[1:])) for k in (1, 2))
        known[key] = two - one
    return known[key]


def _kept_bytes(encode: Encode, x: Tensor) -> int:
    """Return the bytes of the different tensors that a forward pass keeps for its gradient."""
    found: dict[int, int] = {}
    alive = []  # no address may be given twice

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        found[storage.data_ptr()] = storage.nbytes()
        # Nothing that its own graph holds may hold that graph: it would never be freed.
        alive.append(tensor.detach())
        return alive[-1]

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        encode(x)
    return sum(found.values())
