"""Free memory and what fits into it, also within the limit of a container."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import psutil
import torch

# Of control groups: folder, limit, usage, and how the statistics of cached files begin.
_VERSION_2 = ("", "memory.max", "memory.current", "")
_VERSION_1 = ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_")


def free_bytes(device: torch.device) -> float:
    """Return how many bytes are free on a device; on a CPU, of what this process may have."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    available, limit = psutil.virtual_memory().available, memory_limit()
    return available if limit is None else min(available, limit.free)


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


def _bytes_of(device: torch.device) -> float:
    """Return how many bytes this process can get on a device; on a CPU, all that it may have."""
    if device.type == "cuda":
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return torch.cuda.mem_get_info(device)[0] + cached
    total, limit = psutil.virtual_memory().total, memory_limit()
    return total if limit is None else min(total, limit.total)


class MemoryLimit(NamedTuple):
    """The memory of a container.

    Attributes
    ----------
    total, free : int
        Bytes that its processes may have in all, and that they may still take. Cached files count
        as free, since the kernel drops them where memory is short.
    """

    total: int
    free: int


def memory_limit(groups: Path = Path("/sys/fs/cgroup")) -> MemoryLimit | None:
    """Return the limit on the memory of this container, None where there is none.

    `groups` has the files of the container's own control group, of version 2 or 1; a different
    folder is for tests.
    """
    is_v2 = (groups / "memory.max").exists()
    folder, limit, usage, prefix = _VERSION_2 if is_v2 else _VERSION_1
    try:
        total, used = (int((groups / folder / name).read_text()) for name in (limit, usage))
        lines = (groups / folder / "memory.stat").read_text().splitlines()
    except (OSError, ValueError):  # "max" is no limit
        return None
    of_files = {f"{prefix}inactive_file", f"{prefix}active_file"}
    cached = sum(int(size) for name, size in map(str.split, lines) if name in of_files)
    return MemoryLimit(total, max(0, total - max(0, used - cached)))
