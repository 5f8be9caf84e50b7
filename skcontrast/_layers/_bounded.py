"""The forward pass of a network that keeps no more for its gradient than the memory allows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.checkpoint import checkpoint

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
        alive.append(tensor)
        return tensor

    with saved_tensors_hooks(pack, lambda tensor: tensor):
        encode(x)
    return sum(found.values())
