"""State of the process: device, memory, threads and random generators."""

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
from sklearn import config_context, get_config
from sklearn.utils import check_random_state
from threadpoolctl import threadpool_limits
from torch import nn


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
    hint = " Write 'cuda'." if str(device).lower().startswith("gpu") else ""
    name = f"cuda:{device}" if isinstance(device, Integral) else str(device).lower()
    try:
        if torch.empty(0, device=name).is_meta:
            raise NotImplementedError("A meta device holds no numbers.")
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        raise ValueError(
            f"The 'device' parameter of {owner} must be 'auto', 'cpu', 'cuda', 'cuda:N' or 'mps' "
            f"and available, got {device!r}. device='auto' uses what this machine has.{hint}"
        ) from error
    return torch.device(name)


def free_bytes(device: torch.device) -> int:
    """Return the number of free bytes on a device."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return psutil.virtual_memory().available


# Held by the thread that has seeded the global generators.
_GENERATORS = threading.RLock()


@contextmanager
def seeded_rng(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's global generators within the context, and restore them afterwards.

    The generators belong to the whole process, so only one thread enters at a time. Those of
    other devices are unchanged; ``torch.manual_seed`` would seed them, too.

    Parameters
    ----------
    seed : int
        Any integer that ``torch.manual_seed`` takes.
    device : torch.device
        Its generator is seeded along with that of the CPU.
    """
    devices = [] if device.type == "cpu" else [device]
    with _GENERATORS, torch.random.fork_rng(devices, device_type=device.type):
        torch.default_generator.manual_seed(seed)
        if device.type != "cpu":
            state = torch.Generator(device).manual_seed(seed).get_state()
            torch.get_device_module(device).set_rng_state(state, device)
        yield


@contextmanager
def seeded_everywhere(seed: int, device: torch.device) -> Iterator[None]:
    """Seed the global generators of torch, numpy and ``random`` within the context.

    Afterwards they are restored, as by `seeded_rng`.

    Parameters
    ----------
    seed : int
        In [0, 2**32).
    device : torch.device
        Its generator is seeded along with that of the CPU.
    """
    with seeded_rng(seed, device):
        numpy_state, python_state = np.random.get_state(), random.getstate()  # noqa: NPY002
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(numpy_state)  # noqa: NPY002
            random.setstate(python_state)


def generator_of(random_state: Any) -> np.random.RandomState:
    """Return a generator; None gives a new one, not numpy's global one as in scikit-learn."""
    return check_random_state(secrets.randbits(32) if random_state is None else random_state)


def resolve_seed(random_state: Any) -> int:
    """Return an integer seed; None gives a random one."""
    return int(generator_of(random_state).randint(2**31 - 1))


# A network is large from this number of parameters on, where convolutions count their parameters
# for each position: with batches of 256, a step then takes about a second in one thread. MLPs,
# GIN, PatchNet and networks for series of a hundred steps have at most 2.7e7; a ResNet has 8e8
# with 48 × 48 pixels. On a busy machine, a step of PatchNet with 96 × 96 pixels took as long with
# two threads as with one, and three times the CPU seconds.
_LARGE, _POSITIONS = 3e7, 32

# For each thread of the program, the contexts of `one_thread` that it has entered.
_ENTERED = threading.local()


@contextmanager
def one_thread(device: torch.device | str = "cpu", *, blas: bool = True) -> Iterator[None]:
    """Compute on the CPU in one thread, in which small networks train fastest.

    OpenMP's threads wait for each other in busy loops: on a machine that has other work, a small
    step takes ten times as long. `use_threads_for` restores all threads for a large network.
    On exit, the numbers of threads are restored; a thread that has used torch for the first time
    in the meantime keeps one.

    Parameters
    ----------
    device : torch.device or str, default="cpu"
        The device of the computation; nothing changes unless it is the CPU.
    blas : bool, default=True
        Whether to limit numpy, too, which takes about a millisecond.
    """
    if torch.device(device).type != "cpu":
        yield
        return
    # Of nested contexts, only the outermost sets and restores torch's threads.
    entered = vars(_ENTERED).setdefault("entered", [])
    with ExitStack() as limits:
        if not entered:
            limits.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(1)
        if blas:
            limits.enter_context(threadpool_limits(1, user_api="blas"))
        entered.append(limits)
        limits.callback(entered.remove, limits)
        yield


def use_threads_for(module: nn.Module, *kinds: tuple[Any, tuple]) -> None:
    """Leave the contexts of `one_thread` if a network is large.

    Parameters
    ----------
    module : torch.nn.Module
        The network.
    *kinds : tuple (Kind, tuple)
        The kind and the shape of the samples, or of each modality. A layer may state the number of
        positions of its output instead. The batch size does not count, so that a continued fit
        computes in the same number of threads.
    """
    stated = max(getattr(layer, "n_output_positions", 0) for layer in module.modules())
    n_positions = stated or max(_n_positions(kind, shape) for kind, shape in kinds)
    n_parameters = sum(parameter.numel() for parameter in module.parameters())
    if n_parameters * (1 + n_positions / _POSITIONS) > _LARGE:
        for limits in reversed(vars(_ENTERED).get("entered", [])[:]):
            limits.close()


def _n_positions(kind: Any, shape: tuple) -> int:
    """Return the number of pixels or steps of a sample, 1 if it has neither."""
    image = kind.image_shape(shape)
    return math.prod(image[1:]) if image else getattr(kind, "n_times_", 1)


# The types of devices that `resolve_device` returns.
_DEVICES = "cpu", "cuda", "mps"


@contextmanager
def guarded(*, gradients: bool = True) -> Iterator[None]:
    """Compute with the original settings of torch and scikit-learn, also as a decorator.

    Every public function and method that computes enters it first: ``torch.autocast``,
    ``torch.set_default_device``, ``torch.set_default_dtype`` and scikit-learn's
    ``transform_output`` and ``array_api_dispatch`` of the caller have no effect within. A nested
    context changes nothing. scikit-learn converts the output of `transform` after it, so that
    users get what they have configured. The default dtype belongs to the process: where it is not
    float32, computations must not overlap in threads.

    Parameters
    ----------
    gradients : bool, default=True
        Whether to enable gradients and to leave inference mode: parameters that were made there
        could not be trained later. False for functions of the caller's tensors.
    """
    with ExitStack() as modes:
        for device in _DEVICES:
            if torch.is_autocast_enabled(device):
                modes.enter_context(torch.autocast(device, enabled=False))
        if torch.get_default_device().type != "cpu":
            modes.enter_context(torch.device("cpu"))
        if (dtype := torch.get_default_dtype()) != torch.float32:
            modes.callback(torch.set_default_dtype, dtype)
            torch.set_default_dtype(torch.float32)
        config = get_config()
        if config["transform_output"] != "default" or config["array_api_dispatch"]:
            plain: Any = {"transform_output": "default", "array_api_dispatch": False}
            modes.enter_context(config_context(**plain))
        if gradients and (torch.is_inference_mode_enabled() or not torch.is_grad_enabled()):
            modes.enter_context(torch.inference_mode(False))
            modes.enter_context(torch.enable_grad())
        yield


# Not every KeyboardInterrupt is Ctrl-C: callbacks of skorch stop training by one.
@contextmanager
def recorded_interrupts() -> Iterator[list[int]]:
    """Yield a list to which Ctrl-C adds when it raises KeyboardInterrupt within the context.

    The previous handler of SIGINT runs as usual, and decides whether to raise. The list stays
    empty in threads other than the main one, which get no signals, and where SIGINT is ignored.
    """
    interrupts: list[int] = []
    previous_handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(previous_handler):
        yield interrupts
        return

    def handle(number: int, frame: FrameType | None) -> None:
        try:
            previous_handler(number, frame)
        except KeyboardInterrupt:
            interrupts.append(number)
            raise

    signal.signal(signal.SIGINT, handle)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, previous_handler)
