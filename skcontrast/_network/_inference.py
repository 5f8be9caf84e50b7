"""The trained network in use: batch by batch, on a device, handed out."""

from __future__ import annotations

import copy
import math

import numpy as np
import torch
from torch import nn

from ..graphs import PackedGraphs

_NUMBERS_PER_CALL = 2**20


_NODES_PER_CALL = 2**15


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
