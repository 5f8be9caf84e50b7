"""Free memory and what fits into it."""

from __future__ import annotations

import psutil
import torch


def free_bytes(device: torch.device) -> int:
    """Return how many bytes are free on a device."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return psutil.virtual_memory().available


def check_memory(n_numbers: int, device: torch.device, parameter: str) -> None:
    """Raise ValueError, naming the parameter, if `n_numbers` floats do not fit into memory.

    Parameters
    ----------
    n_numbers : int
        How many float32 numbers are to be held.
    device : torch.device
        The device that holds them.
    parameter : str
        The parameter that asks for them, such as "The 'queue_size' parameter of MoCo".
    """
    needed, available = 4 * n_numbers, _bytes_of(device)
    if needed > available:
        raise ValueError(
            f"{parameter} needs {needed / 1e9:.3g} GB on {device}, which has "
            f"{available / 1e9:.3g} GB: choose fewer."
        )


def _bytes_of(device: torch.device) -> int:
    """Return how many bytes this process can get on a device; on a CPU, all of the machine."""
    if device.type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + cached
    return psutil.virtual_memory().total
