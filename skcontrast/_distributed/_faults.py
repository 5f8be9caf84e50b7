"""Faults of a fit on several ranks: what ends it on one ends it on all, with the reason.

While a rank waits for the others, it looks for their notes of a failure twice a second, and gives
up when its time limit is over or its connection is lost. Nothing of this costs time while all
ranks come to a collective within half a second.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from ._notes import Notes

_VARIABLE = "SKCONTRAST_RANK_TIMEOUT"
_DEFAULT_LIMIT = 600.0
_SLICE = timedelta(seconds=0.5)
# Beyond the limit, after which the backend on the CPU ends a collective itself, with an error that
# does not tell a rank that hangs from one that is lost. By then, this rank has given up waiting.
_MARGIN = 5.0
# Between two looks for notes, in seconds.
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.0005, 0.05


def time_limit() -> float:
    """Return the most seconds that a rank waits for another.

    Raises
    ------
    ValueError
        If the environment variable SKCONTRAST_RANK_TIMEOUT is not a positive number.
    """
    text = os.environ.get(_VARIABLE, str(_DEFAULT_LIMIT))
    try:
        limit = float(text)
    except ValueError:
        limit = 0.0
    if not 0 < limit < 1e9:
        raise ValueError(
            f"The environment variable {_VARIABLE} must be a positive number of seconds, got "
            f"{text!r}."
        )
    return limit


@dataclass
class _Ranks:
    """What all fits of one process group share.

    Attributes
    ----------
    everyone : ProcessGroup or None
        The default group; None while the ranks are still to join it.
    n_fits : int
        Fits begun so far, the same number on all ranks. Joining the group counts as one.
    own : dict of str to ProcessGroup
        By device type, the group in which fits communicate. It is replaced when a fit fails, so
        that a collective that was never finished does not meet one of the next fit.
    last : SharedFit or None
        The last fit that began, whose notes are deleted when all ranks have come to the next.
    lost : str
        Why the group is of no more use.
    """

    everyone: Any
    n_fits: int = 0
    own: dict[str, Any] = field(default_factory=dict)
    last: SharedFit | None = None
    lost: str = ""


_ranks: _Ranks | None = None
_fits: list[SharedFit] = []


class SharedFit:
    """A fit that the ranks of the default group run together, or the wait for them to join it.

    Parameters
    ----------
    ranks : _Ranks
        What it shares with other fits.
    store : Store
        Where the ranks leave notes for each other.
    rank, size : int
        The rank of this process, and the number of ranks.

    Attributes
    ----------
    group : ProcessGroup or None
        Where the ranks communicate; None before they have met.
    is_over : bool
        Whether nobody needs to hear of a failure any more.
    """

    def __init__(self, ranks: _Ranks, store: Any, rank: int, size: int):
        self.ranks, self.limit = ranks, time_limit()
        ranks.n_fits += 1
        own_store = dist.PrefixStore(f"skcontrast/fit_{ranks.n_fits}", store)
        self.notes = Notes(own_store, rank, size)
        self.group: Any = None
        self.is_over = False

    # Meeting

    def exchange(self, stage: str, report: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the reports of all ranks, when all have come to the same stage.

        Parameters
        ----------
        stage : str
            Where the ranks meet.
        report : dict
            What the others should know, representable in JSON.

        Raises
        ------
        RuntimeError
            If a rank has failed, or does not come in time.
        """
        deadline = time.monotonic() + self.limit
        with self._guarded():
            self.notes.leave(stage, report)
            pause = _SHORTEST_PAUSE
            while not self._is_complete(stage):
                self._check(deadline)
                time.sleep(pause)
                pause = min(1.5 * pause, _LONGEST_PAUSE)
            if self.notes.of("stuck"):  # others have given up waiting for this rank
                raise _Fault
            return list(self.notes.of(stage).values())

    def meet(self, report: dict[str, Any], device: torch.device) -> list[dict[str, Any]]:
        """Exchange reports before the training; from then on, collectives are guarded."""
        own = self.ranks.own
        reports = self.exchange("start", {**report, "connected": device.type in own})
        last, self.ranks.last = self.ranks.last, self
        if last is not None:
            last.notes.forget()
        if not all(report["connected"] for report in reports):
            # Unlike the default group, it has our limit, and may be left behind broken.
            on_cpu = device.type == "cpu"
            timeout = timedelta(seconds=self.limit + (_MARGIN if on_cpu else 0.0))
            backend = "gloo" if on_cpu else None
            own[device.type] = dist.new_group(timeout=timeout, backend=backend)
        self.group = own[device.type]
        return reports

    def end(self, interrupted: bool) -> None:
        """Wait until the training has ended on all ranks."""
        self.exchange("end", {"interrupted": interrupted})
        self.is_over = True

    def fail(self, error: BaseException) -> None:
        """Tell the other ranks about an error of this rank, and wait until they know."""
        if self.is_over:
            return
        group = self._leave()
        with suppress(RuntimeError):  # without a store nobody can be told
            self.notes.tell(error)
            if group is not None and group.name() == "gloo":
                # Ends the collective in which the others wait; else their processes would wait
                # for it when they end.
                dist.destroy_process_group(group)
            self.notes.wait_until_told()

    # Waiting

    def run(self, start: Callable[[], Any], on_cpu: bool) -> None:
        """Start a collective and wait for its end.

        Parameters
        ----------
        start : callable
            Returns the ``Work``.
        on_cpu : bool
            Whether to look for notes meanwhile. On a GPU the host does not wait: the backend
            itself ends what takes longer than the limit.

        Raises
        ------
        RuntimeError
            If a rank has failed, or does not come in time.
        """
        deadline = time.monotonic() + self.limit
        with self._guarded():
            work = start()
            if not on_cpu:
                work.wait()
                return
            while not _is_done(work):
                if self.notes.has_failed:
                    raise _Fault
                self._check(deadline)

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Replace what interrupts the wait, an error of the connection or not, by its reason."""
        try:
            yield
        except _Fault as fault:
            raise self._reason(str(fault)) from None
        except RuntimeError as error:
            raise self._reason(str(error)) from error

    def _is_complete(self, stage: str) -> bool:
        """Return whether all notes are there; raise _Fault if a rank had failed before."""
        has_failed = self.notes.has_failed
        if self.notes.are_complete(stage):
            return True
        if has_failed:
            raise _Fault
        return False

    def _check(self, deadline: float) -> None:
        """Raise _Fault if a rank has ended its training early, or time is over."""
        is_training = self.group is not None and not self.notes.has_left("end")
        if is_training and self.notes.of("end"):
            raise _Fault
        if time.monotonic() > deadline:
            raise _Fault(
                f"did not come within {self.limit:g} s, the time limit that the environment "
                f"variable {_VARIABLE} sets: its process hangs, was killed or is too slow"
            )

    def _reason(self, trouble: str) -> BaseException:
        """Return the error with which this rank ends, when it has heard of the others."""
        self._leave()
        error, self.ranks.lost = self.notes.reason(trouble)
        return error

    def _leave(self) -> Any:
        """Return the group in which this fit has communicated, which no later fit uses."""
        self.is_over = True
        group, self.group = self.group, None
        if group is not None:
            self.ranks.own = {}
        return group


class _Fault(Exception):
    """Ends the wait for the other ranks; says what is wrong with those that are missing."""


def _is_done(work: Any) -> bool:
    """Wait a moment for a collective, and return whether it is done."""
    try:
        work.wait(_SLICE)
    except RuntimeError:
        if not work.is_completed():
            return False
        work.wait()  # raises if it has failed, not if it was done in this moment
    return True


# What fits use


@contextmanager
def shared_fit() -> Iterator[None]:
    """A context in which the ranks fit together: if one fails, all fail, and say why."""
    global _ranks
    everyone = dist.group.WORLD
    if _ranks is None or _ranks.everyone is not everyone:
        _ranks = _Ranks(everyone)
    store = everyone.get_group_store()
    fit = _begin(_ranks, store, dist.get_rank(), dist.get_world_size())
    _fits.append(fit)
    try:
        with _failing_together(fit):
            yield
    finally:
        _fits.pop()


def join(store: Any, rank: int, size: int) -> None:
    """Start the default group when all its ranks have come, or fail as a fit fails.

    The time limit holds for this wait alone: the group keeps the timeout that is usual for its
    backend.

    Parameters
    ----------
    store : Store
        Which all ranks can reach.
    rank, size : int
        The rank of this process, and the number of ranks.

    Raises
    ------
    RuntimeError
        If a rank has failed, or does not come in time.
    """
    global _ranks
    if _ranks is None or _ranks.everyone is not None:
        _ranks = _Ranks(None)
    meeting = _begin(_ranks, store, rank, size)
    with _failing_together(meeting):
        meeting.exchange("start", {})
    dist.init_process_group(
        store=dist.PrefixStore("default_pg", store), rank=rank, world_size=size
    )
    _ranks = _Ranks(dist.group.WORLD, last=meeting)


def _begin(ranks: _Ranks, store: Any, rank: int, size: int) -> SharedFit:
    """Return a new fit of ranks that have not lost each other."""
    if ranks.lost:
        raise RuntimeError(
            f"The process group is of no use since an earlier fit: {ranks.lost}. Start all "
            "processes again."
        )
    return SharedFit(ranks, store, rank, size)


@contextmanager
def _failing_together(fit: SharedFit) -> Iterator[None]:
    try:
        yield
    except BaseException as error:
        fit.fail(error)
        raise


def this_fit() -> SharedFit:
    """Return the innermost fit that the ranks run together at the moment."""
    return _fits[-1]


def all_reduce(tensor: Tensor) -> None:
    """Replace a tensor by its sum over the ranks."""
    _run(dist.all_reduce, tensor)


def broadcast(tensor: Tensor) -> None:
    """Replace a tensor by rank 0's."""
    _run(partial(dist.broadcast, src=0), tensor)


def _run(collective: Callable[..., Any], tensor: Tensor) -> None:
    """Run a collective; outside of fits in the default group, as it is."""
    if _fits:
        start = partial(collective, tensor, group=this_fit().group, async_op=True)
        this_fit().run(start, tensor.device.type == "cpu")
    else:
        collective(tensor)
