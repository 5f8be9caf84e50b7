"""The device of a computation."""

from __future__ import annotations

from typing import Any

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
    try:
        device = torch.device(device.lower() if isinstance(device, str) else device)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"The 'device' parameter of {owner} must be 'auto', 'cpu', 'cuda', 'cuda:N' or 'mps' "
            f"and be available on this machine, got {device!s}: {str(error).partition('. ')[0]}."
        ) from error
    if device.type == "meta":
        raise ValueError(f"The 'device' parameter of {owner} must hold data, got 'meta'.")
    return device
