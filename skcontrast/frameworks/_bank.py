"""The memory bank: vectors for every training sample."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ..similarity import Similarity


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
    n_parts : int
        Number of parts of a sample.
    others : Tensor of shape (n_parts, n_others, width) or None
        Vectors of samples that are not in X, which are drawn too and never move.

    Attributes
    ----------
    vectors : Tensor of shape (n_parts, n_samples + n_others, width)
        The averages; zeros for a sample that was never visited.
    labels : Tensor of shape (n_samples + n_others,), dtype int64
        Classes, −1 where unknown.
    visited : Tensor of shape (n_samples + n_others,), dtype int64
        First the places of the `n_visited` samples that have a vector, then −1.
    n_visited : int
        Number of samples that have a vector.
    """

    vectors: Tensor
    labels: Tensor
    visited: Tensor

    def __init__(
        self, n_samples: int, width: int, momentum: float, n_parts: int, others: Tensor | None
    ):
        super().__init__()
        vectors = torch.zeros(n_parts, n_samples, width)
        if others is not None:
            vectors = torch.cat([vectors.to(others), others], 1)
        n, device = vectors.shape[1], vectors.device
        self.momentum, self.n_visited = momentum, n - n_samples
        self.register_buffer("vectors", vectors)
        self.register_buffer("labels", torch.full((n,), -1, device=device))
        self.register_buffer("visited", torch.full((n,), -1, device=device))
        self.visited[: self.n_visited] = torch.arange(n_samples, n)

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
        self, z: Tensor, rows: Tensor, labels: Tensor | None, similarity: Similarity
    ) -> None:
        """Move the vectors of samples towards their projections.

        Parameters
        ----------
        z : Tensor of shape (n_parts, n_views, n, width)
            Projections of all parts in all views.
        rows : Tensor of shape (n,), dtype int64
            Places of the samples in X, all different.
        labels : Tensor of shape (n,), dtype int64, or None
            Classes of the samples.
        similarity : Similarity
            Its `bank_vectors` scales the projections and their averages.
        """
        stored, old = similarity.bank_vectors, self.vectors[:, rows]
        new = stored(stored(z).mean(1))
        # A sample that has no vector yet has zeros: its first vector is the projection itself.
        is_new = (old == 0).all(-1, keepdim=True)
        moved = torch.where(is_new, new, self.momentum * old + (1 - self.momentum) * new)
        self.vectors[:, rows] = stored(moved)
        if labels is not None:
            self.labels[rows] = labels
        if self.n_visited < len(self.labels):
            known = torch.isin(rows, self.visited[: self.n_visited])
            rows = rows[~known]
            self.visited[self.n_visited : self.n_visited + len(rows)] = rows
            self.n_visited += len(rows)

    def get_extra_state(self) -> int:
        """Return the non-tensor state, `n_visited`."""
        return self.n_visited

    def set_extra_state(self, n_visited: int) -> None:
        """Load the non-tensor state."""
        self.n_visited = n_visited
