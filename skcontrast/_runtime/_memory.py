"""Free memory and what fits into it, also within the limits of a container or a batch job."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil
import torch

# Version 1 of control groups says "no limit" by the largest multiple of a page.
_UNLIMITED = 2**60
_MEMORY_V2 = ("memory.max", "memory.current", "inactive_file", "active_file")
_MEMORY_V1 = (
    "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file",
)  # fmt: skip


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
    """The memory of a control group.

    Attributes
    ----------
    total, free : int
        Bytes that its processes may have in all, and that they may still take. Cached files count
        as free, since the kernel drops them where memory is short.
    """

    total: int
    free: int


def memory_limit(root: Path = Path("/")) -> MemoryLimit | None:
    """Return the tightest limit on the memory of this process, None where there is none.

    Parameters
    ----------
    root : Path, default=Path("/")
        Holds ``proc`` and ``sys``; a different folder is for tests.
    """
    found = []
    for folder, is_v2 in _folders(root):
        names = _MEMORY_V2 if is_v2 else _MEMORY_V1
        limit, used = (_number(folder / name) for name in names[:2])
        if limit is None or used is None or limit >= _UNLIMITED:
            continue
        statistics = _pairs(folder / "memory.stat")
        cached = sum(statistics.get(name, 0) for name in names[2:])
        found.append(MemoryLimit(limit, max(0, limit - max(0, used - cached))))
    if not found:
        return None
    return MemoryLimit(min(one.total for one in found), min(one.free for one in found))


def _folders(root: Path) -> Iterator[tuple[Path, bool]]:
    """Yield the folders of the groups of this process, with whether they are of version 2.

    A group is within its parents, whose limits hold too. Inside a container, the path may be that
    on the host, of which only the end is there, or nothing.
    """
    for line in _text(root / "proc/self/cgroup").splitlines():
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        is_v2 = number == "0" and not controllers
        if not is_v2 and controllers != "memory":
            continue
        top = root / "sys/fs/cgroup" / controllers
        parts = [part for part in path.split("/") if part not in ("", "..")]
        for end in range(len(parts), -1, -1):
            folder = top.joinpath(*parts[:end])
            if folder.is_dir():
                yield folder, is_v2


def _text(path: Path) -> str:
    """Return the text of a file, "" if it cannot be read."""
    try:
        return path.read_text()
    except (OSError, UnicodeDecodeError):
        return ""


def _number(path: Path) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _pairs(path: Path) -> dict[str, int]:
    """Return the numbers of a file of lines with a name and a number."""
    pairs = (line.split() for line in _text(path).splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdecimal()}
