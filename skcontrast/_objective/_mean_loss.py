"""The mean loss of a contrast and its gradient, computed in tiles of anchors.

A tile is a few anchors with all their candidates. Its scores, loss and gradient are computed
together and then discarded, so that memory grows with the number of samples, not with its square.
``losses/_tape.py`` has the sums over candidates and their derivatives.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from .._checks._arguments import check_returned
from ..losses import Loss, Rows
from ..losses._rows import weights_of
from ..losses._tape import Tape
from ..similarity import Similarity
from ._contrast import Contrast

ObjectiveName: TypeAlias = Literal["contrastive", "jensen-shannon"]
SameGroup: TypeAlias = Literal["neutral", "positive", "correct"]

# Scores in a tile: few enough for the cache of a CPU; more on a GPU, where each call has overhead.
_TILE_ELEMENTS = 2**19
_GPU_TILE_ELEMENTS = 2**24
_MIN_ROWS = 16


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
    same_group : {"neutral", "positive", "correct"}, default="neutral"
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
    if not loss.is_corrected and (same_group == "correct" or contrast.correcting is not None):
        raise ValueError(
            f"{loss!r} has no term that samples of the anchor's class could correct: pass DCL, "
            "HCL, PUCL or PositiveDebiased(negatives=DCL())."
        )
    losses_of = _contrastive if objective == "contrastive" else _jensen_shannon

    def evaluate(tile: slice, u: Tensor, scores: Tensor) -> tuple[Tape, Tensor]:
        """Return the tape of a tile, and the sum of its losses."""
        tape, rows = _rows(contrast, loss, similarity, same_group, tile, u, scores)
        pulls_group = same_group == "positive" and not loss.pulls
        losses = losses_of(tape, rows, loss, tape.hidden if pulls_group else None)
        if contrast.weights is not None:
            losses = losses * contrast.weights[tile]
        return tape, losses.sum()

    # Autocast would compute products in half precision, whose error 1/temperature magnifies.
    with torch.autocast(contrast.anchors.device.type, enabled=False):
        tensors = contrast.anchors, contrast.candidates, contrast.positives, contrast.correcting
        return _MeanLoss.apply(similarity, evaluate, *tensors)


class _MeanLoss(torch.autograd.Function):
    """The mean loss; the gradient is computed along with it, a tile at a time."""

    @staticmethod
    def forward(
        ctx: Any,
        similarity: Similarity,
        evaluate: Callable[[slice, Tensor, Tensor], tuple[Tape, Tensor]],
        anchors: Tensor,
        candidates: Tensor,
        positives: Tensor,
        correcting: Tensor | None,
    ) -> Tensor:
        *_, needs_candidates, needs_positives, needs_correcting = ctx.needs_input_grad
        needs_gradient = any(ctx.needs_input_grad)
        value, d_anchors = anchors.new_zeros(()), torch.zeros_like(anchors)
        # If anchors and candidates are the same tensor, so are their gradients.
        d_candidates = d_anchors if anchors is candidates else None
        if needs_candidates and d_candidates is None:
            d_candidates = torch.zeros_like(candidates)
        d_positives = torch.zeros_like(positives) if needs_positives else None
        d_correcting = None
        if correcting is not None and needs_correcting:
            d_correcting = torch.zeros_like(correcting)
        for tile in tiles(anchors, len(candidates)):
            u = anchors[tile].detach().requires_grad_(needs_gradient)
            v = candidates.detach().requires_grad_(needs_candidates)
            with torch.set_grad_enabled(needs_gradient and not similarity.bilinear):
                scores = similarity.scores(u, v)
            check_returned(f"{type(similarity).__name__}.scores", scores, (len(u), len(v)))
            with torch.set_grad_enabled(needs_gradient):
                # A tape overwrites the scores, which autograd of the similarity may need.
                tile_scores = scores if similarity.bilinear else scores.detach().clone()
                tape, tile_loss = evaluate(tile, u, tile_scores)
            value += tile_loss.detach()
            if not needs_gradient:
                continue
            inputs = [u] if isinstance(tape.highest, Tensor) else []
            corrects = [] if tape.correcting is None else [tape.correcting]
            d_scores, d_positive, d_inputs = tape.gradients(tile_loss, *corrects, *inputs)
            if corrects:
                d_correct, *d_inputs = d_inputs
                if d_correcting is not None:
                    d_correcting[tile] = d_correct
            if d_positives is not None:
                d_positives[tile] = d_positive
            elif not positives.is_floating_point():  # indices of candidates
                d_scores.scatter_add_(1, positives[tile], d_positive)
            _add_gradients(similarity, scores, u, v, d_scores, d_anchors[tile], d_candidates)
            for d_tensor in d_inputs:
                d_anchors[tile] += d_tensor
        others = (None if d_candidates is d_anchors else d_candidates, d_positives, d_correcting)
        ctx.gradients = d_anchors, *others
        return value / len(anchors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():  # second derivatives would be wrong without notice
            raise RuntimeError("contrastive_loss can be differentiated once: omit create_graph.")
        scale = grad / len(ctx.gradients[0])
        gradients = (None if gradient is None else gradient * scale for gradient in ctx.gradients)
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
    """Add the gradients of u and, if `d_v` is not None, of v, given that of their scores."""
    if similarity.bilinear:
        d_u.addmm_(d_scores, v)
        if d_v is not None:
            d_v.addmm_(d_scores.T, u)
        return
    vectors, totals = ([u], [d_u]) if d_v is None else ([u, v], [d_u, d_v])
    gradients = torch.autograd.grad(scores, vectors, d_scores)
    for total, gradient in zip(totals, gradients, strict=True):
        total += gradient


def tiles(anchors: Tensor, n_candidates: int) -> Iterator[slice]:
    """Yield slices of anchors whose scores with all candidates are a tile."""
    elements = _GPU_TILE_ELEMENTS if anchors.is_cuda else _TILE_ELEMENTS
    n_rows = max(_MIN_ROWS, elements // max(1, n_candidates))
    for start in range(0, len(anchors), n_rows):
        yield slice(start, min(start + n_rows, len(anchors)))


def _rows(
    contrast: Contrast,
    loss: Loss,
    similarity: Similarity,
    same_group: SameGroup,
    tile: slice,
    u: Tensor,
    scores: Tensor,
) -> tuple[Tape, Rows]:
    """Return the scores of a tile of anchors u for all candidates, and as the input of a loss."""
    group = hidden = contrast.same_group(tile)
    mates, hidden = (group, None) if same_group == "correct" else (None, hidden)
    same_class = contrast.same_class(tile) if loss.requires_y else None
    if group is not None and same_group == "positive" and loss.pulls:
        # A loss that pulls candidates of the anchor's class pulls its group in the same way.
        same_class, hidden = group if same_class is None else same_class | group, None
    elif hidden is not None and same_class is not None:
        same_class = same_class & ~hidden
    weights, correcting = contrast.pair_weights, contrast.correcting
    tape = Tape(
        scores,
        contrast.scores_of_positives(tile, scores),
        contrast.excluded[tile],
        bounds=similarity.bounds(contrast.anchors.shape[1]),
        highest=similarity.self_scores(u),
        hidden=hidden,
        pair_weights=None if weights is None else weights[tile].to(scores.dtype),
        correcting=None if correcting is None else correcting[tile],
        mates=mates,
    )
    return tape, Rows(tape, same_class)


def _contrastive(tape: Tape, rows: Rows, loss: Loss, group: Tensor | None) -> Tensor:
    """Return the loss of each anchor, with the members of `group` pulled."""
    owner = f"{type(loss).__name__}.losses"
    losses = check_returned(owner, loss.losses(rows), (len(rows.positives),))
    if torch.is_grad_enabled() and not losses.requires_grad:
        raise ValueError(f"{owner} must return a differentiable tensor: leave out detach.")
    if group is None:
        return losses
    total, mass = tape.weighted_sum(tape.of_pairs(tape.copy(group)))
    return losses + _attraction(rows.positives, total, mass)


def _attraction(positives: Tensor, total: Tensor, mass: Tensor) -> Tensor:
    """Return the change of a loss when candidates share the pull of the positives.

    Parameters
    ----------
    positives : Tensor of shape (n_anchors, n_positives)
        The attraction of the positives in the loss.
    total, mass : Tensor of shape (n_anchors,)
        The sum of the attractions of these candidates, and their number.
    """
    others = total / mass.masked_fill(mass == 0, 1.0)
    return mass / (mass + positives.shape[1]) * (positives.mean(1) - others)


def _jensen_shannon(tape: Tape, rows: Rows, loss: Loss, group: Tensor | None) -> Tensor:
    """Return softplus(−s⁺) + Ê⁻[softplus] for each anchor, by autograd on its row."""
    scores, positives, (a, b) = tape.finite_scores, rows.positives, loss.coefficients()
    # Without N, weights whose sum replaces N are scaled, too.
    weights = weights_of(loss, rows, is_scaled=loss.sum_of_weights != "free")
    mean = (weights * F.softplus(scores)).sum(1) / rows.n_candidates
    negative = a * mean - b * _mean_correcting(tape)
    floor = math.log1p(math.exp(rows.lowest))
    losses = negative.clamp_min(floor) - F.logsigmoid(positives).mean(1)
    if group is None:
        return losses
    # The attraction is −softplus(−s).
    weights = tape.of_pairs(tape.copy(group))
    total = (weights * F.logsigmoid(scores)).sum(1)
    return losses + _attraction(F.logsigmoid(positives), total, weights.sum(1))


def _mean_correcting(tape: Tape) -> Tensor:
    """Return the mean of softplus(s) over the samples that correct each anchor."""
    own = F.softplus(tape.positives).mean(1)
    if tape.correcting is not None:
        return F.softplus(tape.correcting).mean(1)
    if tape.mates is None:
        return own
    weights = tape.of_pairs(tape.copy(tape.mates))
    mass = weights.sum(1)
    total = (weights * F.softplus(tape.finite_scores)).sum(1)
    return torch.where(mass > 0, total / mass.clamp_min(1e-12), own)
