"""The memory bank: vectors for every training sample."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Bank(nn.Module):
    """A vector for each part of each sample, the moving average of its projections.

    Parameters
    ----------
    n_samples : int
        Number of samples in X.
    width : int
        Width of a vector.
    momentum : float
        m in [0, 1], the weight of the old vector in the average.
    n_parts : int, default=2
        Number of parts of a sample.
    first_id : int, default=0
        ``FitContext.first_id``, by which the samples are recognised in later fits.

    Attributes
    ----------
    vectors : Tensor of shape (n_parts, n_samples + n_others, width)
        The averages; zeros for a sample that was never visited. The last are those of other
        samples, which `resume` has kept.
    labels, groups : Tensor of shape (n_samples + n_others,), dtype int64
        Classes and groups, −1 where unknown.
    ids : Tensor of shape (n_samples + n_others,), dtype int64
        Numbers of the samples.
    visited : Tensor of shape (n_samples + n_others,), dtype int64
        First the `n_visited` samples that have a vector, then −1.
    n_visited : int
        Number of samples that have a vector.
    """

    vectors: Tensor
    labels: Tensor
    groups: Tensor
    ids: Tensor
    visited: Tensor

    def __init__(
        self, n_samples: int, width: int, momentum: float, n_parts: int = 2, first_id: int = 0
    ):
        super().__init__()
        self.momentum, self.n_visited = momentum, 0
        self.register_buffer("vectors", torch.zeros(n_parts, n_samples, width))
        self.register_buffer("labels", torch.full((n_samples,), -1))
        self.register_buffer("groups", torch.full((n_samples,), -1))
        self.register_buffer("ids", torch.arange(first_id, first_id + n_samples))
        self.register_buffer("visited", torch.full((n_samples,), -1))

    def draw(
        self, n: int, rows: Tensor, generator: torch.Generator
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Draw the vectors of n different samples; of all visited samples if they are fewer.

        Parameters
        ----------
        n : int
            Number of samples to draw.
        rows : Tensor of shape (n_anchors,), dtype int64
            Places of the anchors in X.
        generator : torch.Generator
            Source of randomness, on the device of the bank.

        Returns
        -------
        vectors : Tensor of shape (n_parts, n, width)
            The vectors of all parts.
        own : Tensor of shape (n_anchors, 1), dtype int64
            Which of the drawn samples is the anchor itself. If none is, the last one, so that
            all anchors have the same number of negatives.
        drawn : Tensor of shape (n,), dtype int64
            Places of the drawn samples in X.
        """
        device = rows.device
        order = torch.randperm(self.n_visited, generator=generator, device=device)[:n]
        drawn = self.visited[order]
        place = torch.full((len(self.labels),), len(drawn) - 1, device=device)
        place[drawn] = torch.arange(len(drawn), device=device)
        return self.vectors[:, drawn], place[rows][:, None], drawn

    @torch.no_grad()
    def update(
        self,
        z: Tensor,
        rows: Tensor,
        labels: Tensor | None = None,
        remembered: Callable[[Tensor], Tensor] | None = None,
    ) -> None:
        """Move the vectors of some samples towards their projections.

        Parameters
        ----------
        z : Tensor of shape (n_parts, n_views, n, width)
            Projections of all parts in all views.
        rows : Tensor of shape (n,), dtype int64
            Places of the samples in X, all different.
        labels : Tensor of shape (n,), dtype int64, default=None
            Classes of the samples.
        remembered : callable, default=None
            ``Similarity.bank_vectors``, which scales the projections and their averages; None
            scales them to length 1.
        """
        remembered = partial(F.normalize, dim=-1) if remembered is None else remembered
        new, old = remembered(remembered(z).mean(1)), self.vectors[:, rows]
        # A sample that has no vector yet has zeros: its first vector is the projection itself.
        is_new = (old == 0).all(-1, keepdim=True)
        moved = torch.where(is_new, new, self.momentum * old + (1 - self.momentum) * new)
        self.vectors[:, rows] = remembered(moved)
        if labels is not None:
            self.labels[rows] = labels
        if self.n_visited < len(self.labels):
            known = torch.isin(rows, self.visited[: self.n_visited])
            rows = rows[~known]
            self.visited[self.n_visited : self.n_visited + len(rows)] = rows
            self.n_visited += len(rows)

    @torch.no_grad()
    def resume(self, state: dict[str, Any], most_others: int) -> int:
        """Continue from the content of an earlier bank, in one that is still empty.

        Parameters
        ----------
        state : dict
            The ``state_dict`` of the earlier bank, with as many parts of one width.
        most_others : int
            The most samples that are not in X whose vectors are kept: those that were first
            visited last.

        Returns
        -------
        n_others : int
            How many of these were kept.
        """
        n_samples, first_id = len(self.ids), int(self.ids[0])
        visited = state["visited"][: state["_extra_state"]]
        rows = state["ids"][visited] - first_id
        is_mine = (rows >= 0) & (rows < n_samples)
        others = (~is_mine).nonzero()[:, 0]
        others = others[max(0, len(others) - most_others) :]
        rows[others] = torch.arange(len(others), device=rows.device) + n_samples
        is_mine[others] = True  # kept
        rows, kept = rows[is_mine], visited[is_mine]
        self.n_visited = len(rows)
        for name, fill in (("labels", -1), ("groups", -1), ("ids", -1), ("visited", -1)):
            mine = getattr(self, name)
            setattr(self, name, torch.cat([mine, mine.new_full((len(others),), fill)]))
        parts, _, width = self.vectors.shape
        room = self.vectors.new_zeros(parts, len(others), width)
        self.vectors = torch.cat([self.vectors, room], dim=1)
        self.vectors[:, rows] = state["vectors"][:, kept].to(self.vectors)
        for name in ("labels", "groups", "ids"):
            mine = getattr(self, name)
            mine[rows] = state[name][kept].to(mine)
        self.visited[: len(rows)] = rows
        return len(others)

    def get_extra_state(self) -> int:
        """Return the non-tensor state, `n_visited`."""
        return self.n_visited

    def set_extra_state(self, n_visited: int) -> None:
        """Load the non-tensor state."""
        self.n_visited = n_visited
