"""The global random generators of the process: seeded for a while, then restored."""

from __future__ import annotations

import contextlib
import random
import threading
from collections.abc import Iterator

import numpy as np
import torch

_GLOBAL_GENERATORS = threading.RLock()


@contextlib.contextmanager
def seeded_rng(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's global generators within the context, and restore them afterwards.

    The generators belong to the whole process, so only one thread enters at a time.
    """
    devices = [] if device.type == "cpu" else [device]
    kind = "cuda" if device.type == "cpu" else device.type
    with _GLOBAL_GENERATORS, torch.random.fork_rng(devices=devices, device_type=kind):
        torch.manual_seed(seed)
        yield


@contextlib.contextmanager
def seeded_everywhere(seed: int, device: torch.device) -> Iterator[None]:
    """Do as `seeded_rng`, also for the global generators of numpy and of ``random``.

    Parameters
    ----------
    seed : int
        In [0, 2**32).
    device : torch.device
        Its generator is seeded along with that of the CPU.
    """
    with seeded_rng(seed, device):
        of_numpy, of_python = np.random.get_state(), random.getstate()  # noqa: NPY002
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(of_numpy)  # noqa: NPY002
            random.setstate(of_python)
