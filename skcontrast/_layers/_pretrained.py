"""A pretrained network of images with its preprocessing, and one row per image."""

from __future__ import annotations

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
# Pixels that are encoded at once in training: the 256 views of a step at 96 pixels, 47 at 224.
_PIXELS, _PIXELS_ON_DEVICE = 256 * 96**2, 4 * 256 * 96**2


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


class Pixels(nn.Module):
    """Bring intensities in [0, 1] to the mean, std and size of a pretrained network.

    Parameters
    ----------
    mean, std : ndarray of shape (channels,)
        Of its training images.
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
    """A pretrained network, which stays in inference mode, with one row per image.

    Parameters
    ----------
    pixels : Pixels
        Its preprocessing.
    network : torch.nn.Module
        Maps images to rows, maps, tokens, or an output object of transformers.

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
        """Map (n, channels, height, width) to (n, width).

        In training, large batches are encoded in chunks. All but the last are computed again for
        the gradient (Chen et al., "Training Deep Nets with Sublinear Memory Cost", 2016).
        """
        n_pixels = _PIXELS if x.device.type == "cpu" else _PIXELS_ON_DEVICE
        n = max(1, n_pixels // (self.pixels.size[0] * self.pixels.size[1]))
        if not (self.training and torch.is_grad_enabled()) or len(x) <= n:
            return self._rows(x)
        *others, last = x.chunk(-(-len(x) // n))
        rows = [
            checkpoint(self._rows, chunk, use_reentrant=False, preserve_rng_state=False)
            for chunk in others
        ]
        return torch.cat([*rows, self._rows(last)])

    def _rows(self, x: Tensor) -> Any:
        found: Any = self.network(self.pixels(x))
        if hasattr(found, "last_hidden_state"):
            found = self._pooled(found)
        found = getattr(found, "logits", found)  # of a classifier without its head
        n_axes = getattr(found, "ndim", 2)
        return found if n_axes == 2 else found.mean(1 if n_axes == 3 else (2, 3))

    def _pooled(self, output: Any) -> Tensor:
        """Return a row, a map or tokens of an output object of transformers."""
        pooled = getattr(output, "pooler_output", None)
        # Transformers draws a dense pooler at random where a checkpoint has none.
        if pooled is not None and not hasattr(getattr(self.network, "pooler", None), "dense"):
            return pooled
        names = [name for name, _ in self.network.named_parameters()]
        states = output.last_hidden_state
        return states[:, 0] if any(name.endswith(_CLASS_TOKENS) for name in names) else states
