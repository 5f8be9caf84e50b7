"""State of the process: device, memory, threads and random generators."""

from __future__ import annotations

import math
import random
import secrets
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from numbers import Integral
from types import FrameType
from typing import Any

import numpy as np
import psutil
import torch
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits
from torch import enable_grad, inference_mode, nn


def resolve_device(device: Any, owner: str) -> torch.device:
    """Return the torch device; "auto" is the first available of CUDA, MPS and CPU.

    Raises
    ------
    ValueError
        If the device is unknown or not available.
    """
    if device == "auto":
        if torch.cuda.is_available():
            return torch.device("cuda")
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    name = f"cuda:{device}" if isinstance(device, Integral) else str(device).lower()
    kind = name.partition(":")[0]
    try:
        if kind != "meta":
            torch.empty(0, device=name)
            return torch.device(name)
    except (RuntimeError, AssertionError, NotImplementedError):
        pass
    no_gpu = "no GPU was found" if torch.version.cuda else "this PyTorch is built for CPUs only"
    reasons = {
        "meta": "meta holds no data",
        "gpu": "a GPU is 'cuda'",
        "cuda": f"this machine has {n} GPU(s)" if (n := torch.cuda.device_count()) else no_gpu,
        "mps": "this machine has no MPS",
    }
    shown = repr(device) if name == str(device) else f"{device!r}, that is {name!r}"
    raise ValueError(
        f"The 'device' parameter of {owner} must be 'auto', 'cpu', 'cuda', 'cuda:N' or 'mps' and "
        f"available, got {shown}: {reasons.get(kind, 'PyTorch has none here')}. Write "
        "device='auto' for what this machine has."
    )


def free_bytes(device: torch.device) -> int:
    """Return how many bytes are free on a device."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return psutil.virtual_memory().available


# Held while the global generators are those of one thread.
_GENERATORS = threading.RLock()


@contextmanager
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


@contextmanager
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


def resolve_seed(random_state: Any) -> int:
    """Return an int; for None a random one."""
    return int(generator_of(random_state).randint(2**31 - 1))


def draws_random_numbers(network: nn.Module) -> bool:
    """Return whether a network may draw from torch's global generators while it trains.

    Dropout does, and so may layers that are neither of torch nor of this package.
    """
    return any(_may_draw(layer) for layer in network.modules())


def _may_draw(layer: nn.Module) -> bool:
    is_known = type(layer).__module__.startswith(("torch.nn.", f"{__name__.partition('.')[0]}."))
    is_changed = layer._forward_hooks or layer._forward_pre_hooks or "forward" in vars(layer)
    return isinstance(layer, _DRAW) or not is_known or bool(is_changed)


# A network is large from this many parameters on, each counted again for the pixels or steps at
# which convolutions use it: with batches of 256, a step then takes about a second of one thread.
# MLPs, GIN, PatchNet and series of a hundred steps have at most 2.7e7, a ResNet has 8e8 with
# 48 × 48 pixels. On a busy machine, two threads took three times the CPU seconds of one for a step
# of PatchNet with 96 × 96 pixels, and no less time.
_LARGE, _PLACES = 3e7, 32

# The contexts of `one_thread` that a thread of the program is in.
_OWN = threading.local()


@contextmanager
def one_thread(device: torch.device | str = "cpu", *, blas: bool = True) -> Iterator[None]:
    """Compute in one thread what is computed on the CPU, as small networks do best.

    OpenMP's threads wait for each other in busy loops: of a small step, on a machine that has
    something else to do, they make ten. What turns out to be large asks for all threads by
    `use_threads_for`. Afterwards the numbers of threads are what they were; a thread that used
    torch for the first time meanwhile keeps one.

    Parameters
    ----------
    device : torch.device or str, default="cpu"
        Where torch computes; nothing changes unless it is the CPU.
    blas : bool, default=True
        Whether numpy is limited, too, which takes about a millisecond.
    """
    if torch.device(device).type != "cpu":
        yield
        return
    # Once within another is enough for torch: the outermost puts the threads back.
    entered = vars(_OWN).setdefault("entered", [])
    with ExitStack() as alone:
        if not entered:
            alone.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(1)
        if blas:
            alone.enter_context(threadpool_limits(1, user_api="blas"))
        entered.append(alone)
        alone.callback(entered.remove, alone)
        yield


def use_threads_for(module: nn.Module, *kinds: tuple[Any, tuple]) -> None:
    """Let the caller compute in all its threads if a network is large.

    Parameters
    ----------
    module : torch.nn.Module
        The network.
    *kinds : tuple (Kind, tuple)
        The kind and the shape of the samples, or of each of their parts. Where a layer says at how
        many places those behind it act, the shape does not count; nor does the batch, so that a
        fit and all that continues it compute in the same number of threads.
    """
    known = max(getattr(part, "n_places_behind", 0) for part in module.modules())
    n_places = known or max(_n_places(kind, shape) for kind, shape in kinds)
    n_parameters = sum(parameter.numel() for parameter in module.parameters())
    if n_parameters * (1 + n_places / _PLACES) > _LARGE:
        for alone in reversed(vars(_OWN).get("entered", [])[:]):
            alone.close()


def _n_places(kind: Any, shape: tuple) -> int:
    """Return the number of pixels or of steps of a sample, 1 where it has neither."""
    image = kind._image_shape(shape)
    return math.prod(image[1:]) if image else getattr(kind, "n_times_", 1)


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
