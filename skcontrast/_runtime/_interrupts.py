"""Tells Ctrl-C from the KeyboardInterrupt by which callbacks of skorch stop a training."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def noted_interrupts() -> Iterator[list[int]]:
    """Yield a list that is empty until Ctrl-C has raised KeyboardInterrupt within the context.

    The handler of SIGINT that was there before runs as usual, and decides whether there is a
    KeyboardInterrupt. In threads other than the main one, which get no signals, and where SIGINT
    is ignored, the list stays empty.
    """
    noted: list[int] = []
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield noted
        return

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            before(number, frame)
        except KeyboardInterrupt:
            noted.append(number)
            raise

    signal.signal(signal.SIGINT, handle)
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
