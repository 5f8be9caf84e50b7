"""State of the process: device, memory, threads and random generators."""

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
from threadpoolctl import OpenBLASController, ThreadpoolController


def resolve_device(device: Any, owner: str) -> torch.device:
    """Return the torch device; "auto" is the first available of CUDA, MPS and CPU.

    Raises
    ------
    ValueError
        If the device is unknown or not available.
    """
    if device == "auto":
        has_mps = torch.backends.mps.is_available()
        return torch.device("cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu")
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
    is_cuda = device.type == "cuda"
    return torch.cuda.mem_get_info(device)[0] if is_cuda else psutil.virtual_memory().available


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


# The fewest multiplications of a forward pass for each thread. From twice this number on, a step
# on two quiet cores is at least 1.4 times as fast on two threads (`benchmarks/speed/threads.py`),
# and so is a call of `transform`, with the same bits. Threads are not chosen by timing, so that a
# seed gives one result.
_WORK_OF_A_THREAD = 3e8

# For each thread of the program, the most threads that its contexts of `on_threads` may use, and
# whether it has entered one.
_ALLOWED = threading.local()
# The numbers of threads of torch outside the contexts of `on_threads` that are open. A thread that
# first uses torch within those of other threads has the number within.
_OUTSIDE: list[int] = []
# The libraries of numpy and scipy, found once, which takes milliseconds; those that are loaded
# later are not limited. Their numbers of threads belong to the process: of the contexts that are
# open, the first has stored them, and the last restores them.
_BLAS = ThreadpoolController().select(user_api="blas")
_BLAS_LIMITS: list[Any] = []
_LOCK = threading.Lock()


def threads_for(work: float) -> int:
    """Return the number of CPU threads that pay for a batch, at least 1.

    Parameters
    ----------
    work : float
        Multiplications of a forward pass of a batch.
    """
    return int(max(1, work // _WORK_OF_A_THREAD))


@contextmanager
def on_threads(n: int = 1, device: torch.device | str = "cpu") -> Iterator[None]:
    """Compute on the CPU in n threads, at most in as many as torch has outside all such contexts.

    numpy and scipy compute in one, in the whole process until the last such context ends.

    Small networks train fastest in one: OpenMP's threads wait for each other in busy loops, and on
    a machine that has other work, a small step takes several times as long.
    On exit, the numbers of threads are restored.

    Parameters
    ----------
    n : int, default=1
        The number of threads of torch.
    device : torch.device or str, default="cpu"
        The device of the computation; nothing changes unless it is the CPU.
    """
    if torch.device(device).type != "cpu":
        yield
        return
    before = torch.get_num_threads()
    with ExitStack() as limits:
        if not hasattr(_ALLOWED, "n"):
            others = [] if hasattr(_ALLOWED, "is_known") else _OUTSIDE
            _ALLOWED.n = before = max([before, *others])
            _ALLOWED.is_known = True
            _OUTSIDE.append(before)
            limits.callback(delattr, _ALLOWED, "n")
            limits.callback(_OUTSIDE.remove, before)
        limits.callback(torch.set_num_threads, before)
        torch.set_num_threads(min(n, _ALLOWED.n))
        _limit_blas(begins=True)
        limits.callback(_limit_blas, begins=False)
        yield


def _limit_blas(*, begins: bool) -> None:
    """Limit numpy and scipy to one thread, or end such a limit; the last restores the number."""
    with _LOCK:
        if begins:
            _BLAS_LIMITS.append(_BLAS.limit(limits=1))
        else:
            _BLAS_LIMITS.pop().restore_original_limits()
        # Otherwise threadpoolctl from 3.8 on ignores all other threads while this one lives.
        getattr(OpenBLASController, "clear_controlling_thread", int)()


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
