"""A folder that one fit at a time has to itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Make a folder if it is missing, and keep other threads and processes out of it.

    If the process is killed, the system opens the folder again.

    Raises
    ------
    OSError
        If the folder cannot be made or written to, or a link has the name of the lock.
    ValueError
        If it is taken.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        lock = FileLock(folder / ".lock", blocking=False).acquire()
    except Timeout as error:
        raise ValueError(f"another fit is using {folder.resolve()}") from error
    with lock:
        yield
