"""A pretrained network of images behind its own pixels, with a row for each image."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from typing import Any, cast
from weakref import WeakKeyDictionary

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.modules.conv import _ConvNd
from torch.utils.checkpoint import checkpoint

from .._warnings import warn

# What a classifier at the end of a network is called, and what wraps a network.
_HEADS = {"fc", "_fc", "classifier", "head", "heads", "last_linear"}
_WRAPPERS = ("module", "_orig_mod")
# What a class token among tokens is called, where it is a parameter.
_CLASS_TOKENS = {"cls_token", "class_token", "class_embedding", "cls"}
# Divides the widths of nearly all embeddings, and hardly ever a number of classes.
_OF_WIDTHS = 32
# Layers with weights that may end a network, and what one returns to find out what follows it.
_WEIGHTED = (nn.Linear, _ConvNd)
_CONSTANT = 2.0


def without_head(network: nn.Module, pixels: Tensor) -> str:
    """Leave out the classifier that makes the output of a network, and say how the network ends.

    It is marked, so that a file needs the network itself only once.

    Parameters
    ----------
    network : torch.nn.Module
        In inference mode; changed in place.
    pixels : Tensor of shape (2, channels, height, width)
        Two different images, as it takes them.
    """
    vars(network)["_is_copy_of_pretrained"] = True
    if hasattr(network, "reset_classifier"):
        cast(Any, network).reset_classifier(0)
        return "classifier removed"
    # What DataParallel or torch.compile have wrapped.
    inner = next((getattr(network, w) for w in _WRAPPERS if hasattr(network, w)), network)
    name, layer, output = _end(inner, pixels)
    found, whole = getattr(output, "logits", output), f"The {type(inner).__name__} of Pretrained"
    # If the last layer makes the whole output, two different images give the same one where that
    # layer returns a constant. If they do not, nothing can be left out.
    if not (isinstance(found, Tensor) and found[0].equal(found[1])):
        if hasattr(output, "logits") and not hasattr(output, "last_hidden_state"):
            warn(f"{whole} returns logits of several layers: pass what comes before them.")
        return "no head removed"
    found, is_linear = found[0], isinstance(layer, nn.Linear)
    n_outputs = layer.out_features if is_linear else layer.out_channels
    is_odd = n_outputs % _OF_WIDTHS != 0
    if name.partition(".")[0] in _HEADS and bool((found - _CONSTANT).abs().max() < 1e-3):
        inner.set_submodule(name, nn.Identity())
        if not is_odd:
            warn(
                f"{whole} loses {layer}, called {name}, as a classifier. If this makes an "
                "embedding, pass torch.nn.Sequential(network), which keeps it."
            )
        return f"head {name} removed"
    # What stays may yet be scores of classes: a softmax, or a number that is no width.
    is_softmax = any(abs(float(one.sum()) - 1) < 1e-3 for one in (found, found.exp()))
    if is_softmax or (is_odd and (is_linear or n_outputs < layer.in_channels)):
        warn(
            f"{whole} ends in {'a softmax' if is_softmax else layer}: if these are scores of "
            "classes, replace the last layer, and what follows it, by torch.nn.Identity()."
        )
    return f"last layer {name} kept"


def without_layers(network: nn.Module, kept: set[str]) -> nn.Module:
    """Return a network without the classifier, whose parameters are not among the kept ones."""
    vars(network)["_is_copy_of_pretrained"] = True
    if hasattr(network, "reset_classifier"):
        cast(Any, network).reset_classifier(0)
    missing = {key.rpartition(".")[0] for key in network.state_dict() if key not in kept}
    if len(missing) == 1:
        network.set_submodule(missing.pop(), nn.Identity())
    return network.float()


def _end(network: nn.Module, pixels: Tensor) -> tuple[str, Any, Any]:
    """Return the last layer with weights, and its name.

    And what the network returns if all that this layer returns is `_CONSTANT`: the same for each
    image if no other way leads from them to it.
    """
    names = {part: name for name, part in network.named_modules() if isinstance(part, _WEIGHTED)}
    called: list[nn.Module] = []
    with ExitStack() as hooks:
        for part in names:
            hooks.enter_context(part.register_forward_hook(lambda part, *_: called.append(part)))
        network(pixels)
    last = called[-1] if called else nn.Identity()
    with last.register_forward_hook(lambda *args: torch.full_like(args[-1], _CONSTANT)):
        return names.get(last, ""), last, network(pixels)  # type: ignore[call-overload]


def is_copy_of_pretrained(module: Any) -> bool:
    """Return whether this is a copy of a network that was passed to `Pretrained`."""
    return bool(getattr(module, "__dict__", {}).get("_is_copy_of_pretrained", False))


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

    @property
    def description(self) -> str:
        """The preprocessing."""
        mean, std = (", ".join(f"{one:.3g}" for one in m.flatten()) for m in (self.mean, self.std))
        return f"input {self.size[0]}×{self.size[1]}, mean ({mean}), std ({std})"

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

    Attributes
    ----------
    description : str
        Its preprocessing, its head and its width.
    """

    def __init__(self, pixels: Pixels, network: nn.Module):
        super().__init__()
        self.pixels, self.network, self.description = pixels, network.eval(), ""

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
            raise TypeError(f"it returns a {type(found).__name__}")
        if found.ndim == 4:
            # Maps of Swin transformers have their channels last: these sides are as the image's.
            _, a, b, c = found.shape
            sides = self.pixels.size[0] / self.pixels.size[1]
            return found.mean((1, 2) if abs(a / b - sides) < abs(b / c - sides) else (2, 3))
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
    # The rest of the division comes first. Whatever is before the last batch is computed again for
    # the gradient, whose layers are not kept until then.
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
