"""A folder that one fit at a time has to itself."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_GUARD = threading.Lock()
_TAKEN: set[Path] = set()


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Make a folder if it is missing, and keep other threads and processes out of it.

    If the process is killed, the system opens the folder again. Processes are kept out only where
    the file system has locks.

    Raises
    ------
    OSError
        If the folder cannot be made or written to, or something that is not a regular file has
        the name of the lock.
    ValueError
        If it is taken.
    """
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    with _GUARD:
        if folder in _TAKEN:
            raise ValueError(f"another fit is using {folder}")
        _TAKEN.add(folder)
    try:
        with _opened(folder / ".lock") as file:
            _lock(file, folder)
            yield
    finally:
        _TAKEN.discard(folder)


def _opened(place: Path) -> IO[bytes]:
    """Open a file without following a link or changing what is in it."""
    flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
    if place.is_symlink() or (place.exists() and not place.is_file()):
        problem = "something that is not a regular file has the name of the lock"
        raise FileExistsError(errno.EEXIST, problem, str(place))
    return os.fdopen(os.open(place, flags, 0o666), "r+b")


def _lock(file: Any, folder: Path) -> None:
    """Lock a file until it is closed, in this process and not in its children."""
    if fcntl is None:
        return
    try:
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError) as error:
        raise ValueError(f"another process is using {folder}") from error
    except OSError:
        return  # a file system without locks
