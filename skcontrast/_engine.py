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
    weights : Tensor of shape (n_anchors,) or None
        Factors on the losses of the anchors.
    anchor_labels, candidate_labels : Tensor of shape (n_anchors,) and (n_candidates,) or None
        Classes, integers; negative where unknown.
    """

    anchors: Tensor
    candidates: Tensor
    positives: Tensor
    excluded: Tensor
    weights: Tensor | None = None
    anchor_labels: Tensor | None = None
    candidate_labels: Tensor | None = None


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
    if loss.requires_y and contrast.anchor_labels is None:
        raise ValueError(f"{type(loss).__name__} needs labels: pass y.")
    # Under autocast the products would be taken in half precision, which 1/temperature magnifies.
    with torch.autocast(contrast.anchors.device.type, enabled=False):
        return _TiledObjective.apply(*contrast, loss, similarity, OBJECTIVES[objective])


def log_expectation(scores, positives, loss, bounds, same_class=None):
    """Return the logarithm of what a loss takes for the mean of e^s over true negatives.

    Parameters
    ----------
    scores : Tensor of shape (n_anchors, N)
        Scores of the candidates, none of them excluded.
    positives : Tensor of shape (n_anchors, n_positives)
        Scores of the positives.
    loss : Loss
        Without schedules.
    bounds : tuple of float
        The lowest and the highest score there is.
    same_class : Tensor of shape (n_anchors, N), dtype bool, or None
        Which candidates are known to share the anchor's class, for losses that read labels.

    Returns
    -------
    log_expectation : Tensor of shape (n_anchors,)
    """
    tile = _Tile(scores.clone(), positives, None, same_class, scores.shape[1], bounds)
    log_mean, _ = _Contrastive.expectation(tile, loss)
    return loss.log_expectation(log_mean, positives, bounds[0])


def count_outscored(contrast, similarity):
    """Return how many candidates score at most as high as each positive.

    Returns
    -------
    counts : Tensor of shape (n_anchors, n_positives), dtype int64
        From 0 to N.
    """
    counts = torch.empty_like(contrast.positives, dtype=torch.int64)
    for tile, scores in _tiles_of_scores(contrast, similarity):
        for m, positive in enumerate(contrast.positives[tile].unbind(1)):
            counts[tile, m] = (scores <= _column(positive)).sum(1)
    return counts.sub_(contrast.excluded.shape[1])


def class_aucs(contrast, similarity):
    """Return for each anchor how often its own class scores above the others.

    Returns
    -------
    aucs : Tensor of shape (n_anchors,)
        Share, among all pairs of a candidate of the anchor's class and one of another, of those
        in which the first scores higher. NaN for anchors of unknown class or without such pairs.
    """
    aucs = torch.empty_like(contrast.anchors[:, 0])
    known = contrast.candidate_labels >= 0
    for tile, scores in _tiles_of_scores(contrast, similarity):
        labels, excluded = contrast.anchor_labels[tile], contrast.excluded[tile]
        same = _same_class(labels, contrast.candidate_labels, excluded)
        other = ((_column(labels) >= 0) & known & ~same).scatter_(1, excluded, False)
        order = scores.argsort(dim=1)
        same, other = (which.gather(1, order).to(scores.dtype) for which in (same, other))
        below = (other.cumsum(1) * same).sum(1)
        aucs[tile] = below / (same.sum(1) * other.sum(1))
    return aucs


def _tiles_of_scores(contrast, similarity):
    """Yield slices of the anchors and their scores without gradient, excluded ones at −inf."""
    with torch.no_grad():
        for start in range(0, len(contrast.anchors), _rows_per_tile(contrast.candidates)):
            tile = slice(start, start + _rows_per_tile(contrast.candidates))
            scores = _PairwiseScores(
                contrast.anchors[tile], contrast.candidates, similarity, False
            ).values
            yield tile, scores.scatter_(1, contrast.excluded[tile], -torch.inf)


def _rows_per_tile(candidates):
    return max(_TILE_ROWS, _TILE_ELEMENTS // max(1, len(candidates)))


class _TiledObjective(torch.autograd.Function):
    """Mean loss over anchors; the gradient is computed along with it, a tile at a time."""

    @staticmethod
    def forward(ctx, anchors, candidates, positives, excluded, weights, *rest):
        anchor_labels, candidate_labels, loss, similarity, objective = rest
        wants = any(ctx.needs_input_grad[:3])
        grads = [torch.zeros_like(t) for t in (anchors, candidates, positives)] if wants else None
        total = anchors.new_zeros(())
        rows = _rows_per_tile(candidates)
        n_negatives = len(candidates) - excluded.shape[1]
        for start in range(0, len(anchors), rows):
            tile = slice(start, start + rows)
            pairwise = _PairwiseScores(anchors[tile], candidates, similarity, wants)
            same_class = None
            if loss.requires_y:
                same_class = _same_class(anchor_labels[tile], candidate_labels, excluded[tile])
            row = _Tile(
                scores=pairwise.values.scatter_(1, excluded[tile], -torch.inf),
                positives=positives[tile],
                weights=None if weights is None else weights[tile],
                same_class=same_class,
                n_negatives=n_negatives,
                bounds=similarity.bounds,
            )
            value, gradient, d_positives = objective.evaluate(row, loss, wants)
            total += value
            if wants:
                grads[2][tile] = d_positives
                pairwise.add_gradients(gradient, grads[0][tile], grads[1])
        ctx.grads = [g.div_(len(anchors)) for g in grads] if wants else None
        return total / len(anchors)

    @staticmethod
    def backward(ctx, grad):
        if torch.is_grad_enabled():
            raise RuntimeError(
                "contrastive_loss computes its gradient along with its value and can be "
                "differentiated once: create_graph=True is not supported."
            )
        return (*(g * grad for g in ctx.grads), *[None] * 7)


class _Tile(NamedTuple):
    """Some anchors with the scores of all candidates, excluded ones at −inf."""

    scores: Tensor
    positives: Tensor
    weights: Tensor | None
    same_class: Tensor | None
    n_negatives: int
    bounds: tuple

    def total(self, losses):
        """Return the weighted sum of the losses of the anchors."""
        return losses.sum() if self.weights is None else losses @ self.weights


def _same_class(anchor_labels, candidate_labels, excluded):
    known = (anchor_labels >= 0)[:, None]
    same = (anchor_labels[:, None] == candidate_labels) & known
    return same.scatter_(1, excluded, False)


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


class _Objective:
    """From a tile to its loss, and the gradients with respect to scores and positives."""

    @classmethod
    def evaluate(cls, tile, loss, wants):
        """Return the sum of the losses, (row scale, matrix) of d/d scores, and d/d positives."""
        if loss.needs_whole_rows:
            return cls._by_autograd(tile, loss, wants)
        mean, pull = cls.expectation(tile, loss)
        with torch.set_grad_enabled(wants):
            leaves = [t.detach().requires_grad_(wants) for t in (mean, tile.positives)]
            value = tile.total(cls.anchor_loss(*leaves, tile, loss))
        if not wants:
            return value, None, None
        d_mean, d_positives = torch.autograd.grad(value, leaves)
        return value.detach(), pull(d_mean), d_positives

    @classmethod
    def _by_autograd(cls, tile, loss, wants):
        with torch.set_grad_enabled(wants):
            leaves = [t.detach().requires_grad_(wants) for t in (tile.scores, tile.positives)]
            value = tile.total(cls.row_loss(*leaves, tile, loss))
        if not wants:
            return value, None, None
        d_scores, d_positives = torch.autograd.grad(value, leaves)
        return value.detach(), (torch.ones_like(d_scores[:, :1]), d_scores), d_positives


class _Contrastive(_Objective):
    """φ = exp, −log(P / (P + N·E)). The mean over negatives is held as its logarithm."""

    @staticmethod
    def expectation(tile, loss):
        """Return log mean_j w_j e^{s_j}, and a function that pulls a gradient back to s.

        With W_j ∝ e^{c_j + β s_j} and V_j ∝ e^{c_j + (1 + β) s_j}, both of sum 1 over j, the
        derivative is (1 + β) V_j − β W_j, and V_j where the weights are detached.
        """
        scores, beta = tile.scores, loss.hardness()
        prior = loss.log_prior(scores, tile.n_negatives, tile.same_class)
        if (prior is None and beta == 0) or not loss.normalize_weights:
            top, mass, v = _softmax_parts(scores if prior is None else scores.add_(prior))
            mean = top + mass.log() - math.log(tile.n_negatives)
            return mean, lambda g: (_column(g / mass), v)
        tilted = _tilted(scores, prior, beta)
        top_v, mass_v, v = _softmax_parts(scores.add_(tilted))
        top_w, mass_w, w = _softmax_parts(tilted)
        # An anchor without any negative has an estimate at the floor, and no gradient from it.
        empty = mass_w == 0
        mass_v, mass_w = (mass.masked_fill(empty, 1.0) for mass in (mass_v, mass_w))
        mean = top_v + mass_v.log() - top_w - mass_w.log()
        mean = mean.masked_fill(empty, tile.bounds[0])
        if beta == 0 or loss.detach_weights:
            return mean, lambda g: (_column(g / mass_v), v)
        return mean, lambda g: (
            _column(g / mass_v * (1 + beta)),
            v.addcmul_(w, _column(-beta / (1 + beta) * mass_v / mass_w)),
        )

    @staticmethod
    def anchor_loss(log_mean, positives, tile, loss):
        """Return the loss of each anchor, shape (n,), from log mean and positive scores."""
        return loss.anchor_loss(log_mean, positives, tile.n_negatives, tile.bounds)

    @staticmethod
    def row_loss(scores, positives, tile, loss):
        """Return the loss of each anchor, shape (n,), from all its scores."""
        return loss.row_loss(scores, positives, tile.same_class, tile.n_negatives, tile.bounds)


class _JensenShannon(_Objective):
    """φ = softplus, L = softplus(−s⁺) + E."""

    @staticmethod
    def expectation(tile, loss):
        """Return mean_j w_j softplus(s_j), and a function that pulls a gradient back to s."""
        scores, beta = tile.scores, loss.hardness()
        prior = loss.log_prior(scores, tile.n_negatives, tile.same_class)
        tilted = _tilted(scores, prior, beta)
        if loss.normalize_weights:
            _, mass, weights = _softmax_parts(tilted)
            weights /= _column(mass.masked_fill(mass == 0, 1.0))
        else:
            weights = tilted.exp_().div_(tile.n_negatives)
        phi = F.softplus(scores)
        mean = (weights * phi).sum(1)

        def pull(g):
            slope = torch.sigmoid(scores)
            if beta and not loss.detach_weights:
                slope += beta * (phi - _column(mean))
            return _column(g), weights * slope

        return mean, pull

    @staticmethod
    def anchor_loss(mean, positives, tile, loss):
        """Return the loss of each anchor, shape (n,)."""
        a, b = loss.coefficients()
        negative = (a * mean - b * F.softplus(positives).mean(1)).clamp_min(0)
        return F.softplus(-positives).mean(1) + negative

    @staticmethod
    def row_loss(scores, positives, tile, loss):
        """Refuse: such a loss is no estimate of an expectation over true negatives."""
        raise ValueError(f"{type(loss).__name__} has no Jensen–Shannon form.")


OBJECTIVES = {"contrastive": _Contrastive, "jensen-shannon": _JensenShannon}


def _tilted(scores, prior, beta):
    """Return c + β s; −inf where excluded."""
    if beta:
        tilted = scores * beta
    else:
        tilted = torch.zeros_like(scores).masked_fill_(scores == -torch.inf, -torch.inf)
    if prior is not None:
        tilted += prior
    return tilted


def _softmax_parts(logits):
    """Return row maximum, row sum and e^{logits − maximum} (in place); −inf gives exactly 0."""
    top = _finite_maximum(logits)
    e = logits.sub_(_column(top)).exp_()
    return top, e.sum(1), e


def _finite_maximum(logits):
    return logits.amax(1).clamp_min(torch.finfo(logits.dtype).min / 4)


def _column(row_values):
    return row_values[:, None]
