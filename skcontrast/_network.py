"""The trained network: standardisation, encoder, projection head; and its use in inference."""

from __future__ import annotations

import copy
import math

import numpy as np
import torch
from torch import nn

from ._scaling import FARTHEST
from .graphs import PackedGraphs

_NUMBERS_PER_CALL = 2**20
_NODES_PER_CALL = 2**15


class Network(nn.Module):
    """Encoder and projection head: (n, ...) → (n, projection_dim)."""

    def __init__(self, encoder, projector):
        super().__init__()
        self.encoder = encoder
        self.projector = projector

    def forward(self, x):
        return self.projector(self.encoder(x))


class Directions(nn.Module):
    """What ``transform`` hands out of projections: for most similarities, the projections.

    Parameters
    ----------
    similarity : Similarity
        Its ``directions`` is applied to each part.
    n_parts : int
        How many projections stand side by side.
    """

    def __init__(self, similarity, n_parts):
        super().__init__()
        self.similarity, self.n_parts = similarity, n_parts

    def forward(self, z):
        """Map (..., n_parts · (d + n_extra)) to (..., n_parts · d)."""
        return self.similarity.directions(z.unflatten(-1, (self.n_parts, -1))).flatten(-2)


class Standardize(nn.Module):
    """Bring each feature or channel to zero mean and unit variance; the encoder's first step.

    uint8 images are divided by 255 first; vectors are clipped at a million standard deviations.

    Parameters
    ----------
    mean, std : Tensor of shape (n_features,) or (channels, 1, 1)
    channels_last : bool, default=False
        Whether images are handed on in channels-last memory format.
    """

    def __init__(self, mean, std, channels_last=False):
        super().__init__()
        self.memory_format = torch.channels_last if channels_last else torch.contiguous_format
        self.register_buffer("mean", mean)
        self.register_buffer("std", std)

    def forward(self, x):
        """Standardise a batch of shape (n, n_features) or (n, channels, height, width)."""
        if x.dtype == torch.uint8:
            x = x / 255
        if x.ndim == 4:
            x = x.contiguous(memory_format=self.memory_format)
        x = (x - self.mean).div_(self.std)
        return x.clamp_(-FARTHEST, FARTHEST) if x.ndim == 2 else x


def channel_statistics(images):
    """Return mean and standard deviation of each channel, shape (channels, 1, 1).

    Parameters
    ----------
    images : Tensor of shape (n, channels, height, width)
        Some of the training images, uint8 or float.
    """
    some = images.float() / (255 if images.dtype == torch.uint8 else 1)
    std, mean = torch.std_mean(some, (0, 2, 3), correction=0)
    return mean[:, None, None], torch.where(std > 1e-6, std, 1.0)[:, None, None]


def on_device(module, device):
    """Return `module` on `device`, moved only if its first parameter lies elsewhere."""
    first = next(module.parameters(), None)
    return module if first is not None and first.device == device else module.to(device)


def on_cpu(state):
    """Return a module, or tensors nested in dictionaries and lists, with all tensors on the CPU.

    What lies there already is returned itself.
    """
    if isinstance(state, nn.Module):
        tensors = [*state.parameters(), *state.buffers()]
        if all(tensor.device.type == "cpu" for tensor in tensors):
            return state
        return copy.deepcopy(state).cpu()
    if isinstance(state, dict):
        return {key: on_cpu(value) for key, value in state.items()}
    if isinstance(state, list):
        return [on_cpu(value) for value in state]
    return state.cpu() if isinstance(state, torch.Tensor) else state


def rows_per_call(X):
    """Return how many samples of X go through the encoder at a time in inference.

    Many where samples are small, for whom the call itself costs; few where activations are large.
    """
    if isinstance(X, PackedGraphs):
        return max(1, int(_NODES_PER_CALL / X.sizes.mean()))
    return min(max(_NUMBERS_PER_CALL // math.prod(X.shape[1:]), 32), 2**14)


@torch.inference_mode()
def encode(module, data, batch_size, *, to_tensor=None):
    """Apply a module in inference mode, batch by batch.

    Parameters
    ----------
    module : nn.Module
        Maps (n, ...) to (n, d).
    data : array, Tensor or PackedGraphs of shape (n, ...)
        The samples.
    batch_size : int
        Samples per call.
    to_tensor : callable, default=None
        Turns a slice of `data` into what the module takes.

    Returns
    -------
    h : ndarray of shape (n, d), dtype float32
    """
    module.eval()
    parts = []
    for start in range(0, len(data), batch_size):
        batch = data[start : start + batch_size]
        h = module(batch if to_tensor is None else to_tensor(batch))
        parts.append(h.float().cpu().numpy())
    return np.concatenate(parts) if len(parts) > 1 else parts[0]
