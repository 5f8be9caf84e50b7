"""What the ranks of a fit must agree on: versions, parameters, data and the fit so far."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from functools import wraps
from importlib.metadata import version
from typing import Any, TypeVar, cast

import numpy as np
import torch

from ._faults import shared_fit, this_fit
from ._world import current_world, fingerprint

_Method = TypeVar("_Method", bound=Callable[..., Any])

_LONGEST_TEXT = 100
_LONGEST_ITEM = 16
_MOST_DIFFERENCES = 4


def fails_on_all_ranks(method: _Method) -> _Method:
    """Return a method that trains, such that an error in it on one rank is an error on all.

    The ranks must call such methods in the same order. A process that trains alone is not
    affected.
    """

    @wraps(method)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with nullcontext() if current_world() is None else shared_fit():
            return method(*args, **kwargs)

    return cast(_Method, wrapped)


def agree(
    parameters: Mapping[str, Any],
    arrays: Mapping[str, Any],
    seed: int,
    device: torch.device,
) -> int:
    """Check that all ranks were given the same data and parameters; return the seed of rank 0.

    Parameters
    ----------
    parameters : dict
        Descriptions by name, as `describe` returns them, at any depth.
    arrays : dict of str to array-like
        Data. Of ndarrays in memory all bytes are compared, of others some of the rows.
    seed : int
        Of this rank.
    device : torch.device
        Where this rank trains.

    Raises
    ------
    ValueError
        On every rank, if something differs on any; the message says what and on which.
    RuntimeError, KeyboardInterrupt
        If fit has failed or was interrupted on another rank, or a rank does not come in time.
    """
    facts = {name: version(name) for name in ("skcontrast", "torch")}
    facts["device"] = device.type
    for name, value in parameters.items():
        facts.update(_flat(name, value))
    facts.update((name, _summary(array)) for name, array in arrays.items())
    reports = this_fit().meet({"facts": facts, "seed": seed}, device)
    _check_same([report["facts"] for report in reports])
    return int(reports[0]["seed"])


def check_same_progress(n_epochs: int) -> None:
    """Raise ValueError on all ranks if callbacks have loaded fits of different lengths.

    Parameters
    ----------
    n_epochs : int
        Epochs that this rank has trained, before the first of this fit.
    """
    reports = this_fit().exchange("begin", {"facts": {"epochs": str(n_epochs)}})
    _check_same([report["facts"] for report in reports])


def end_together(interrupted: bool) -> None:
    """Wait until the training has ended on all ranks.

    Parameters
    ----------
    interrupted : bool
        Whether the user has interrupted the training.
    """
    this_fit().end(interrupted)


def _flat(name: str, value: Any) -> Iterator[tuple[str, str]]:
    """Yield what a description holds, at any depth, under names such as ``loss__tau_plus``."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict):
        yield name, value[0]
        value = value[1]
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(f"{name}__{key}", item)
    elif isinstance(value, list) and not all(map(_is_short, value)):
        for i, item in enumerate(value):
            yield from _flat(f"{name}[{i}]", item)
    else:
        text = value if isinstance(value, str) else repr(value).replace("'", "")
        if len(text) > _LONGEST_TEXT:
            text = f"{text[:_LONGEST_TEXT]}... (checksum {zlib.crc32(text.encode()):08x})"
        yield name, text


def _is_short(item: Any) -> bool:
    """Return whether an item is better shown within its list than as a line of its own."""
    return (isinstance(item, str) and len(item) <= _LONGEST_ITEM) or isinstance(item, (int, float))


def _summary(array: Any) -> str:
    checksum = fingerprint([array], whole=_is_in_memory(array))
    return f"{array.dtype} of shape {array.shape} with checksum {checksum:08x}"


def _is_in_memory(array: Any) -> bool:
    """Return whether an array is an ndarray that does not lie in a file."""
    if not isinstance(array, np.ndarray):
        return False
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            return False
        array = array.base
    return True


def _check_same(facts: list[dict[str, str]]) -> None:
    """Raise ValueError if the facts of a rank differ from those of rank 0."""
    for rank, own in enumerate(facts):
        if own == facts[0]:
            continue
        names = [name for name in {**facts[0], **own} if own.get(name) != facts[0].get(name)]
        differences = [
            f"{name!r} is {own.get(name, 'missing')} instead of {facts[0].get(name, 'missing')}"
            for name in names[:_MOST_DIFFERENCES]
        ]
        if len(names) > _MOST_DIFFERENCES:
            differences.append(f"{len(names) - _MOST_DIFFERENCES} more differ")
        raise ValueError(
            f"fit was given different data or parameters on rank {rank} than on rank 0: "
            f"{'; '.join(differences)}. Under torch.distributed, every rank must pass the same "
            "parameters and the same whole X; fit divides the batches among the ranks."
        )
