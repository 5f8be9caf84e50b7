"""The connection of the ranks, whose collectives end in bounded time, with the reason if known.

A rank whose fit fails leaves its error in the store of the process group, and then closes its
connection. The collectives of the other ranks end at once, and they find the error. A rank that
is killed closes its connection, too; one that hangs is given up when the time limit is over.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import count
from typing import Any, cast

import torch.distributed as dist
from torch import Tensor

_VARIABLE = "SKCONTRAST_RANK_TIMEOUT"
_DEFAULT_LIMIT = "600"
# How long a rank that was left waits for the others to say that they are alive.
_GRACE = timedelta(seconds=5)
_INTERRUPTED = "fit was interrupted on rank"

_connections = count()
_connection: Connection | None = None


def time_limit() -> timedelta:
    """Return how long a rank waits for another at most.

    Raises
    ------
    ValueError
        If the environment variable SKCONTRAST_RANK_TIMEOUT is not a positive number.
    """
    text = os.environ.get(_VARIABLE, _DEFAULT_LIMIT)
    try:
        limit = float(text)
    except ValueError:
        limit = 0.0
    if not 0 < limit < 1e9:
        raise ValueError(
            f"The environment variable {_VARIABLE} must be a positive number of seconds, got "
            f"{text!r}."
        )
    return timedelta(seconds=limit)


class Connection:
    """The groups in which the ranks of the default group communicate, until a fit fails.

    A new connection takes the place of a closed one, so that a collective that was never finished
    does not meet one of the next fit.

    Attributes
    ----------
    is_open : bool
        Whether no fit has failed yet.
    loss : str
        Why the default group can no longer be used, "" if it can.
    """

    def __init__(self) -> None:
        self.everyone = cast(dist.ProcessGroup, dist.group.WORLD)
        self.limit = time_limit()
        store = self.everyone.get_group_store()
        self.store = dist.PrefixStore(f"skcontrast/{next(_connections)}", store)
        self.groups: dict[str, Any] = {}
        self.is_open, self.loss = True, ""

    def connect(self, device_type: str) -> Any:
        """Return the group in which ranks send tensors from devices of one type."""
        if device_type not in self.groups:
            backend = "gloo" if device_type == "cpu" else None
            with self.guarded():
                group = dist.new_group(timeout=self.limit, backend=backend)
            self.groups[device_type] = group
        return self.groups[device_type]

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Replace the error of a broken or slow connection by its reason."""
        try:
            yield
        except RuntimeError as error:
            raise self._reason() from error

    def fail(self, error: BaseException) -> None:
        """Tell the other ranks about an error of this rank, unless it came from one of them."""
        if not self.is_open:
            return
        text = f"fit failed on rank {dist.get_rank()}: {type(error).__name__}: {error}"
        if isinstance(error, KeyboardInterrupt):
            text = f"{_INTERRUPTED} {dist.get_rank()}"
        with suppress(RuntimeError):  # without a store nobody can be told
            self.store.set("error", text)
            self._close()
            self._silent()  # this process may hold the store

    def _close(self) -> None:
        """End the collectives in which other ranks wait for this one, and say that it is alive."""
        self.is_open = False
        if "cpu" in self.groups:
            dist.destroy_process_group(self.groups.pop("cpu"))
        self.store.set(f"alive/{dist.get_rank()}", "")

    def _reason(self) -> BaseException:
        """Return the error with which this rank ends, whose connection is broken."""
        try:
            self._close()
            if self.store.check(["error"]):
                text = self.store.get("error").decode()
                return (KeyboardInterrupt if text.startswith(_INTERRUPTED) else RuntimeError)(text)
            self.loss = (
                f"{' and '.join(self._silent()) or 'a rank'} was killed, has lost its connection "
                f"or did not come within {self.limit.total_seconds():g} s, the time limit that "
                f"the environment variable {_VARIABLE} sets"
            )
        except RuntimeError:
            self.loss = (
                "the store of the process group does not answer. It is a part of rank 0, unless "
                "torchrun holds it: that process was killed or has ended"
            )
        return RuntimeError(f"fit failed: {self.loss}. Start all processes again.")

    def _silent(self) -> list[str]:
        """Return the ranks that do not say within a few seconds that they are alive."""
        keys = {f"rank {rank}": f"alive/{rank}" for rank in range(dist.get_world_size())}
        with suppress(RuntimeError):
            self.store.wait(list(keys.values()), _GRACE)
        return [name for name, key in keys.items() if not self.store.check([key])]


def current_connection() -> Connection:
    """Return the connection of the default group."""
    global _connection
    if _connection is None or _connection.everyone is not dist.group.WORLD:
        _connection = Connection()
    if _connection.loss:
        raise RuntimeError(
            f"The process group can no longer be used: {_connection.loss}. Start all processes "
            "again."
        )
    if not _connection.is_open:
        _connection = Connection()
    return _connection


def leave() -> None:
    """Leave the default group; the threads of a connection must not outlive the interpreter."""
    global _connection
    _connection = None
    if dist.is_initialized():
        dist.destroy_process_group()


def exchange(report: Any) -> list[Any]:
    """Return the reports of all ranks, by rank."""
    reports = [None] * dist.get_world_size()
    _run(dist.all_gather_object, reports, report)
    return reports


def from_first_rank(value: Any) -> Any:
    """Return rank 0's value on every rank; what the others pass is ignored."""
    values = [value]
    _run(dist.broadcast_object_list, values, src=0)
    return values[0]


def all_reduce(tensor: Tensor) -> None:
    """Replace a tensor by its sum over the ranks."""
    _run(dist.all_reduce, tensor, device_type=tensor.device.type)


def broadcast(tensor: Tensor) -> None:
    """Replace a tensor by rank 0's."""
    _run(dist.broadcast, tensor, src=0, device_type=tensor.device.type)


def _run(collective: Callable, *args: Any, device_type: str = "cpu", **kwargs: Any) -> None:
    connection = current_connection()
    group = connection.connect(device_type)
    with connection.guarded():
        collective(*args, group=group, **kwargs)
