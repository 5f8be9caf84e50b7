"""Random numbers of a fit: its seed, global generators, and whether its network draws any."""

from __future__ import annotations

import contextlib
import random
import secrets
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import nn

# Held while the global generators are those of one thread.
_GENERATORS = threading.RLock()


@contextlib.contextmanager
def seeded_rng(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's global generators within the context, and restore them afterwards.

    The generators belong to the whole process, so only one thread enters at a time.

    Parameters
    ----------
    seed : int
        Any.
    device : torch.device
        Its generator is seeded along with that of the CPU.
    """
    devices = [] if device.type == "cpu" else [device]
    with _GENERATORS, torch.random.fork_rng(devices, device_type=device.type):
        seed_generators(seed, device)
        yield


def seed_generators(seed: int, device: torch.device) -> None:
    """Seed torch's global generators of the CPU and of a device, and no others.

    ``torch.manual_seed`` would seed those of all devices, now or when they are first used.
    """
    torch.default_generator.manual_seed(seed)
    if device.type != "cpu":
        state = torch.Generator(device).manual_seed(seed).get_state()
        torch.get_device_module(device).set_rng_state(state, device)


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


# Layers of torch that draw random numbers in training.
_DRAW = (
    nn.modules.dropout._DropoutNd, nn.RReLU, nn.RNNBase, nn.MultiheadAttention,
    nn.FractionalMaxPool2d, nn.FractionalMaxPool3d,
)  # fmt: skip


def generator_of(random_state: Any) -> np.random.RandomState:
    """Return a generator; for None a new one, not numpy's global one as in scikit-learn."""
    return check_random_state(secrets.randbits(32) if random_state is None else random_state)


def resolve_seed(random_state: Any, owner: str) -> int:
    """Return an int; for None a random one."""
    try:
        return int(generator_of(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise ValueError(
            f"The 'random_state' parameter of {owner} must be an int in [0, 2**32 - 1], a "
            f"RandomState or None, got {random_state!r}."
        ) from error


def draws_random_numbers(network: nn.Module) -> bool:
    """Return whether a network may draw from torch's global generators while it trains.

    Dropout does, and so may layers that are neither of torch nor of this package.
    """
    return any(_may_draw(layer) for layer in network.modules())


def _may_draw(layer: nn.Module) -> bool:
    is_known = type(layer).__module__.startswith(("torch.nn.", f"{__name__.partition('.')[0]}."))
    is_changed = layer._forward_hooks or layer._forward_pre_hooks or "forward" in vars(layer)
    return isinstance(layer, _DRAW) or not is_known or bool(is_changed)
