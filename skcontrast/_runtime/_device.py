"""The device of a computation, and its free memory."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import psutil
import torch


def resolve_device(device: Any, owner: str) -> torch.device:
    """Return the torch device; "auto" is the first available of CUDA, MPS and CPU.

    Raises
    ------
    ValueError
        If the device is unknown or not available.
    """
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    name = f"cuda:{device}" if isinstance(device, Integral) else str(device).lower()
    kind = name.partition(":")[0]
    try:
        if kind != "meta":
            torch.empty(0, device=name)
            return torch.device(name)
    except (RuntimeError, AssertionError, NotImplementedError):
        pass
    no_gpu = "no GPU was found" if torch.version.cuda else "this PyTorch is built for CPUs only"
    reasons = {
        "meta": "meta holds no data",
        "gpu": "a GPU is 'cuda'",
        "cuda": f"this machine has {n} GPU(s)" if (n := torch.cuda.device_count()) else no_gpu,
        "mps": "this machine has no MPS",
    }
    shown = repr(device) if name == str(device) else f"{device!r}, that is {name!r}"
    raise ValueError(
        f"The 'device' parameter of {owner} must be 'auto', 'cpu', 'cuda', 'cuda:N' or 'mps' and "
        f"available, got {shown}: {reasons.get(kind, 'PyTorch has none here')}. Write "
        "device='auto' for what this machine has."
    )


def free_bytes(device: torch.device) -> int:
    """Return how many bytes are free on a device."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return psutil.virtual_memory().available
