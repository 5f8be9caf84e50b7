"""What the ranks of a fit must agree on: versions, parameters, data and the fit so far."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import wraps
from importlib.metadata import version
from typing import Any, TypeVar, cast

import torch

from .._data._checksum import checksum
from ._faults import shared_fit, this_fit
from ._world import current_world

_Method = TypeVar("_Method", bound=Callable[..., Any])

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
    parameters: Mapping[str, str],
    arrays: Mapping[str, Any],
    seed: int,
    device: torch.device,
) -> int:
    """Check that all ranks were given the same data and parameters; return the seed of rank 0.

    Parameters
    ----------
    parameters : dict
        Descriptions by name.
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
    facts |= parameters
    for name, array in arrays.items():
        facts[name] = f"{array.dtype} of shape {array.shape} with checksum {checksum([array])}"
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
