"""The scores of a tile of anchors with all candidates, and the gradient with respect to them."""

from __future__ import annotations

from functools import partial
from typing import Any, TypeAlias

import torch
from torch import Tensor

from ..similarity import Similarity
from ._base import RowScaled


class Products:
    """Scores that are dot products: two matrix products give the gradients."""

    def __init__(self, anchors: Tensor, candidates: Tensor, out: Tensor):
        self.anchors, self.candidates = anchors, candidates
        self.values = torch.mm(anchors, candidates.T, out=out)

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


class LinkedProducts:
    """Scores that are a function of dot products and of a few numbers (terms) of each vector.

    The slopes of that function give the gradients: two matrix products, and sums for the terms.
    """

    def __init__(
        self,
        anchors: Tensor,
        candidates: Tensor,
        similarity: Similarity,
        needs_gradient: bool,
        out: Tensor,
    ):
        self.similarity, self.d = similarity, anchors.shape[1] - similarity.n_terms
        (self.anchors, self.terms), (self.candidates, self.candidate_terms) = (
            u.tensor_split([self.d], 1) for u in (anchors, candidates)
        )
        self.values = torch.mm(self.anchors, self.candidates.T, out=out)
        self.slopes = torch.empty_like(out if needs_gradient else out[:0])
        slopes = self.slopes if needs_gradient else None
        similarity.link(out, self.terms, self.candidate_terms, slopes, d=self.d)

    def add_gradients(
        self, d_scores: RowScaled, d_anchors: Tensor, d_candidates: Tensor | None, is_whole: bool
    ) -> None:
        scale, matrix = d_scores
        inner, d, weights = self.slopes.mul_(matrix), self.d, scale[:, 0]
        pull = partial(self.similarity.pull_terms, d=d)
        if is_whole:
            both, matrix = inner.mul_(scale) + inner.T.contiguous(), matrix.mul_(scale)
            d_anchors[:, :d] = both @ self.candidates
            d_anchors[:, d:] = pull(self.terms, matrix.sum(1) + matrix.sum(0), both.sum(1))
            return
        d_anchors[:, :d] = (inner @ self.candidates).mul_(scale)
        d_anchors[:, d:] = pull(self.terms, weights * matrix.sum(1), weights * inner.sum(1))
        if d_candidates is not None:
            d_candidates[:, :d].addmm_(inner.T, scale * self.anchors)
            d_candidates[:, d:] += pull(
                self.candidate_terms, matrix.T @ weights, inner.T @ weights
            )


class AnyScores:
    """Scores of any kind, differentiated by autograd."""

    def __init__(
        self,
        anchors: Tensor,
        candidates: Tensor,
        similarity: Similarity,
        needs_gradient: bool,
        out: Tensor,
        unused: Tensor | None,
    ):
        with torch.set_grad_enabled(needs_gradient):
            self.leaves = [
                t.detach().requires_grad_(needs_gradient) for t in (anchors, candidates)
            ]
            self.scores = similarity.scores(*self.leaves)
        self.values = out.copy_(self.scores.detach())
        if unused is not None and unused.numel():
            # They must be finite: factors of 0 follow.
            entries = out.gather(1, unused)
            out.scatter_(1, unused, entries.masked_fill(~entries.isfinite(), 0.0))
            _keep_apart(self.scores.grad_fn, out.shape, unused)

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

    nodes, seen = [root], {None}
    while nodes:
        node = nodes.pop()
        if node not in seen:
            seen.add(node)
            node.register_prehook(lambda gradients: tuple(map(repaired, gradients)))
            nodes += [parent for parent, _ in node.next_functions]


# Each has the scores as `values`, shape (n, m), which may be overwritten: `add_gradients` does not
# read them.
PairwiseScores: TypeAlias = Products | LinkedProducts | AnyScores


def pairwise_scores(
    anchors: Tensor,
    candidates: Tensor,
    similarity: Similarity,
    needs_gradient: bool,
    out: Tensor,
    unused: Tensor | None = None,
) -> PairwiseScores:
    """Return the scores of one tile in the cheapest form that a similarity has.

    Parameters
    ----------
    anchors : Tensor of shape (n, k)
    candidates : Tensor of shape (m, k)
    similarity : Similarity
        Without schedules.
    needs_gradient : bool
        Whether gradients will be asked for.
    out : Tensor of shape (n, m)
        Room for the scores; it becomes the ``values`` of what is returned.
    unused : Tensor of shape (n, n_unused), dtype int64, default=None
        For each anchor, candidates whose scores are not read: their slopes may be infinite.
    """
    if similarity.bilinear:
        return Products(anchors, candidates, out)
    if similarity.n_terms:
        return LinkedProducts(anchors, candidates, similarity, needs_gradient, out)
    return AnyScores(anchors, candidates, similarity, needs_gradient, out, unused)
