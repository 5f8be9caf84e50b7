"""Ctrl-C: noted whenever it comes, and held where raising it would do harm.

Python turns the signal SIGINT into a KeyboardInterrupt between any two instructions of the main
thread. The exception alone is not enough for a long computation. It can get lost, because Python
ignores exceptions in ``__del__`` and in hooks around a fork; it looks like the KeyboardInterrupt
with which callbacks of skorch stop a training; and in the wrong place it leaves locks taken and
work half done. So a handler notes the signal first, whatever becomes of the exception.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Self


class NotedInterrupt:
    """A context that notes Ctrl-C, and holds it except where it is released.

    A held interrupt only sets `came`; a second one while one is held is raised at once. A released
    interrupt sets `came` and is raised at once. The context itself never raises: read `came` after
    it.

    The handler of SIGINT that is in place when the context begins still runs, and decides whether
    there is a KeyboardInterrupt at all. Contexts may be nested; the inner one then decides. In a
    thread that is not the main one, which gets no signals, and where SIGINT is ignored, the
    context does nothing.

    Attributes
    ----------
    came : bool
        Whether the user has pressed Ctrl-C within the context.
    """

    def __init__(self) -> None:
        self.came = self._is_pending = self._is_released = False

    def __enter__(self) -> Self:
        self._previous = signal.getsignal(signal.SIGINT)
        in_main_thread = threading.current_thread() is threading.main_thread()
        self._is_installed = in_main_thread and callable(self._previous)
        if self._is_installed:
            signal.signal(signal.SIGINT, self._handle)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        try:
            self._previous(number, frame)  # type: ignore[operator, misc]
        except KeyboardInterrupt:
            if self.came:  # nothing is left to note, and the end of the context may not be reached
                self._restore()
            self.came = True
            if self._is_released or self._is_pending:
                raise
            self._is_pending = True

    def _restore(self) -> None:
        """Put the handler back that was in place before, unless it has been replaced since."""
        if self._is_installed and signal.getsignal(signal.SIGINT) == self._handle:
            signal.signal(signal.SIGINT, self._previous)

    @contextmanager
    def released(self) -> Iterator[None]:
        """Raise interrupts at once within the context."""
        before = self._is_released
        try:
            self._is_released = True
            yield
        finally:
            self._is_released = before

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._restore()
