"""A pretrained network of images behind its own pixels, with a row for each image."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ._bounded import bounded

# What the last linear layer of a classifier, or what holds it, is called.
_HEADS = {"fc", "_fc", "classifier", "head", "heads", "last_linear"}


def without_head(network: nn.Module) -> nn.Module:
    """Return a network without a classifier at its end; changed in place.

    It is marked, so that a file needs the network itself only once.
    """
    vars(network)["_is_copy_of_pretrained"] = True
    if hasattr(network, "reset_classifier"):
        cast(Any, network).reset_classifier(0)
        return network
    linear = [
        name.split(".")
        for name, layer in network.named_modules()
        if isinstance(layer, nn.Linear) and _HEADS & set(name.split("."))
    ]
    if linear:
        *path, last = linear[-1]
        setattr(network.get_submodule(".".join(path)), last, nn.Identity())
    return network


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
            pooler = getattr(self.network, "pooler", None)
            is_learned = pooler is not None and any(True for _ in pooler.parameters())
            pooled = None if is_learned else getattr(found, "pooler_output", None)
            # A pooler with weights may never have been trained; the class token has been.
            found = (states[:, 0] if states.ndim == 3 else states) if pooled is None else pooled
        elif hasattr(found, "logits"):  # of a classifier whose last layer was left out
            found = found.logits
        if not isinstance(found, Tensor):
            raise ValueError(
                f"it returns a {type(found).__name__}: pass a module that returns one tensor for "
                "a batch of images"
            )
        if found.ndim == 4:
            return found.mean((2, 3))
        return found.mean(1) if found.ndim == 3 else found
