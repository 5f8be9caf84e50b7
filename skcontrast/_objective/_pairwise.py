"""The scores of some anchors with all candidates, and their gradient."""

from __future__ import annotations

from functools import partial

import torch


def pairwise_scores(anchors, candidates, similarity, wants, out):
    """Return the scores of one tile in the cheapest of the forms that a similarity has.

    Parameters
    ----------
    anchors : Tensor of shape (n, k)
    candidates : Tensor of shape (m, k)
    similarity : Similarity
        Without schedules.
    wants : bool
        Whether gradients will be asked for.
    out : Tensor of shape (n, m)
        Where the scores go, as ``values`` of what is returned.
    """
    if similarity.bilinear:
        return _Bilinear(anchors, candidates, out)
    if similarity.n_terms:
        return _Linked(anchors, candidates, similarity, wants, out)
    return _ByAutograd(anchors, candidates, similarity, wants, out)


class _Bilinear:
    """Scores that are dot products."""

    def __init__(self, anchors, candidates, out):
        self.anchors, self.candidates = anchors, candidates
        self.values = torch.mm(anchors, candidates.T, out=out)

    def add_gradients(self, gradient, d_anchors, d_candidates, is_one):
        """Pull back `gradient`, given as (row scale, matrix), to anchors and candidates.

        The gradient of these anchors is written, that of the candidates is added to; it is None
        where nobody asks for it. Where anchors and candidates are one tensor, it may be added to
        that of the anchors.
        """
        scale, matrix = gradient
        if is_one and len(self.anchors) == len(self.candidates):
            # One tile of all vectors with themselves: one product gives both gradients.
            matrix.mul_(scale)
            torch.mm(matrix + matrix.T, self.candidates, out=d_anchors)
            return
        # The rows are scaled on the thin side of the products, not over the whole tile.
        torch.mm(matrix, self.candidates, out=d_anchors).mul_(scale)
        if d_candidates is not None:
            d_candidates.addmm_(matrix.T, scale * self.anchors)


class _Linked:
    """Scores that are a function of dot products and of a few numbers for each vector."""

    def __init__(self, anchors, candidates, similarity, wants, out):
        self.similarity, self.d = similarity, anchors.shape[1] - similarity.n_terms
        (self.anchors, self.terms), (self.candidates, self.candidate_terms) = (
            u.tensor_split([self.d], 1) for u in (anchors, candidates)
        )
        self.values = torch.mm(self.anchors, self.candidates.T, out=out)
        self.slopes = torch.empty_like(out) if wants else None
        similarity.link(out, self.terms, self.candidate_terms, self.slopes, d=self.d)

    def add_gradients(self, gradient, d_anchors, d_candidates, is_one):
        """Do the same by the slopes of the scores: two products, and sums for the terms."""
        scale, matrix = gradient
        inner, d, weights = self.slopes.mul_(matrix), self.d, scale[:, 0]
        pull = partial(self.similarity.pull_terms, d=d)
        if is_one and len(self.anchors) == len(self.candidates):
            both, matrix = inner.mul_(scale) + inner.T, matrix.mul_(scale)
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


class _ByAutograd:
    """Scores of any kind."""

    def __init__(self, anchors, candidates, similarity, wants, out):
        with torch.set_grad_enabled(wants):
            self.leaves = [t.detach().requires_grad_(wants) for t in (anchors, candidates)]
            self.scores = similarity.scores(*self.leaves)
        self.values = out.copy_(self.scores.detach())

    def add_gradients(self, gradient, d_anchors, d_candidates, is_one):
        """Do the same by autograd."""
        scale, matrix = gradient
        pulled = torch.autograd.grad(self.scores, self.leaves, scale * matrix)
        d_anchors.copy_(pulled[0])
        if d_candidates is not None:
            d_candidates += pulled[1]
