"""The threads in which torch computes, which a forked process does not have."""

from __future__ import annotations

import os

import torch

# The process in which torch has, as far as is known here, computed in several threads.
_threaded_process: int | None = None


def avoid_lost_threads() -> None:
    """Let a process compute in one thread if it was forked from one that computed in several.

    To be called before torch computes. GNU's OpenMP, which torch uses on Linux, waits for ever in
    a forked process for the threads that it had started before the fork.
    """
    global _threaded_process
    if torch.get_num_threads() == 1:
        return
    if _threaded_process in (None, os.getpid()):
        _threaded_process = os.getpid()
    else:
        torch.set_num_threads(1)
