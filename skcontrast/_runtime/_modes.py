"""Modes and threads of torch: what a program has switched on must not change a result."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import joblib
import torch

_LOCK = threading.Lock()
_LENT: list[torch.dtype] = []
# The process in which torch has, as far as is known here, computed in several threads.
_threaded_process: int | None = None


def _renew_lock() -> None:
    """Forget, in a forked process, that a thread held the lock which this process lacks."""
    global _LOCK
    _LOCK = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_lock)


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
    settle_threads()
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
    with _LOCK:
        _LENT.append(_LENT[0] if _LENT else torch.get_default_dtype())
        torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        with _LOCK:
            before = _LENT.pop()
            if not _LENT:
                torch.set_default_dtype(before)


def settle_threads() -> None:
    """Let a process compute in no more threads than it has and its control group may use.

    To be called before torch computes. GNU's OpenMP, which torch uses on Linux, hangs in
    a forked process, where it waits for the threads that it had started before the fork: such a
    process computes in one. OpenMP starts a thread for each processor of the machine also in a
    container that may use fewer, where the threads would wait for each other most of the time. The
    first call in a process looks at that, so that a number that is set later stays.
    """
    global _threaded_process
    if torch.get_num_threads() == 1:
        return
    if _threaded_process is None:
        _threaded_process = os.getpid()
        torch.set_num_threads(min(torch.get_num_threads(), joblib.cpu_count()))
    elif _threaded_process != os.getpid():
        torch.set_num_threads(1)
