"""The threads in which torch computes: those that exist, and that a container may use."""

from __future__ import annotations

import os

import joblib
import torch

# The process in which torch has, as far as is known here, computed in several threads.
_threaded_process: int | None = None


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
