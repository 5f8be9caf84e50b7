"""Agreement of the ranks of a fit: on versions, parameters, data and the fit so far."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from .._data._checksum import checksum
from .._version import versions
from ._connection import current_connection, exchange
from ._world import current_world

_MOST_DIFFERENCES = 4


@contextmanager
def failing_together() -> Iterator[None]:
    """A context in which ranks train together: an error in it on one rank is an error on all.

    The ranks must enter such contexts in the same order. A process that trains alone is not
    affected.
    """
    if current_world() is None:
        yield
        return
    connection = current_connection()
    try:
        connection.connect("cpu")
        yield
    except BaseException as error:
        connection.fail(error)
        raise


def agree(
    parameters: Mapping[str, str], arrays: Mapping[str, Any], seed: int, device: torch.device
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
    facts = versions(("skcontrast", "torch"))
    facts["device"] = device.type
    facts |= parameters
    for name, array in arrays.items():
        facts[name] = f"{array.dtype} of shape {array.shape} with checksum {checksum([array])}"
    given, seeds = zip(*exchange((facts, seed)), strict=True)
    _check_same(given)
    # Before a rank can fail, or the next fit would not meet in the same group.
    current_connection().connect(device.type)
    return int(seeds[0])


def check_same_progress(n_epochs: int) -> None:
    """Raise ValueError on all ranks if callbacks have loaded fits of different lengths.

    Parameters
    ----------
    n_epochs : int
        Epochs that this rank has trained, before the first of this fit.
    """
    _check_same(exchange({"epochs": str(n_epochs)}))


def _check_same(facts: Sequence[dict[str, str]]) -> None:
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
