"""The tiled engine: the general form of all losses, its value and its gradient in one go.

Anchors are walked in tiles: the scores of a tile, its loss and its gradient are computed together
and forgotten, so that memory grows with the number of samples and not with its square.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ._contrast import Contrast
from ._objectives import OBJECTIVES, Tile
from ._pairwise import pairwise_scores

# Scores held at a time: large enough to keep the matrix products efficient, small enough to stay
# in cache.
_TILE_ELEMENTS = 2**20
_TILE_ROWS = 128


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
        highest = similarity.highest(contrast.anchors) if loss.corrects_positives else None
        return _TiledObjective.apply(
            *contrast, highest, loss, similarity, OBJECTIVES[objective], is_one
        )


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
    tile = Tile(scores.clone(), none, positives, None, same_class, bounds)
    log_mean, _ = OBJECTIVES["contrastive"].expectation(tile, loss)
    return loss.log_expectation(log_mean, positives, bounds[0])


class _TiledObjective(torch.autograd.Function):
    """Mean loss over anchors; the gradient is computed along with it, a tile at a time."""

    @staticmethod
    def forward(ctx, *args):
        contrast, (highest, loss, similarity, objective, is_one) = Contrast(*args[:7]), args[7:]
        wants = any(ctx.needs_input_grad[:3])
        grads = _room_for_gradients(contrast, highest, ctx.needs_input_grad) if wants else None
        total = contrast.anchors.new_zeros(())
        for tile, pairwise in tiles(contrast, similarity, wants):
            row = _row(contrast, tile, pairwise.values, loss, similarity, highest)
            value, gradient, others = objective.evaluate(row, loss, wants)
            total += value
            if wants:
                gradient = _write(grads, contrast, tile, gradient, others)
                pairwise.add_gradients(gradient, grads[0][tile], grads[1], is_one)
        ctx.grads = grads
        return total / len(contrast.anchors)

    @staticmethod
    def backward(ctx, grad):
        if torch.is_grad_enabled():
            raise RuntimeError(
                "contrastive_loss computes its gradient along with its value and can be "
                "differentiated once: create_graph=True is not supported."
            )
        grads = ctx.grads
        if (
            grad.device.type != "cpu" or grad != 1
        ):  # saves a pass; elsewhere, looking means waiting
            grads = [g if g is None else g * grad for g in grads]
        return (*grads, *[None] * 4)


def _room_for_gradients(contrast, highest, needs_grad):
    """Return tensors for the gradients of the fields of a contrast and of `highest`, or None.

    Those of anchors and positives are written tile by tile, that of candidates is added to.
    """
    anchors, candidates, positives = contrast[:3]
    return [
        torch.empty_like(anchors),
        # A queue needs none, which saves a matrix product.
        torch.zeros_like(candidates) if needs_grad[1] else None,
        torch.empty_like(positives) if positives.is_floating_point() else None,
        *[None] * 4,
        torch.zeros_like(highest) if isinstance(highest, Tensor) else None,
    ]


def _row(contrast, tile, scores, loss, similarity, highest):
    """Return what an objective is told about the anchors of a tile."""
    positives = contrast.positives[tile]
    if not positives.is_floating_point():
        positives = scores.gather(1, positives)
    return Tile(
        scores=scores,
        excluded=contrast.excluded[tile],
        positives=positives,
        weights=None if contrast.weights is None else contrast.weights[tile],
        same_class=same_class(contrast, tile) if loss.requires_y else None,
        bounds=similarity.limits(contrast.anchors),
        highest=highest[tile] if isinstance(highest, Tensor) else highest,
    )


def _write(grads, contrast, tile, gradient, others):
    """Write what is no gradient of scores; return that, (row scale, matrix), of the mean loss."""
    n = len(contrast.anchors)
    scale, matrix = gradient[0] / n, gradient[1]
    if grads[2] is None:  # positives are among the candidates
        matrix = matrix.mul_(scale).scatter_(1, contrast.positives[tile], others[0] / n)
        scale = torch.ones_like(scale)
    else:
        grads[2][tile] = others[0] / n
    if grads[7] is not None and others[1] is not None:
        grads[7][tile] = others[1] / n
    return scale, matrix


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
        yield tile, pairwise_scores(anchors[tile], candidates, similarity, wants, out)


def same_class(contrast, tile):
    """Return where anchor and candidate are known to share a class, dtype bool."""
    labels = contrast.anchor_labels[tile]
    same = (labels[:, None] == contrast.candidate_labels) & (labels >= 0)[:, None]
    return same.scatter_(1, contrast.excluded[tile], False)
