"""The queue of keys that contrasts a batch with samples of earlier batches."""

from __future__ import annotations

import torch
from torch import Tensor, nn


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
        Number of samples in X.

    Attributes
    ----------
    keys : Tensor of shape (n_slots, n_keys, width)
        Outputs of the network.
    rows, labels : Tensor of shape (n_slots,), dtype int64
        Places in X and classes; −1 where unknown. `FitContext.groups_of` returns the groups of
        the places.
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
    _pushed: Tensor

    def __init__(self, n_slots: int, n_keys: int, width: int, n_samples: int):
        super().__init__()
        self.n_slots, self.n_seen = n_slots, 0
        self.register_buffer("keys", torch.zeros(n_slots, n_keys, width))
        self.register_buffer("rows", torch.full((n_slots,), -1))
        self.register_buffer("labels", torch.full((n_slots,), -1))
        # For each sample of X, the value of n_seen at its last visit; row −1 is the last entry.
        self.register_buffer("_pushed", torch.full((n_samples + 1,), -1), persistent=False)

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
    def push(self, keys: Tensor, rows: Tensor, labels: Tensor | None = None) -> None:
        """Add the keys of samples; if there is no room, the oldest are removed.

        Parameters
        ----------
        keys : Tensor of shape (n, n_keys, width)
            The new keys.
        rows : Tensor of shape (n,), dtype int64
            Places in X of their samples, all different except for −1, samples that are not in X.
        labels : Tensor of shape (n,), dtype int64, default=None
            Classes, −1 where unknown.
        """
        times = torch.arange(self.n_seen, self.n_seen + len(keys), device=rows.device)
        self._pushed[rows] = times
        kept = slice(max(0, len(keys) - self.n_slots), None)
        slots = times[kept] % self.n_slots
        self.keys[slots] = keys[kept].to(self.keys.dtype)
        self.rows[slots] = rows[kept]
        self.labels[slots] = -1 if labels is None else labels[kept]
        self.n_seen += len(keys)

    def get_extra_state(self) -> int:
        """Return the non-tensor state, `n_seen`."""
        return self.n_seen

    def set_extra_state(self, n_seen: int) -> None:
        """Load the non-tensor state, after the tensors."""
        self.n_seen = n_seen
        times = self._oldest_first()
        rows = self.rows[times % self.n_slots] % len(self._pushed)
        self._pushed.fill_(-1).scatter_reduce_(0, rows, times, "amax")

    def _oldest_first(self) -> Tensor:
        """Return the values of `n_seen` at which the samples in the queue came."""
        return torch.arange(self.n_seen - len(self), self.n_seen, device=self.rows.device)

    def continued(self, most_slots: int) -> KeyQueue:
        """Return a queue for the next fit that begins with the keys of this one.

        It has a slot for each sample of X and for each key of unknown samples, up to `most_slots`.
        Of a sample of X, only the newest visit is kept, so that it never meets an older one.
        """
        times = self._oldest_first()
        slots, n_samples = times % self.n_slots, len(self._pushed) - 1
        rows = self.rows[slots]
        is_unknown = rows < 0
        # A sample keeps its newest key alone; of samples that are not in X all stay.
        is_kept = is_unknown | (self._pushed[rows] == times)
        n_slots = min(most_slots, n_samples + int(is_unknown.sum()))
        if n_slots == self.n_slots and is_kept.all():
            return self
        slots = slots[is_kept][-n_slots:]
        _, n_keys, width = self.keys.shape
        queue = KeyQueue(n_slots, n_keys, width, n_samples).to(self.keys.device)
        queue.push(self.keys[slots], self.rows[slots], self.labels[slots])
        return queue
