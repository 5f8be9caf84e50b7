"""What frameworks remember of samples that are not in the batch."""

from __future__ import annotations

import torch
from torch import nn


class KeyQueue(nn.Module):
    """The keys of the samples seen last, first in, first out.

    A visit of a sample has a slot: all keys that it got in one step, the sample's place in X and
    its class. Epochs visit every sample once, so a queue of no more slots than there are samples
    holds, of a sample that comes, one earlier visit at most.

    Parameters
    ----------
    n_slots : int
        The most samples that it holds.
    n_keys : int
        Keys per sample.
    width : int
        Width of a key.
    n_samples : int
        Samples in X, at least `n_slots`.

    Attributes
    ----------
    keys : Tensor of shape (n_slots, n_keys, width)
        What the network returned.
    rows, labels : Tensor of shape (n_slots,), dtype int64
        Places in X and classes; −1 where unknown.
    n_seen : int
        Samples that have been pushed so far; the next one goes to slot ``n_seen % n_slots``.
    """

    def __init__(self, n_slots, n_keys, width, n_samples):
        super().__init__()
        self.n_slots, self.n_seen = n_slots, 0
        self.register_buffer("keys", torch.zeros(n_slots, n_keys, width))
        self.register_buffer("rows", torch.full((n_slots,), -1))
        self.register_buffer("labels", torch.full((n_slots,), -1))
        # Of each sample, when it was pushed last.
        self.register_buffer("_pushed", torch.full((n_samples,), -1), persistent=False)

    def __len__(self):
        """Return how many samples it holds."""
        return min(self.n_seen, self.n_slots)

    def filled(self):
        """Return the keys and the labels that it holds, shapes (n, width) and (n,).

        Of n = ``len(self) * n_keys`` rows, those of one sample stand together.
        """
        labels = self.labels[: len(self)].repeat_interleave(self.keys.shape[1])
        return self.keys[: len(self)].flatten(0, 1), labels

    def own(self, rows):
        """Return which of the filled rows are no negatives of samples, shape (n, n_keys).

        These are the sample's own older keys. For a sample that has none they are those of the
        oldest sample, so that all have the same number of negatives.

        Parameters
        ----------
        rows : Tensor of shape (n,), dtype int64
            Places of the samples in X.
        """
        slots = self._pushed[rows].clamp_min(self.n_seen - len(self)) % self.n_slots
        n_keys = self.keys.shape[1]
        return slots[:, None] * n_keys + torch.arange(n_keys, device=rows.device)

    @torch.no_grad()
    def push(self, keys, rows, labels=None):
        """Take in the keys of samples; the oldest leave where there is no room.

        Parameters
        ----------
        keys : Tensor of shape (n, n_keys, width)
            The new keys.
        rows : Tensor of shape (n,), dtype int64
            Places in X of their samples, all different.
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

    def get_extra_state(self):
        """Return what is no tensor."""
        return self.n_seen

    def set_extra_state(self, n_seen):
        """Take what is no tensor, after the tensors."""
        self.n_seen = n_seen
        times = torch.arange(n_seen - len(self), n_seen, device=self.rows.device)
        rows = self.rows[times % self.n_slots]
        known = rows >= 0
        self._pushed.fill_(-1).scatter_reduce_(0, rows[known], times[known], "amax")

    @torch.no_grad()
    def resume(self, keys, rows, labels, n_seen, same_samples):
        """Go on from the content of another queue of as many keys per sample.

        Of a sample that was visited twice, in an epoch that was interrupted and in the one before
        it, the older keys go: a new epoch may come to it while both are there. So do the oldest
        where there is less room.

        Parameters
        ----------
        keys : Tensor of shape (m, n_keys, width)
            Of the other, as the following.
        rows, labels : Tensor of shape (m,)
            As the attributes.
        n_seen : int
            As the attribute.
        same_samples : bool
            Whether its samples are those of this queue.
        """
        filled = min(n_seen, len(rows))
        order = torch.arange(n_seen - filled, n_seen, device=rows.device) % len(rows)
        if same_samples:
            order = order[_newest(rows[order])]
        order = order[-self.n_slots :]
        # A full queue keeps its places: going on is then the same to the last bit.
        start = n_seen - len(order) if len(order) == self.n_slots == len(rows) else 0
        slots = torch.arange(start, start + len(order), device=rows.device) % self.n_slots
        self.keys[slots] = keys[order].to(self.keys)
        for mine, theirs in ((self.rows, rows), (self.labels, labels)):
            mine[slots] = theirs[order].to(mine.device) if same_samples else -1
        self.set_extra_state(start + len(order))


def _newest(rows):
    """Return where each row stands last, and where there is an unknown one, in order."""
    places = torch.arange(len(rows), device=rows.device)
    unique, inverse = torch.where(rows < 0, -1 - places, rows).unique(return_inverse=True)
    return torch.zeros_like(unique).scatter_reduce_(0, inverse, places, "amax").sort().values
