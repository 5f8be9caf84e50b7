"""The tiled engine: the general form of all losses, its value and its gradient in one go.

Anchors are walked in tiles: the scores of a tile, its loss and its gradient are computed together
and forgotten, so that memory grows with the number of samples and not with its square.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

# Scores held at a time: large enough to keep the matrix products efficient, small enough to stay
# in cache.
_TILE_ELEMENTS = 2**20
_TILE_ROWS = 128


class Contrast(NamedTuple):
    """Who is contrasted with whom.

    Attributes
    ----------
    anchors : Tensor of shape (n_anchors, k)
        Vectors as ``similarity.embed`` returns them.
    candidates : Tensor of shape (n_candidates, k)
        The same for the candidate negatives.
    positives : Tensor of shape (n_anchors, n_positives)
        Scores of each anchor's positives.
    excluded : Tensor of shape (n_anchors, n_excluded), dtype int64
        For each anchor, the candidates that are no negatives of it: itself, its own views.
    """

    anchors: Tensor
    candidates: Tensor
    positives: Tensor
    excluded: Tensor


def objective_value(contrast, loss, similarity, objective="contrastive"):
    """Return the mean loss over the anchors of a contrast, differentiable.

    Parameters
    ----------
    contrast : Contrast
        Who is contrasted with whom.
    loss : Loss
        How the expectation over true negatives is estimated; without schedules.
    similarity : Similarity
        The score; without schedules.
    objective : {"contrastive", "jensen-shannon"}, default="contrastive"
        φ = exp and −log(P/(P + N·E)), or φ = softplus and softplus(−s⁺) + E.

    Returns
    -------
    value : Tensor of shape ()
    """
    # Under autocast the products would be taken in half precision, which 1/temperature magnifies.
    with torch.autocast(contrast.anchors.device.type, enabled=False):
        return _TiledObjective.apply(*contrast, loss, similarity, OBJECTIVES[objective])


class _TiledObjective(torch.autograd.Function):
    """Mean loss over anchors; the gradient is computed along with it, a tile at a time."""

    @staticmethod
    def forward(ctx, anchors, candidates, positives, excluded, loss, similarity, objective):
        wants = any(ctx.needs_input_grad[:3])
        grads = [torch.zeros_like(t) for t in (anchors, candidates, positives)] if wants else None
        total = anchors.new_zeros(())
        rows = max(_TILE_ROWS, _TILE_ELEMENTS // max(1, len(candidates)))
        for start in range(0, len(anchors), rows):
            tile = slice(start, start + rows)
            pairwise = _PairwiseScores(anchors[tile], candidates, similarity, wants)
            scores = pairwise.values
            scores.scatter_(1, excluded[tile], -torch.inf)
            n_negatives = len(candidates) - excluded.shape[1]
            mean, pull = objective.expectation(scores, n_negatives, loss)
            value, d_mean, d_positives = _anchor_gradients(
                objective, mean, positives[tile], n_negatives, loss, similarity.bounds, wants
            )
            total += value
            if wants:
                grads[2][tile] = d_positives
                pairwise.add_gradients(pull(d_mean), grads[0][tile], grads[1])
        ctx.grads = [g.div_(len(anchors)) for g in grads] if wants else None
        return total / len(anchors)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return (*(g * grad for g in ctx.grads), None, None, None, None)


class _PairwiseScores:
    """The scores of one tile, and their gradient with respect to anchors and candidates."""

    def __init__(self, anchors, candidates, similarity, wants):
        self.anchors, self.candidates = anchors, candidates
        if similarity.bilinear:
            self.values = anchors @ candidates.T
            return
        with torch.set_grad_enabled(wants):
            self.leaves = [t.detach().requires_grad_(wants) for t in (anchors, candidates)]
            self.scores = similarity.scores(*self.leaves)
        self.values = self.scores.detach().clone()

    def add_gradients(self, gradient, d_anchors, d_candidates):
        """Add the pull-back of `gradient`, given as (row scale, matrix), to the gradients."""
        scale, matrix = gradient
        if hasattr(self, "leaves"):
            pulled = torch.autograd.grad(self.scores, self.leaves, scale * matrix)
            d_anchors += pulled[0]
            d_candidates += pulled[1]
            return
        # The rows are scaled on the thin side of the products, not over the whole tile.
        d_anchors.addcmul_(scale, matrix @ self.candidates)
        d_candidates.addmm_(matrix.T, scale * self.anchors)


def _anchor_gradients(objective, mean, positives, n_negatives, loss, bounds, wants):
    """Sum the losses of the anchors; differentiate with respect to mean and positive scores."""
    with torch.set_grad_enabled(wants):
        mean = mean.detach().requires_grad_(wants)
        positives = positives.detach().requires_grad_(wants)
        value = objective.anchor_loss(mean, positives, n_negatives, loss, bounds).sum()
    if not wants:
        return value, None, None
    return value.detach(), *torch.autograd.grad(value, (mean, positives))


class _Contrastive:
    """φ = exp, −log(P / (P + N·E)). The mean over negatives is held as its logarithm."""

    @staticmethod
    def expectation(scores, n_negatives, loss):
        """Return log mean_j w_j e^{s_j}, and a function that pulls a gradient back to s.

        With W_j ∝ e^{c_j + β s_j} and V_j ∝ e^{c_j + (1 + β) s_j}, both of sum 1 over j, the
        derivative is (1 + β) V_j − β W_j, and V_j where the weights are detached.
        """
        prior, beta = loss.log_prior(scores, n_negatives), loss.hardness()
        if not loss.normalize_weights:
            top, mass, v = _softmax_parts(scores if prior is None else scores.add_(prior))
            return top + mass.log() - math.log(n_negatives), lambda g: (_column(g / mass), v)
        if prior is None and beta == 0:
            top, mass, v = _softmax_parts(scores)
            return top + mass.log() - math.log(n_negatives), lambda g: (_column(g / mass), v)
        tilted = (
            scores * beta
            if beta
            else torch.zeros_like(scores).masked_fill_(scores == -torch.inf, -torch.inf)
        )
        if prior is not None:
            tilted += prior
        top_v, mass_v, v = _softmax_parts(scores.add_(tilted))
        top_w, mass_w, w = _softmax_parts(tilted)
        mean = top_v + mass_v.log() - top_w - mass_w.log()
        if beta == 0 or loss.detach_weights:
            return mean, lambda g: (_column(g / mass_v), v)
        return mean, lambda g: (
            _column(g / mass_v * (1 + beta)),
            v.addcmul_(w, _column(-beta / (1 + beta) * mass_v / mass_w)),
        )

    @staticmethod
    def anchor_loss(log_mean, positives, n_negatives, loss, bounds):
        """Return the loss of each anchor, shape (n,), from log mean and positive scores."""
        return loss.anchor_loss(log_mean, positives, n_negatives, bounds)


class _JensenShannon:
    """φ = softplus, L = softplus(−s⁺) + E."""

    @staticmethod
    def expectation(scores, n_negatives, loss):
        """Return mean_j w_j softplus(s_j), and a function that pulls a gradient back to s."""
        prior, beta = loss.log_prior(scores, n_negatives), loss.hardness()
        tilted = (
            scores * beta
            if beta
            else torch.zeros_like(scores).masked_fill_(scores == -torch.inf, -torch.inf)
        )
        if prior is not None:
            tilted += prior
        if loss.normalize_weights:
            weights = torch.softmax(tilted, dim=1)
        else:
            weights = tilted.exp_().div_(n_negatives)
        phi = F.softplus(scores)
        mean = (weights * phi).sum(1)

        def pull(g):
            slope = torch.sigmoid(scores)
            if beta and not loss.detach_weights:
                slope += beta * (phi - _column(mean))
            return _column(g), weights * slope

        return mean, pull

    @staticmethod
    def anchor_loss(mean, positives, n_negatives, loss, bounds):
        """Return the loss of each anchor, shape (n,)."""
        a, b = loss.coefficients()
        negative = (a * mean - b * F.softplus(positives).mean(1)).clamp_min(0)
        return F.softplus(-positives).mean(1) + negative


OBJECTIVES = {"contrastive": _Contrastive, "jensen-shannon": _JensenShannon}


def _softmax_parts(logits):
    """Return row maximum, row sum and e^{logits − maximum} (in place); −inf gives exactly 0."""
    top = logits.amax(1)
    e = logits.sub_(_column(top)).exp_()
    return top, e.sum(1), e


def _column(row_values):
    return row_values[:, None]
