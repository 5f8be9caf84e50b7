"""Threads of torch and of numpy: one for small work, those of the program for what is large."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from threadpoolctl import threadpool_limits
from torch import nn

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
