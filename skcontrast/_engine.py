"""The tiled engine: the general form of all losses, its value and its gradient in one go.

Anchors are walked in tiles: the scores of a tile, its loss and its gradient are computed together
and forgotten, so that memory grows with the number of samples and not with its square.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ._ranks import weights_by_rank

# Scores held at a time: large enough to keep the matrix products efficient, small enough to stay
# in cache.
_TILE_ELEMENTS = 2**20
_TILE_ROWS = 128
# e^{score} stays a normal float32 up to here, also summed over all candidates; beyond, the maximum
# of each row is taken out first.
_LARGEST_EXPONENT = 60.0


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

    def take(self, rows):
        """Return the contrast of some of the anchors with all candidates."""
        of_anchors = ("anchors", "positives", "excluded", "weights", "anchor_labels")
        values = {name: getattr(self, name) for name in of_anchors}
        return self._replace(**{k: None if v is None else v[rows] for k, v in values.items()})


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
    OBJECTIVES[objective].check(loss)
    if loss.requires_y and contrast.anchor_labels is None:
        raise ValueError(f"{type(loss).__name__} needs labels: pass y.")
    # Under autocast the products would be taken in half precision, which 1/temperature magnifies.
    with torch.autocast(contrast.anchors.device.type, enabled=False):
        is_one = contrast.anchors is contrast.candidates
        return _TiledObjective.apply(*contrast, loss, similarity, OBJECTIVES[objective], is_one)


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
    none = torch.empty(len(scores), 0, dtype=torch.int64, device=scores.device)
    tile = _Tile(scores.clone(), none, positives, None, same_class, bounds)
    log_mean, _ = _Contrastive.expectation(tile, loss)
    return loss.log_expectation(log_mean, positives, bounds[0])


class _TiledObjective(torch.autograd.Function):
    """Mean loss over anchors; the gradient is computed along with it, a tile at a time."""

    @staticmethod
    def forward(ctx, *args):
        contrast, (loss, similarity, objective, is_one) = Contrast(*args[:7]), args[7:]
        wants = any(ctx.needs_input_grad[:3])
        pulls_candidates = ctx.needs_input_grad[1]  # a queue does not: saves a matrix product
        anchors, positives = contrast.anchors, contrast.positives
        grads = [torch.zeros_like(t) for t in contrast[:3]] if wants else None
        if wants and not pulls_candidates:
            grads[1] = None
        total = anchors.new_zeros(())
        for tile, pairwise in tiles(contrast, similarity, wants):
            row = _Tile(
                scores=pairwise.values,
                excluded=contrast.excluded[tile],
                positives=positives[tile],
                weights=None if contrast.weights is None else contrast.weights[tile],
                same_class=same_class(contrast, tile) if loss.requires_y else None,
                bounds=similarity.bounds,
            )
            value, gradient, d_positives = objective.evaluate(row, loss, wants)
            total += value
            if wants:
                grads[2][tile] = d_positives
                pairwise.add_gradients(gradient, grads[0][tile], grads[1], is_one)
        if wants:
            ctx.grads = [g if g is None else g.div_(len(anchors)) for g in grads]
        return total / len(anchors)

    @staticmethod
    def backward(ctx, grad):
        if torch.is_grad_enabled():
            raise RuntimeError(
                "contrastive_loss computes its gradient along with its value and can be "
                "differentiated once: create_graph=True is not supported."
            )
        return (*(g if g is None else g * grad for g in ctx.grads), *[None] * 8)


class _Tile(NamedTuple):
    """Some anchors with the scores of all candidates; those of excluded ones mean nothing.

    What evaluates a tile may overwrite its scores.
    """

    scores: Tensor
    excluded: Tensor
    positives: Tensor
    weights: Tensor | None
    same_class: Tensor | None
    bounds: tuple

    @property
    def n_negatives(self):
        """Return N."""
        return self.scores.shape[1] - self.excluded.shape[1]

    def total(self, losses):
        """Return the weighted sum of the losses of the anchors."""
        return losses.sum() if self.weights is None else losses @ self.weights

    def prior(self, loss):
        """Return the weights that a loss gives by rank or by label, or None where all are 1."""
        if loss.requires_y and (by_class := loss.class_weights(self.same_class)) is not None:
            return by_class.to(self.scores.dtype)
        if loss.weighs_ranks:
            return weights_by_rank(self.scores, self.excluded, loss)
        return None


def tiles(contrast, similarity, wants):
    """Yield slices of the anchors and their scores with all candidates.

    The scores of one tile are overwritten by those of the next.
    """
    anchors, candidates = contrast.anchors, contrast.candidates
    rows = max(_TILE_ROWS, _TILE_ELEMENTS // max(1, len(candidates)))
    buffer = anchors.new_empty(min(rows, len(anchors)), len(candidates))
    for start in range(0, len(anchors), rows):
        tile = slice(start, min(start + rows, len(anchors)))
        out = buffer[: tile.stop - start]
        yield tile, _PairwiseScores(anchors[tile], candidates, similarity, wants, out)


def same_class(contrast, tile):
    """Return where anchor and candidate are known to share a class, dtype bool."""
    labels = contrast.anchor_labels[tile]
    same = (_column(labels) == contrast.candidate_labels) & _column(labels >= 0)
    return same.scatter_(1, contrast.excluded[tile], False)


class _PairwiseScores:
    """The scores of one tile, and their gradient with respect to anchors and candidates."""

    def __init__(self, anchors, candidates, similarity, wants, out):
        self.anchors, self.candidates = anchors, candidates
        if similarity.bilinear:
            self.values = torch.mm(anchors, candidates.T, out=out)
            return
        with torch.set_grad_enabled(wants):
            self.leaves = [t.detach().requires_grad_(wants) for t in (anchors, candidates)]
            self.scores = similarity.scores(*self.leaves)
        self.values = out.copy_(self.scores.detach())

    def add_gradients(self, gradient, d_anchors, d_candidates, is_one):
        """Add the pull-back of `gradient`, given as (row scale, matrix), to the gradients.

        That of the candidates is None where nobody asks for it; where anchors and candidates are
        one tensor, it may be added to that of the anchors.
        """
        scale, matrix = gradient
        if hasattr(self, "leaves"):
            pulled = torch.autograd.grad(self.scores, self.leaves, scale * matrix)
            d_anchors += pulled[0]
            if d_candidates is not None:
                d_candidates += pulled[1]
            return
        if is_one and len(self.anchors) == len(self.candidates):
            # One tile of all vectors with themselves: one product gives both gradients.
            matrix.mul_(scale)
            d_anchors.addmm_(matrix + matrix.T, self.candidates)
            return
        # The rows are scaled on the thin side of the products, not over the whole tile.
        d_anchors.addcmul_(scale, matrix @ self.candidates)
        if d_candidates is not None:
            d_candidates.addmm_(matrix.T, scale * self.anchors)


class _Objective:
    """From a tile to its loss, and the gradients with respect to scores and positives."""

    @staticmethod
    def check(loss):
        """Raise ValueError if the objective has no such loss."""

    @classmethod
    def evaluate(cls, tile, loss, wants):
        """Return the sum of the losses, (row scale, matrix) of d/d scores, and d/d positives."""
        if loss.needs_whole_rows:
            return cls._by_autograd(tile, loss, wants)
        estimators = loss.estimators()
        parts = [
            # The last one may overwrite the scores.
            cls.expectation(tile._replace(scores=tile.scores.clone()) if k else tile, estimator)
            for k, estimator in reversed(list(enumerate(estimators)))
        ][::-1]
        with torch.set_grad_enabled(wants):
            leaves = [t.detach().requires_grad_(wants) for t, _ in parts]
            leaves.append(tile.positives.detach().requires_grad_(wants))
            value = tile.total(cls.anchor_loss(leaves[:-1], leaves[-1], tile, loss))
        if not wants:
            return value, None, None
        *d_means, d_positives = torch.autograd.grad(value, leaves)
        pulled = [pull(d_mean) for (_, pull), d_mean in zip(parts, d_means, strict=True)]
        return value.detach(), _sum(pulled), d_positives

    @classmethod
    def _by_autograd(cls, tile, loss, wants):
        scores = tile.scores.scatter_(1, tile.excluded, -torch.inf)
        with torch.set_grad_enabled(wants):
            leaves = [t.detach().requires_grad_(wants) for t in (scores, tile.positives)]
            value = tile.total(loss.row_loss(*leaves, tile.same_class))
        if not wants:
            return value, None, None
        d_scores, d_positives = torch.autograd.grad(value, leaves)
        return value.detach(), (torch.ones_like(d_scores[:, :1]), d_scores), d_positives


class _Contrastive(_Objective):
    """φ = exp, −log(P / (P + N·E)). The mean over negatives is held as its logarithm."""

    @staticmethod
    def expectation(tile, loss):
        """Return log mean_j w_j e^{s_j}, and a function that pulls a gradient back to s.

        With W_j ∝ c_j e^{β s_j} and V_j ∝ c_j e^{(1 + β) s_j}, both of sum 1 over j, the
        derivative is (1 + β) V_j − β W_j, and V_j where the weights are detached.
        """
        beta, prior = loss.hardness(), tile.prior(loss)
        if (1 + beta) * max(-tile.bounds[0], tile.bounds[1]) > _LARGEST_EXPONENT:
            parts = _shifted(tile, prior, beta)
        else:
            parts = _unshifted(tile, prior, beta)
        top_v, mass_v, v, top_w, mass_w, w = parts
        if not loss.normalize_weights:
            top_w, mass_w = 0.0, torch.full_like(mass_v, tile.n_negatives)
        # An anchor without any negative has an estimate at the floor, and no gradient from it.
        empty = (mass_w == 0) | (mass_v == 0)
        mass_v, mass_w = (mass.masked_fill(empty, 1.0) for mass in (mass_v, mass_w))
        mean = top_v - top_w + (mass_v / mass_w).log_()
        mean = mean.masked_fill_(empty, tile.bounds[0])
        if beta == 0 or loss.detach_weights:
            return mean, lambda g: (_column(g / mass_v), v)
        return mean, lambda g: (
            _column(g / mass_v * (1 + beta)),
            v.addcmul_(w, _column(-beta / (1 + beta) * mass_v / mass_w)),
        )

    @staticmethod
    def anchor_loss(log_means, positives, tile, loss):
        """Return the loss of each anchor, shape (n,), from log means and positive scores."""
        return loss.anchor_loss(log_means, positives, tile.n_negatives, tile.bounds)


class _JensenShannon(_Objective):
    """φ = softplus, L = softplus(−s⁺) + E."""

    @staticmethod
    def check(loss):
        """Refuse what is more than an estimate of an expectation over true negatives."""
        if loss.needs_whole_rows or loss.corrects_positives:
            raise ValueError(f"{type(loss).__name__} has no Jensen–Shannon form.")

    @staticmethod
    def expectation(tile, loss):
        """Return mean_j w_j softplus(s_j), and a function that pulls a gradient back to s."""
        scores, beta = tile.scores, loss.hardness()
        logits = _tilted(tile, tile.prior(loss), beta)
        if loss.normalize_weights:
            _, mass, weights = _softmax_parts(logits)
            weights /= _column(mass.masked_fill(mass == 0, 1.0))
        else:
            weights = logits.exp_().div_(tile.n_negatives)
        phi = F.softplus(scores)
        mean = (weights * phi).sum(1)

        def pull(g):
            slope = torch.sigmoid(scores)
            if beta and not loss.detach_weights:
                slope += beta * (phi - _column(mean))
            return _column(g), weights * slope

        return mean, pull

    @staticmethod
    def anchor_loss(means, positives, tile, loss):
        """Return the loss of each anchor, shape (n,)."""
        a, b = loss.coefficients()
        negative = (a * means[0] - b * F.softplus(positives).mean(1)).clamp_min(0)
        return F.softplus(-positives).mean(1) + negative


OBJECTIVES = {"contrastive": _Contrastive, "jensen-shannon": _JensenShannon}


def _unshifted(tile, prior, beta):
    """Return, for the weighted e^s and for the weights: 0, their sums over a row, themselves.

    The weights themselves are only returned where they depend on the scores.
    """
    if beta:
        w = tile.scores if beta == 1 else tile.scores * beta
        w = w.exp_()
        e = w if beta == 1 else tile.scores.exp_()
        w = (w if prior is None else w * prior).scatter_(1, tile.excluded, 0.0)
        v = w * e
        return 0.0, v.sum(1), v, 0.0, w.sum(1), w
    v = tile.scores.exp_()
    if prior is None:
        v.scatter_(1, tile.excluded, 0.0)
        return 0.0, v.sum(1), v, 0.0, v.new_full((len(v),), tile.n_negatives), None
    prior = prior.scatter_(1, tile.excluded, 0.0)
    v.mul_(prior)
    return 0.0, v.sum(1), v, 0.0, prior.sum(1), None


def _shifted(tile, prior, beta):
    """Return the same with the row maxima of the logarithms taken out."""
    logits = _tilted(tile, prior, beta)
    parts_v = _softmax_parts(tile.scores.add_(logits))
    return *parts_v, *_softmax_parts(logits)


def _tilted(tile, prior, beta):
    """Return log c + β s; −inf where excluded."""
    logits = tile.scores * beta if beta else torch.zeros_like(tile.scores)
    if prior is not None:
        logits += prior.log()
    return logits.scatter_(1, tile.excluded, -torch.inf)


def _softmax_parts(logits):
    """Return row maximum, row sum and e^{logits − maximum} (in place); −inf gives exactly 0."""
    top = logits.amax(1).clamp_min(torch.finfo(logits.dtype).min / 4)
    e = logits.sub_(_column(top)).exp_()
    return top, e.sum(1), e


def _sum(gradients):
    """Return the sum of gradients, each given as (row scale, matrix), in that form."""
    (scale, matrix), *others = gradients
    if not others:
        return scale, matrix
    total = matrix.mul_(scale)
    for scale, matrix in others:
        total.addcmul_(scale, matrix)
    return torch.ones_like(scale), total


def _column(row_values):
    return row_values[:, None]
