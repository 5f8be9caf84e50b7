"""What a program has set, in a computation: modes of torch, and the handler of Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import FrameType

import torch
from torch import enable_grad, inference_mode

from ._random import seeded_rng


@contextmanager
def plain_modes(device: torch.device) -> Iterator[None]:
    """Compute with torch's own defaults.

    Within the context, operations on `device` are not under autocast, and new tensors are on the
    CPU and in float32 unless they say otherwise, independent of ``torch.set_default_device`` and
    ``torch.set_default_dtype`` have set. The default dtype belongs to the whole process: where it
    is not float32, computations must not overlap in threads.

    Parameters
    ----------
    device : torch.device
        Where the computation runs.
    """
    with ExitStack() as modes:
        if torch.is_autocast_enabled(device.type):
            modes.enter_context(torch.autocast(device.type, enabled=False))
        if torch.get_default_device().type != "cpu":
            modes.enter_context(torch.device("cpu"))
        if (dtype := torch.get_default_dtype()) != torch.float32:
            modes.callback(torch.set_default_dtype, dtype)
            torch.set_default_dtype(torch.float32)
        yield


@contextmanager
def trial(device: torch.device) -> Iterator[None]:
    """Try something out, with gradients and in plain modes: no random number is drawn by it."""
    with plain_modes(device), seeded_rng(0, device), inference_mode(False), enable_grad():
        yield


# Callbacks of skorch stop a training by a KeyboardInterrupt, too.
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
