"""The mean loss of a contrast and its gradient: one walk over tiles of anchors.

A tile is a few anchors with all their candidates. Its scores, its loss and its gradient are
computed together and then forgotten, so that memory grows with the number of samples and not with
its square. The sums over candidates, and their slopes, are those of ``losses/_rows.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from .._checks import check_returned
from ..losses import Loss, Rows
from ..similarity import Similarity
from ._contrast import Contrast

ObjectiveName: TypeAlias = Literal["contrastive", "jensen-shannon"]
SameGroup: TypeAlias = Literal["neutral", "positive"]

# Scores in a tile: few enough for the cache of a CPU; a GPU takes more, as each call has to start.
_TILE_ELEMENTS = 2**19
_GPU_TILE_ELEMENTS = 2**24
_LEAST_ROWS = 16


def objective_value(
    contrast: Contrast,
    loss: Loss,
    similarity: Similarity,
    objective: ObjectiveName = "contrastive",
    same_group: SameGroup = "neutral",
) -> Tensor:
    """Return the mean loss over the anchors of a contrast, differentiable.

    Parameters
    ----------
    contrast : Contrast
        Anchors, positives and candidate negatives of a batch.
    loss : Loss
        How the expectation over true negatives is estimated; without schedules.
    similarity : Similarity
        The score; without schedules.
    objective : {"contrastive", "jensen-shannon"}, default="contrastive"
        φ = exp and −log(P/(P + N·E)), or φ = softplus and softplus(−s⁺) + E.
    same_group : {"neutral", "positive"}, default="neutral"
        The role of candidates of the anchor's group, if the contrast has groups.

    Returns
    -------
    value : Tensor of shape ()
    """
    if objective == "jensen-shannon" and not loss.is_estimate:
        raise ValueError(
            f"{type(loss).__name__} is more than an estimate over negatives and has no "
            "Jensen–Shannon form: pass framework=InfoGraph(objective='contrastive')."
        )
    losses_of = _contrastive if objective == "contrastive" else _jensen_shannon

    def evaluate(part: slice, u: Tensor, scores: Tensor) -> tuple[Rows, Tensor]:
        """Return what the loss reads of a tile, and the sum of its losses."""
        rows = _rows(contrast, loss, similarity, same_group, part, u, scores)
        pulls_group = same_group == "positive" and not loss.pulls
        losses = losses_of(rows, loss, contrast.same_group(part) if pulls_group else None)
        if contrast.weights is not None:
            losses = losses * contrast.weights[part]
        return rows, losses.sum()

    # Under autocast the products would be taken in half precision, which 1/temperature magnifies.
    with torch.autocast(contrast.anchors.device.type, enabled=False):
        tensors = contrast.anchors, contrast.candidates, contrast.positives
        return _MeanLoss.apply(similarity, evaluate, *tensors)


class _MeanLoss(torch.autograd.Function):
    """The mean loss; the gradient is computed along with it, a tile at a time."""

    @staticmethod
    def forward(
        ctx: Any,
        similarity: Similarity,
        evaluate: Callable[[slice, Tensor, Tensor], tuple[Rows, Tensor]],
        anchors: Tensor,
        candidates: Tensor,
        positives: Tensor,
    ) -> Tensor:
        *_, of_candidates, of_positives = ctx.needs_input_grad
        needs_gradient = any(ctx.needs_input_grad)
        value, d_anchors = anchors.new_zeros(()), torch.zeros_like(anchors)
        # Anchors that are the candidates have one gradient.
        d_candidates = d_anchors if anchors is candidates else None
        if of_candidates and d_candidates is None:
            d_candidates = torch.zeros_like(candidates)
        d_positives = torch.zeros_like(positives) if of_positives else None
        for part in tiles(anchors, len(candidates)):
            u = anchors[part].detach().requires_grad_(needs_gradient)
            v = candidates.detach().requires_grad_(of_candidates)
            with torch.set_grad_enabled(needs_gradient and not similarity.bilinear):
                scores = similarity.scores(u, v)
            check_returned(f"{type(similarity).__name__}.scores", scores, (len(u), len(v)))
            with torch.set_grad_enabled(needs_gradient):
                # A loss writes into its scores, and autograd may need those of a similarity.
                own = scores if similarity.bilinear else scores.detach().clone()
                rows, of_tile = evaluate(part, u, own)
            value += of_tile.detach()
            if not needs_gradient:
                continue
            further = [u] if isinstance(rows.highest, Tensor) else []
            d_scores, d_positive, d_further = rows._gradients(of_tile, *further)
            if d_positives is not None:
                d_positives[part] = d_positive
            elif not positives.is_floating_point():  # places among the candidates
                d_scores.scatter_add_(1, positives[part], d_positive)
            _add_gradients(similarity, scores, u, v, d_scores, d_anchors[part], d_candidates)
            for found in d_further:
                d_anchors[part] += found
        ctx.gradients = d_anchors, None if d_candidates is d_anchors else d_candidates, d_positives
        return value / len(anchors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # a second derivative would silently lack this part
            raise RuntimeError(
                "contrastive_loss can be differentiated once: create_graph=True is not supported."
            )
        scale = grad / len(ctx.gradients[0])
        gradients = (None if found is None else found * scale for found in ctx.gradients)
        return None, None, *gradients


def _add_gradients(
    similarity: Similarity,
    scores: Tensor,
    u: Tensor,
    v: Tensor,
    d_scores: Tensor,
    d_u: Tensor,
    d_v: Tensor | None,
) -> None:
    """Add the gradients of vectors u and, if there is `d_v`, of v from that of their scores."""
    if similarity.bilinear:
        d_u.addmm_(d_scores, v)
        if d_v is not None:
            d_v.addmm_(d_scores.T, u)
        return
    vectors, totals = ([u], [d_u]) if d_v is None else ([u, v], [d_u, d_v])
    for total, found in zip(totals, torch.autograd.grad(scores, vectors, d_scores), strict=True):
        total += found


def tiles(anchors: Tensor, n_candidates: int) -> Iterator[slice]:
    """Yield slices of anchors whose scores with all candidates are a tile."""
    elements = _GPU_TILE_ELEMENTS if anchors.is_cuda else _TILE_ELEMENTS
    n_rows = max(_LEAST_ROWS, elements // max(1, n_candidates))
    for start in range(0, len(anchors), n_rows):
        yield slice(start, min(start + n_rows, len(anchors)))


def _rows(
    contrast: Contrast,
    loss: Loss,
    similarity: Similarity,
    same_group: SameGroup,
    part: slice,
    u: Tensor,
    scores: Tensor,
) -> Rows:
    """Return what a loss reads of a few anchors, of vectors u and scores with all candidates."""
    group = contrast.same_group(part)
    same_class = contrast.same_class(part) if loss.requires_y else None
    hidden = group
    if group is not None and same_group == "positive" and loss.pulls:
        # A loss that pulls candidates of the anchor's class pulls its group as if it were one.
        same_class, hidden = group if same_class is None else same_class | group, None
    elif group is not None and same_class is not None:
        same_class = same_class & ~group
    weights = contrast.pair_weights
    return Rows(
        scores,
        contrast.scores_of_positives(part, scores),
        contrast.excluded[part],
        bounds=similarity.bounds(contrast.anchors.shape[1]),
        highest=similarity.self_scores(u),
        same_class=same_class,
        hidden=hidden,
        pair_weights=None if weights is None else weights[part].to(scores.dtype),
    )


def _contrastive(rows: Rows, loss: Loss, group: Tensor | None) -> Tensor:
    """Return the loss of each anchor; members of `group` are pulled."""
    owner = f"{type(loss).__name__}.losses"
    losses = check_returned(owner, loss.losses(rows), (len(rows.positives),))
    if torch.is_grad_enabled() and not losses.requires_grad:
        raise ValueError(f"{owner} must return what autograd can differentiate, without detach.")
    if group is None:
        return losses
    total, mass = rows._weighted_sum(rows._of_pairs(rows._copy(group)))
    return losses + _attraction(rows.positives, total, mass)


def _attraction(own: Tensor, total: Tensor, mass: Tensor) -> Tensor:
    """Return what is added to a loss when a share of the pull goes to others.

    Parameters
    ----------
    own : Tensor of shape (n_anchors, n_positives)
        The attraction of the positives, which have all of the pull in the loss.
    total, mass : Tensor of shape (n_anchors,)
        The sum of the attractions of the others, and their number.
    """
    others = total / mass.masked_fill(mass == 0, 1.0)
    return mass / (mass + own.shape[1]) * (own.mean(1) - others)


def _jensen_shannon(rows: Rows, loss: Loss, group: Tensor | None) -> Tensor:
    """Return softplus(−s⁺) + Ê⁻[softplus] for each anchor, by autograd on its row."""
    scores, positives, (a, b) = rows._finite_scores, rows.positives, loss.coefficients()
    c = rows.weights(loss)
    if c is None:
        c = rows._of_candidates(torch.ones_like(scores))
    logits = c.log() + loss.hardness() * (scores.detach() if loss.detach_weights else scores)
    if loss.sum_of_weights == "free":
        weights = logits.exp() / rows.n_candidates
    else:  # N does not occur here: weights whose sum replaces it are scaled, too
        none = c == 0
        weights = logits.masked_fill(none.all(1, keepdim=True), 0.0).softmax(1)
        weights = weights.masked_fill(none, 0.0)
    negative = a * (weights * F.softplus(scores)).sum(1) - b * F.softplus(positives).mean(1)
    floor = math.log1p(math.exp(rows.lowest))
    losses = negative.clamp_min(floor) - F.logsigmoid(positives).mean(1)
    if group is None:
        return losses
    # What pulls is −softplus(−s).
    weights = rows._of_pairs(rows._copy(group))
    total = (weights * F.logsigmoid(scores)).sum(1)
    return losses + _attraction(F.logsigmoid(positives), total, weights.sum(1))
