"""The mean loss of a contrast and its gradient: one walk over tiles of anchors.

A tile is a few anchors with all their candidates. Its scores, its loss and its gradient are
computed together and then forgotten, so that memory grows with the number of samples and not with
its square. The sums over candidates, and their slopes, are those of ``losses/_rows.py``.
"""

from __future__ import annotations

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
    losses = _contrastive if objective == "contrastive" else _jensen_shannon

    def evaluate(part: slice, u: Tensor, scores: Tensor) -> tuple[Rows, Tensor]:
        """Return what the loss read of a tile, and the share of its anchors in the mean loss."""
        rows = _rows(contrast, loss, similarity, same_group, part, u, scores)
        pulls_group = same_group == "positive" and not loss.pulls
        found = losses(rows, loss, contrast.same_group(part) if pulls_group else None)
        if contrast.weights is not None:
            found = found * contrast.weights[part].to(found.dtype)
        return rows, found.sum() / len(contrast.anchors)

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
        *_, of_anchors, of_candidates, of_positives = ctx.needs_input_grad
        needs_gradient = of_anchors or of_candidates or of_positives
        value = anchors.new_zeros(())
        d_anchors, d_positives = torch.zeros_like(anchors), torch.empty_like(positives)
        are_same = anchors is candidates and of_candidates  # then there is one gradient
        d_candidates = d_anchors if are_same else None
        if of_candidates and not are_same:
            d_candidates = torch.zeros_like(candidates)
        for part in tiles(anchors, len(candidates)):
            u = anchors[part].detach().requires_grad_(needs_gradient)
            v = candidates.detach().requires_grad_(of_candidates)
            with torch.set_grad_enabled(needs_gradient and not similarity.bilinear):
                scores = similarity.scores(u, v)
            check_returned(f"{type(similarity).__name__}.scores", scores, (len(u), len(v)))
            with torch.set_grad_enabled(needs_gradient):
                rows, loss = evaluate(part, u, scores.detach())
            value += loss.detach()
            if not needs_gradient:
                continue
            d_scores, d_positive, (d_self,) = rows.gradients(loss, [u])
            if positives.is_floating_point():
                d_positives[part] = d_positive
            else:  # places among the candidates
                d_scores.scatter_add_(1, positives[part], d_positive)
            d_u, d_v = _pull_back(similarity, scores, u, v, d_scores, are_same)
            d_anchors[part] += d_u if d_self is None else d_u + d_self
            if d_candidates is not None and d_v is not None:
                d_candidates += d_v
        others = None if are_same else d_candidates, d_positives if of_positives else None
        ctx.gradients = d_anchors, *others
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # a second derivative would silently lack this part
            raise RuntimeError(
                "contrastive_loss can be differentiated once: create_graph=True is not supported."
            )
        gradients = (None if found is None else found * grad for found in ctx.gradients)
        return None, None, *gradients


def _pull_back(
    similarity: Similarity, scores: Tensor, u: Tensor, v: Tensor, d_scores: Tensor, are_same: bool
) -> tuple[Tensor, Tensor | None]:
    """Return the gradients of vectors u and v from that of their scores; u's may hold both."""
    if similarity.bilinear and are_same and len(u) == len(v):  # both in one product
        return (d_scores + d_scores.T) @ v.detach(), None
    if similarity.bilinear:
        return d_scores @ v.detach(), d_scores.T @ u.detach() if v.requires_grad else None
    d_u, *d_v = torch.autograd.grad(scores, [u, v] if v.requires_grad else [u], d_scores)
    return d_u, d_v[0] if d_v else None


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
    positives, excluded = contrast.positives[part], contrast.excluded[part]
    if not positives.is_floating_point():
        positives = scores.gather(1, positives)
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
        positives,
        excluded,
        bounds=similarity.bounds(contrast.anchors.shape[1]),
        self_scores=lambda: similarity.self_scores(u),
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
    return losses + _attraction(rows.positives, *rows.weighted_sum_of_group(group))


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
    scores, c, (a, b) = rows.finite_scores(), rows.weights(loss), loss.coefficients()
    logits = torch.zeros_like(scores).masked_fill(~rows.is_candidate(), -torch.inf)
    if c is not None:
        logits = logits + c.log()
    if loss.hardness():
        logits = logits + loss.hardness() * (scores.detach() if loss.detach_weights else scores)
    counted = logits > -torch.inf
    if loss.sum_of_weights == "free":
        weights = logits.exp() / rows.n_candidates
    else:  # N does not occur here: weights whose sum replaces it are scaled, too
        weights = logits.masked_fill(~counted.any(1, keepdim=True), 0.0).softmax(1)
    negative = a * (weights * F.softplus(scores)).masked_fill(~counted, 0.0).sum(1)
    if b:
        negative = (negative - b * F.softplus(rows.positives).mean(1)).clamp_min(0.0)
    losses = F.softplus(-rows.positives).mean(1) + negative
    if group is None:
        return losses
    # What pulls is −softplus(−s).
    weights = rows.of_pairs(group)
    total = (weights * F.logsigmoid(scores)).sum(1)
    return losses + _attraction(F.logsigmoid(rows.positives), total, weights.sum(1))
