"""The memory that a container, a batch job or a service may use: limits of control groups."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

# Version 1 says "no limit" by the largest multiple of a page.
_UNLIMITED = 2**60


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


_MEMORY_V2 = ("memory.max", "memory.current", "inactive_file", "active_file")
_MEMORY_V1 = (
    "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", "total_active_file",
)  # fmt: skip


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
