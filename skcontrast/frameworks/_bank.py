"""The memory bank: a vector of every training sample."""

from __future__ import annotations

from functools import partial

import torch
import torch.nn.functional as F
from torch import nn


class Bank(nn.Module):
    """A vector of each part of each sample, a moving average.

    Parameters
    ----------
    n_samples : int
        Samples in X.
    width : int
        Width of a vector.
    momentum : float
        m in [0, 1], the share of the old vector.

    Attributes
    ----------
    vectors : Tensor of shape (2, n_samples, width)
        The averages.
    labels : Tensor of shape (n_samples,), dtype int64
        Classes, −1 where unknown.
    visited : Tensor of shape (n_samples,), dtype int64
        First the `n_visited` samples that have a vector, then −1.
    """

    def __init__(self, n_samples, width, momentum):
        super().__init__()
        self.momentum, self.n_visited = momentum, 0
        self.register_buffer("vectors", torch.zeros(2, n_samples, width))
        self.register_buffer("labels", torch.full((n_samples,), -1))
        self.register_buffer("visited", torch.full((n_samples,), -1))

    def draw(self, n, rows, generator):
        """Draw vectors of n different samples, or of all that have one if they are fewer.

        Parameters
        ----------
        n : int
            How many.
        rows : Tensor of shape (n_anchors,), dtype int64
            The anchors' places in X.
        generator : torch.Generator
            On the device of the bank.

        Returns
        -------
        vectors : Tensor of shape (2, n, width)
            Of both parts.
        own : Tensor of shape (n_anchors, 1), dtype int64
            Which of them is the anchor's own; the last where none is, so that all have as many
            others.
        labels : Tensor of shape (n,), dtype int64
            Their classes.
        """
        device = rows.device
        order = torch.randperm(self.n_visited, generator=generator, device=device)[:n]
        drawn = self.visited[order]
        place = torch.full((len(self.labels),), len(drawn) - 1, device=device)
        place[drawn] = torch.arange(len(drawn), device=device)
        return self.vectors[:, drawn], place[rows][:, None], self.labels[drawn]

    @torch.no_grad()
    def update(self, z, rows, labels=None, remembered=None):
        """Move the vectors of some samples towards their projections.

        Parameters
        ----------
        z : Tensor of shape (2, n_views, n, width)
            Projections of both parts in all views.
        rows : Tensor of shape (n,), dtype int64
            Places of the samples in X, all different.
        labels : Tensor of shape (n,), dtype int64, default=None
            Their classes.
        remembered : callable, default=None
            ``Similarity.remembered``: scales projections, and their averages. None scales them to
            length 1.
        """
        remembered = partial(F.normalize, dim=-1) if remembered is None else remembered
        new, old = remembered(remembered(z).mean(1)), self.vectors[:, rows]
        # A sample that is new here has zeros, and takes its projection as it is.
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

    def get_extra_state(self):
        """Return what is no tensor."""
        return self.n_visited

    def set_extra_state(self, n_visited):
        """Take what is no tensor."""
        self.n_visited = n_visited
