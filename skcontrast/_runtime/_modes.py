"""Modes of torch: a program's default device, default dtype or autocast changes no result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch import enable_grad, inference_mode

from ._random import seeded_rng


@contextmanager
def plain_modes(device: torch.device) -> Iterator[None]:
    """Compute with torch's own defaults.

    Within the context, operations on `device` are not under autocast, and new tensors are on the
    CPU and in float32 unless they say otherwise, whatever ``torch.set_default_device`` and
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
