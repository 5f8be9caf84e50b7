"""Notes that ranks leave for each other, from which all find the same reason of a failure.

The notes are in the store of the process group, which every backend has. A rank that fails leaves
its error there. A rank that has given up waiting for the others says so in a note of its own, and
the ranks that leave none within a few seconds are those that were lost.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from typing import Any

# Ranks that are alive answer within this time, unless they compute for longer between two steps.
_GRACE = 5.0
# Between two looks for notes, in seconds.
_PAUSE = 0.05
_LONGEST_TEXT = 2000


class Notes:
    """The notes of one fit.

    Parameters
    ----------
    store : Store
        Which all ranks can reach.
    rank, size : int
        The rank of this process, and the number of ranks.
    """

    def __init__(self, store: Any, rank: int, size: int):
        self.store, self.rank, self.size = store, rank, size
        self._own: list[str] = []

    def leave(self, kind: str, note: Any) -> None:
        """Leave a note of this rank, representable in JSON."""
        self._own.append(kind)
        self.store.set(self._key(kind, self.rank), json.dumps(note))

    def has_left(self, kind: str) -> bool:
        """Return whether this rank has left a note of a kind."""
        return kind in self._own

    def forget(self) -> None:
        """Delete the notes of this rank."""
        for kind in self._own:
            self.store.delete_key(self._key(kind, self.rank))

    def of(self, kind: str) -> dict[int, Any]:
        """Return by rank the notes of one kind."""
        found = [rank for rank in range(self.size) if self.store.check([self._key(kind, rank)])]
        return {rank: json.loads(self.store.get(self._key(kind, rank))) for rank in found}

    def are_complete(self, kind: str) -> bool:
        """Return whether all ranks have left a note of a kind."""
        return self.store.check([self._key(kind, rank) for rank in range(self.size)])

    def _key(self, kind: str, rank: int) -> str:
        return f"{kind}/{rank}"

    @property
    def has_failed(self) -> bool:
        """Whether any rank has failed or given up waiting."""
        return self.store.check(["failed"])

    def tell(self, error: BaseException) -> None:
        """Tell the other ranks about an error of this rank."""
        text = f"{type(error).__name__}: {error}"[:_LONGEST_TEXT]
        self.leave("error", [type(error).__name__, text])
        self.leave("told", True)
        self.store.set("failed", "")

    def wait_until_told(self) -> None:
        """Wait until the other ranks know why the fit has failed, or a few seconds."""
        self._silent("told")

    def reason(self, trouble: str) -> tuple[BaseException, str]:
        """Return why this rank has waited in vain, when it has heard of the others.

        Parameters
        ----------
        trouble : str
            What has ended the wait, "" if a note of a different rank has.

        Returns
        -------
        error : BaseException
            With which this rank ends.
        loss : str
            Why the group is of no more use, "" if it is.
        """
        try:
            return self._found_reason(trouble)
        except RuntimeError:  # the store's
            return _lost(
                "the store of the process group does not answer. It is a part of rank 0, unless "
                "torchrun holds it: that process was killed or has ended"
            )

    def _found_reason(self, trouble: str) -> tuple[BaseException, str]:
        """Return the error with which this rank ends; all ranks that are left find the same."""
        self.leave("stuck", trouble)
        self.store.set("failed", "")
        silent = self._silent("stuck", unless="error")
        errors, ended, verdicts = map(self.of, ("error", "end", "verdict"))
        expected = self._others() if errors else self._others() - silent
        loss = ""
        if errors:
            error = _failure(errors)
        elif silent or verdicts:
            troubles = [note for note in self.of("stuck").values() if note]
            error, loss = _lost(verdicts.get(min(verdicts, default=-1)) or _loss(silent, troubles))
            self.leave("verdict", loss)
        elif ended:
            error = _early_end(ended)
        else:
            error = RuntimeError(f"fit failed: the ranks have lost each other. {trouble}")
        self.leave("told", True)
        self._silent("told", among=expected)
        return error, loss

    def _others(self) -> set[int]:
        return set(range(self.size)) - {self.rank}

    def _silent(self, kind: str, among: set[int] | None = None, unless: str = "") -> set[int]:
        """Return the ranks that leave no note of a kind within a few seconds.

        Parameters
        ----------
        kind : str
            Which notes to wait for.
        among : set of int, default=None
            The ranks to wait for; None is all others.
        unless : str, default=""
            The kind of a note, of any rank, that makes it useless to wait longer.
        """
        deadline = time.monotonic() + _GRACE
        missing = self._others() if among is None else among
        while missing := missing - self.of(kind).keys():
            if time.monotonic() > deadline or (unless and self.of(unless)):
                break
            time.sleep(_PAUSE)
        return missing


def _failure(errors: dict[int, Any]) -> BaseException:
    """Return the error of a rank that hears of errors on others."""
    rank = min(errors)
    name, text = errors[rank]
    if name == "KeyboardInterrupt":
        return KeyboardInterrupt(f"fit was interrupted on rank {rank}")
    return RuntimeError(f"fit failed on rank {rank}: {text}")


def _early_end(ended: dict[int, Any]) -> BaseException:
    """Return the error of ranks of which some have ended their training before the others."""
    for rank, note in ended.items():
        if note["interrupted"]:
            return KeyboardInterrupt(f"fit was interrupted on rank {rank}")
    return RuntimeError(
        f"fit failed: {_named(ended)} ended the training before the other ranks did. A callback "
        "may stop it only at the end of an epoch."
    )


def _lost(loss: str) -> tuple[BaseException, str]:
    """Return the error of a rank whose group is of no more use, and why it is."""
    return RuntimeError(f"fit failed: {loss}. Start all processes again."), loss


def _loss(silent: set[int], troubles: list[str]) -> str:
    """Return what happened to ranks that do not answer."""
    late = [trouble for trouble in troubles if trouble.startswith("did not come")]
    return f"{_named(silent)} {late[0] if late else 'was killed or has lost its connection'}"


def _named(ranks: Iterable[int]) -> str:
    return " and ".join(f"rank {rank}" for rank in sorted(ranks))
