"""Modes of torch: what a program has switched on must not change a result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import enable_grad, inference_mode

from . import _threads
from ._random import seeded_rng

_LENT: list[torch.dtype] = []


@contextmanager
def plain_modes(device: torch.device) -> Iterator[None]:
    """Compute as in a program that has switched on nothing, and has not been forked.

    Within the context, operations on `device` are not under autocast, and new tensors are on the
    CPU and in float32 unless they say otherwise, whatever ``torch.set_default_device`` and
    ``torch.set_default_dtype`` have set. The default dtype belongs to the whole process: where it
    is not float32, other threads see float32 meanwhile.

    Parameters
    ----------
    device : torch.device
        Where the computation runs.
    """
    _threads.settle_threads()
    with ExitStack() as modes:
        if torch.is_autocast_enabled(device.type):
            modes.enter_context(torch.autocast(device.type, enabled=False))
        if torch.get_default_device().type != "cpu":
            modes.enter_context(torch.device("cpu"))
        if torch.get_default_dtype() != torch.float32 or _LENT:
            modes.enter_context(_float32_by_default())
        yield


@contextmanager
def _float32_by_default() -> Iterator[None]:
    """Set the default dtype to float32 until the last of several threads has left."""
    with _threads._LOCK:
        _LENT.append(_LENT[0] if _LENT else torch.get_default_dtype())
        torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        with _threads._LOCK:
            before = _LENT.pop()
            if not _LENT:
                torch.set_default_dtype(before)


@contextmanager
def trial(device: torch.device) -> Iterator[None]:
    """Try something out, with gradients and in plain modes: no random number is drawn by it."""
    with plain_modes(device), seeded_rng(0, device), inference_mode(False), enable_grad():
        yield
