"""The scores of a tile of anchors with all candidates, and the gradient with respect to them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..similarity import Similarity
from ._base import RowScaled


@dataclass(eq=False)
class PairwiseScores:
    """The scores of a tile of anchors with all candidates.

    Parameters
    ----------
    anchors : Tensor of shape (n, k)
    candidates : Tensor of shape (m, k)
    similarity : Similarity
        Without schedules.
    needs_gradient : bool
        Whether gradients will be asked for.
    values : Tensor of shape (n, m)
        Room for the scores, which may be overwritten: `add_gradients` does not read them.
    unused : Tensor of shape (n, n_unused), dtype int64, or None
        For each anchor, candidates whose scores are not read: their slopes may be infinite.
    """

    anchors: Tensor
    candidates: Tensor
    similarity: Similarity
    needs_gradient: bool
    values: Tensor
    unused: Tensor | None

    def __post_init__(self) -> None:
        """Write the scores."""

    def add_gradients(
        self, d_scores: RowScaled, d_anchors: Tensor, d_candidates: Tensor | None, is_whole: bool
    ) -> None:
        """Pull a gradient with respect to the scores back to anchors and candidates.

        Parameters
        ----------
        d_scores : RowScaled
            Gradient with respect to the scores, shape (n, m); may be overwritten.
        d_anchors : Tensor of shape (n, k)
            The gradient with respect to the anchors is written here.
        d_candidates : Tensor of shape (m, k) or None
            The gradient with respect to the candidates is added here; None if it is not needed.
        is_whole : bool
            Whether the tile holds the scores of all vectors with themselves. Then the gradient of
            the candidates may be added to `d_anchors` instead.
        """


class Products(PairwiseScores):
    """Scores that are dot products: two matrix products give the gradients."""

    def __post_init__(self) -> None:
        torch.mm(self.anchors, self.candidates.T, out=self.values)

    def add_gradients(
        self, d_scores: RowScaled, d_anchors: Tensor, d_candidates: Tensor | None, is_whole: bool
    ) -> None:
        scale, matrix = d_scores
        if is_whole:
            # One tile of all vectors with themselves: one product gives both gradients.
            matrix.mul_(scale)
            # A transpose is copied three times as fast as it is added.
            matrix += matrix.T.contiguous()
            torch.mm(matrix, self.candidates, out=d_anchors)
            return
        # The rows are scaled on the thin side of the products, not over the whole tile.
        torch.mm(matrix, self.candidates, out=d_anchors).mul_(scale)
        if d_candidates is not None:
            d_candidates.addmm_(matrix.T, scale * self.anchors)


class LinkedProducts(PairwiseScores):
    """Scores that are a function of dot products and of a few numbers (terms) of each vector.

    The slopes of that function give the gradients: two matrix products, and sums for the terms.
    """

    def __post_init__(self) -> None:
        self.d = self.anchors.shape[1] - self.similarity.n_terms
        (self.anchors, self.terms), (self.candidates, self.candidate_terms) = (
            u.tensor_split([self.d], 1) for u in (self.anchors, self.candidates)
        )
        torch.mm(self.anchors, self.candidates.T, out=self.values)
        self.slopes = torch.empty_like(self.values if self.needs_gradient else self.values[:0])
        slopes = self.slopes if self.needs_gradient else None
        self.similarity.link(self.values, self.terms, self.candidate_terms, slopes, d=self.d)

    def add_gradients(
        self, d_scores: RowScaled, d_anchors: Tensor, d_candidates: Tensor | None, is_whole: bool
    ) -> None:
        scale, matrix = d_scores
        inner, d, weights = self.slopes.mul_(matrix), self.d, scale[:, 0]
        pull = partial(self.similarity.pull_terms, d=d)
        if is_whole:
            # Anchors and candidates are the same vectors: one product gives both gradients.
            both, matrix = inner.mul_(scale) + inner.T.contiguous(), matrix.mul_(scale)
            d_anchors[:, :d] = both @ self.candidates
            d_anchors[:, d:] = pull(self.terms, matrix.sum(1) + matrix.sum(0), both.sum(1))
            return
        # Row by row: the scale of an anchor is multiplied after the product, which is smaller.
        d_anchors[:, :d] = (inner @ self.candidates).mul_(scale)
        d_anchors[:, d:] = pull(self.terms, weights * matrix.sum(1), weights * inner.sum(1))
        if d_candidates is not None:
            d_candidates[:, :d].addmm_(inner.T, scale * self.anchors)
            d_candidates[:, d:] += pull(
                self.candidate_terms, matrix.T @ weights, inner.T @ weights
            )


class AnyScores(PairwiseScores):
    """Scores of any kind, differentiated by autograd."""

    def __post_init__(self) -> None:
        given, needs_gradient = (self.anchors, self.candidates), self.needs_gradient
        with torch.set_grad_enabled(needs_gradient):
            self.leaves = [t.detach().requires_grad_(needs_gradient) for t in given]
            self.scores = self.similarity.scores(*self.leaves)
        self.values.copy_(self.scores.detach())
        if self.unused is not None and self.unused.numel():
            # They must be finite: factors of 0 follow.
            entries = self.values.gather(1, self.unused)
            self.values.scatter_(1, self.unused, entries.masked_fill(~entries.isfinite(), 0.0))
            _keep_apart(self.scores.grad_fn, self.values.shape, self.unused)

    def add_gradients(
        self, d_scores: RowScaled, d_anchors: Tensor, d_candidates: Tensor | None, is_whole: bool
    ) -> None:
        pulled_anchors, pulled_candidates = torch.autograd.grad(
            self.scores, self.leaves, d_scores.scale * d_scores.matrix
        )
        d_anchors.copy_(pulled_anchors)
        if d_candidates is not None:
            d_candidates += pulled_candidates


def _keep_apart(root: Any, shape: torch.Size, unused: Tensor) -> None:
    """Keep the slopes of unused scores out of the gradient, also where they are infinite.

    Such a score has the gradient 0, and 0 times an infinite slope is NaN. Wherever, on the way
    back from `root`, a gradient has an entry for each pair, NaN is replaced by 0 for unused ones.
    """

    def repaired(gradient: Tensor | None) -> Tensor | None:
        if gradient is None or gradient.shape[:2] != shape:
            return gradient
        further = gradient.shape[2:]
        places = unused.view(*unused.shape, *[1] * len(further)).expand(-1, -1, *further)
        entries = gradient.gather(1, places)
        return gradient.scatter(1, places, entries.masked_fill(entries.isnan(), 0.0))

    # Every node on the way back: at each, 0 times an infinite slope would be NaN.
    nodes, seen = [root], {None}
    while nodes:
        node = nodes.pop()
        if node not in seen:
            seen.add(node)
            node.register_prehook(lambda gradients: tuple(map(repaired, gradients)))
            nodes += [parent for parent, _ in node.next_functions]


def form_of(similarity: Similarity) -> type[PairwiseScores]:
    """Return the cheapest form that the scores of a similarity have."""
    if similarity.bilinear:
        return Products
    return LinkedProducts if similarity.n_terms else AnyScores
