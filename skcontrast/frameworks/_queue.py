"""The queue of keys that contrasts a batch with samples of earlier batches."""

from __future__ import annotations

import torch
from torch import Tensor, nn

# What is known about the sample of each slot.
_MARKS = ("rows", "labels", "groups", "ids")


class KeyQueue(nn.Module):
    """The keys of the most recent samples, first in, first out.

    Each visit of a sample occupies one slot, with all keys that the sample got in that step, its
    place in X and its class. An epoch visits every sample once. So a queue that has no more slots
    than there are samples holds at most one earlier visit of the sample that comes next.

    Parameters
    ----------
    n_slots : int
        Number of slots, the most samples that the queue holds.
    n_keys : int
        Keys per sample.
    width : int
        Width of a key.
    n_samples : int
        Number of samples in X. More slots hold keys of earlier fits too.
    first_id : int, default=0
        ``FitContext.first_id``, by which the samples are recognised in later fits.

    Attributes
    ----------
    keys : Tensor of shape (n_slots, n_keys, width)
        Outputs of the network.
    rows, labels, groups : Tensor of shape (n_slots,), dtype int64
        Places in X, classes and groups; −1 where unknown, and the place where a sample is not in
        X.
    ids : Tensor of shape (n_slots,), dtype int64
        Numbers of the samples, −1 where unknown.
    n_seen : int
        Number of samples pushed so far; the next one goes to slot ``n_seen % n_slots``.

    See Also
    --------
    MoCo : Draws its candidates from a queue.
    MomentumNetwork : The network that encodes the keys of MoCo.
    Session : Holds a queue during a fit.

    Examples
    --------
    A queue with room for two samples, after three:

    >>> import torch
    >>> from skcontrast.frameworks import KeyQueue
    >>> queue = KeyQueue(n_slots=2, n_keys=1, width=2, n_samples=10)
    >>> keys = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
    >>> queue.push(keys[:, None], rows=torch.tensor([7, 2, 5]))
    >>> len(queue)
    2
    >>> held, labels = queue.filled()
    >>> held
    tensor([[4., 5.],
            [2., 3.]])

    Sample 5 has its own key in row 0, which is not a negative for it:

    >>> queue.own(torch.tensor([5]))
    tensor([[0]])
    """

    keys: Tensor
    rows: Tensor
    labels: Tensor
    groups: Tensor
    ids: Tensor
    _pushed: Tensor

    def __init__(self, n_slots: int, n_keys: int, width: int, n_samples: int, first_id: int = 0):
        super().__init__()
        self.n_slots, self.n_seen, self.first_id = n_slots, 0, first_id
        self.register_buffer("keys", torch.zeros(n_slots, n_keys, width))
        for name in _MARKS:
            self.register_buffer(name, torch.full((n_slots,), -1))
        # For each sample of X, the value of n_seen at its last visit.
        self.register_buffer("_pushed", torch.full((n_samples,), -1), persistent=False)

    def __len__(self) -> int:
        """Return how many samples the queue holds."""
        return min(self.n_seen, self.n_slots)

    def filled(self) -> tuple[Tensor, Tensor]:
        """Return the keys in the queue and their labels.

        Returns
        -------
        keys : Tensor of shape (n, width)
            n = ``len(self) * n_keys`` keys; the keys of one sample are consecutive.
        labels : Tensor of shape (n,), dtype int64
            Their classes, −1 where unknown.
        """
        labels = self.labels[: len(self)].repeat_interleave(self.keys.shape[1])
        return self.keys[: len(self)].flatten(0, 1), labels

    def own(self, rows: Tensor) -> Tensor:
        """Return which of the filled rows must be excluded for each sample.

        These are the sample's own older keys. A sample that has none gets the keys of the oldest
        sample instead, so that all samples have the same number of negatives.

        Parameters
        ----------
        rows : Tensor of shape (n,), dtype int64
            Places of the samples in X.

        Returns
        -------
        own : Tensor of shape (n, n_keys), dtype int64
            Rows of the keys that `filled` returns.
        """
        slots = self._pushed[rows].clamp_min(self.n_seen - len(self)) % self.n_slots
        n_keys = self.keys.shape[1]
        return slots[:, None] * n_keys + torch.arange(n_keys, device=rows.device)

    @torch.no_grad()
    def push(
        self,
        keys: Tensor,
        rows: Tensor,
        labels: Tensor | None = None,
        groups: Tensor | None = None,
    ) -> None:
        """Add the keys of samples; if there is no room, the oldest are removed.

        Parameters
        ----------
        keys : Tensor of shape (n, n_keys, width)
            The new keys.
        rows : Tensor of shape (n,), dtype int64
            Places in X of their samples, all different.
        labels : Tensor of shape (n,), dtype int64, default=None
            Classes, −1 where unknown.
        groups : Tensor of shape (n,), dtype int64, default=None
            Groups, −1 where there is none.
        """
        times = torch.arange(self.n_seen, self.n_seen + len(keys), device=rows.device)
        self._pushed[rows] = times
        kept = slice(max(0, len(keys) - self.n_slots), None)
        slots = times[kept] % self.n_slots
        self.keys[slots] = keys[kept].to(self.keys.dtype)
        self.rows[slots], self.ids[slots] = rows[kept], rows[kept] + self.first_id
        self.labels[slots] = -1 if labels is None else labels[kept]
        self.groups[slots] = -1 if groups is None else groups[kept]
        self.n_seen += len(keys)

    def get_extra_state(self) -> int:
        """Return the non-tensor state, `n_seen`."""
        return self.n_seen

    def set_extra_state(self, n_seen: int) -> None:
        """Load the non-tensor state, after the tensors."""
        self.n_seen = n_seen
        times = torch.arange(n_seen - len(self), n_seen, device=self.rows.device)
        rows = self.rows[times % self.n_slots]
        known = rows >= 0
        self._pushed.fill_(-1).scatter_reduce_(0, rows[known], times[known], "amax")

    @torch.no_grad()
    def resume(
        self,
        keys: Tensor,
        labels: Tensor,
        n_seen: int,
        ids: Tensor,
        groups: Tensor,
    ) -> None:
        """Continue from the content of an earlier queue with the same number of keys per sample.

        Each key keeps its class and its group, and samples of X are found among them.

        If the earlier queue is larger, its oldest samples are left out. So are the older keys of
        a sample that it holds twice, from an interrupted epoch and from the epoch before: the
        next epoch may visit this sample while both are still in the queue.

        Parameters
        ----------
        keys : Tensor of shape (m, n_keys, width)
            The attribute `keys` of the earlier queue.
        labels : Tensor of shape (m,)
            Its attribute `labels`.
        n_seen : int
            Its attribute `n_seen`.
        ids, groups : Tensor of shape (m,)
            Its attributes `ids` and `groups`.
        """
        marks = {"rows": self._rows_of(ids), "labels": labels, "ids": ids, "groups": groups}
        filled = min(n_seen, len(ids))
        order = torch.arange(n_seen - filled, n_seen, device=ids.device) % len(ids)
        order = order[_newest(ids[order])]
        order = order[-self.n_slots :]
        # The slots of a full queue stay as they are: a resumed fit then has the very same bits.
        start = n_seen - len(order) if len(order) == self.n_slots == len(ids) else 0
        slots = torch.arange(start, start + len(order), device=ids.device) % self.n_slots
        self.keys[slots] = keys[order].to(self.keys)
        for name, theirs in marks.items():
            mine = getattr(self, name)
            mine[slots] = theirs[order].to(mine.device)
        self.set_extra_state(start + len(order))

    def _count_others(self, ids: Tensor, n_seen: int) -> int:
        """Return how many different samples that are not in X an earlier queue holds.

        Parameters
        ----------
        ids : Tensor of shape (m,)
            The attribute `ids` of the earlier queue.
        n_seen : int
            Its attribute `n_seen`.
        """
        held = ids[: min(n_seen, len(ids))]
        return int((self._rows_of(held[_newest(held)]) < 0).sum())

    def _rows_of(self, ids: Tensor) -> Tensor:
        """Return the places of samples in X by their numbers, −1 for samples that are not in X."""
        rows = ids - self.first_id
        return torch.where((ids < 0) | (rows < 0) | (rows >= len(self._pushed)), -1, rows)


def _newest(ids: Tensor) -> Tensor:
    """Return the last position of each number, and all positions of −1, in ascending order."""
    places = torch.arange(len(ids), device=ids.device)
    unique, inverse = torch.where(ids < 0, -1 - places, ids).unique(return_inverse=True)
    return torch.zeros_like(unique).scatter_reduce_(0, inverse, places, "amax").sort().values
