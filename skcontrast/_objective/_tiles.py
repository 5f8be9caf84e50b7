"""The walk over tiles of anchors: the mean loss of a contrast, and its gradient along with it.

A tile is a few anchors with all their candidates. Its scores, its loss and its gradient are
computed together and then forgotten, so that memory grows with the number of samples and not with
its square.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ..losses import Loss
from ..similarity import Similarity
from ._base import GroupRole, Objective, ObjectiveName, ScaledMatrix, Tile, TileGradients
from ._contrast import Contrast
from ._exponential import Contrastive
from ._jensen_shannon import JensenShannon
from ._pairwise import PairwiseScores, pairwise_scores

OBJECTIVES: dict[ObjectiveName, type[Objective]] = {
    "contrastive": Contrastive,
    "jensen-shannon": JensenShannon,
}

# Scores held at a time: large enough to keep the matrix products efficient, small enough to stay
# in cache.
_TILE_ELEMENTS = 2**20
_TILE_ROWS = 128


_NOT_TRANSFORMED = (
    "contrastive_loss computes its gradient along with its value, for backward() and "
    "torch.autograd.grad: transforms of torch.func (grad, vmap, jacrev, jvp) and forward-mode "
    "derivatives are not supported."
)


def objective_value(
    contrast: Contrast,
    loss: Loss,
    similarity: Similarity,
    objective: ObjectiveName = "contrastive",
    group_role: GroupRole = "neutral",
) -> Tensor:
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
    group_role : {"neutral", "positive"}, default="neutral"
        What candidates of the anchor's group are, if the contrast has groups.

    Returns
    -------
    value : Tensor of shape ()
    """
    OBJECTIVES[objective].check(loss)
    if loss.requires_y and contrast.anchor_labels is None:
        raise ValueError(f"{type(loss).__name__} needs labels: pass y.")
    # Under autocast the products would be taken in half precision, which 1/temperature magnifies.
    with torch.autocast(contrast.anchors.device.type, enabled=False):
        self_scores = similarity.highest(contrast.anchors) if loss.corrects_positives else None
        kind = OBJECTIVES[objective]
        problem = _Problem(contrast, self_scores, loss, similarity, kind, group_role)
        inputs = contrast.anchors, contrast.candidates, contrast.positives, self_scores
        try:
            return _TiledObjective.apply(problem, *inputs)
        except RuntimeError as error:
            if "functorch" in str(error):
                raise RuntimeError(_NOT_TRANSFORMED) from error
            raise


class _Problem(NamedTuple):
    """A contrast and the choices that determine its loss.

    `self_scores` holds the score of each anchor with itself: a tensor, one float for all, or None
    where the loss does not need them.
    """

    contrast: Contrast
    self_scores: Tensor | float | None
    loss: Loss
    similarity: Similarity
    objective: type[Objective]
    group_role: GroupRole

    def tile(self, rows: slice, scores: Tensor) -> Tile:
        """Return what the objective needs to know about some of the anchors."""
        contrast = self.contrast
        positives = contrast.positives[rows]
        if not positives.is_floating_point():
            positives = scores.gather(1, positives)
        self_scores = self.self_scores
        return Tile(
            scores=scores,
            excluded=contrast.excluded[rows],
            positives=positives,
            weights=None if contrast.weights is None else contrast.weights[rows],
            same_class=same_class(contrast, rows) if self.loss.requires_y else None,
            bounds=self.similarity.limits(contrast.anchors),
            self_scores=self_scores[rows] if isinstance(self_scores, Tensor) else self_scores,
            same_group=same_group(contrast, rows),
            group_role=self.group_role,
        )


class Gradients(NamedTuple):
    """The gradients of the mean loss; None for inputs that need none.

    They are written tile by tile, except the one of the candidates, to which each tile adds.
    """

    anchors: Tensor
    candidates: Tensor | None
    positives: Tensor | None
    self_scores: Tensor | None

    def times(self, factor: Tensor) -> Gradients:
        """Return all gradients multiplied by a number."""
        return Gradients(*(None if g is None else g * factor for g in self))

    def write(self, rows: slice, part: TileGradients, contrast: Contrast) -> ScaledMatrix:
        """Write the gradients of the inputs that belong to the anchors of a tile alone.

        Returns
        -------
        d_scores : ScaledMatrix
            The gradient of the mean loss with respect to the scores of the tile's candidates,
            which is left to be pulled back to anchors and candidates. Positives that are named
            among the candidates have theirs in it.
        """
        n = len(contrast.anchors)
        scale, matrix = part.scores.scale / n, part.scores.matrix
        if self.self_scores is not None and part.self_scores is not None:
            self.self_scores[rows] = part.self_scores / n
        if self.positives is not None:
            self.positives[rows] = part.positives / n
            return ScaledMatrix(scale, matrix)
        matrix = matrix.mul_(scale).scatter_(1, contrast.positives[rows], part.positives / n)
        return ScaledMatrix(torch.ones_like(scale), matrix)


class _TiledObjective(torch.autograd.Function):
    """Mean loss over anchors; the gradient is computed along with it, a tile at a time."""

    @staticmethod
    def forward(
        ctx: Any,
        problem: _Problem,
        anchors: Tensor,
        candidates: Tensor,
        positives: Tensor,
        self_scores: Tensor | float | None,
    ) -> Tensor:
        _, *needed = ctx.needs_input_grad
        _, needs_candidates, _, _ = needed
        ctx.gradients = None
        if any(needed):
            ctx.gradients = Gradients(
                anchors=torch.empty_like(anchors),
                # A queue needs none, which saves a matrix product.
                candidates=torch.zeros_like(candidates) if needs_candidates else None,
                positives=torch.empty_like(positives) if positives.is_floating_point() else None,
                self_scores=(
                    torch.zeros_like(self_scores) if isinstance(self_scores, Tensor) else None
                ),
            )
        return _mean_loss(problem, ctx.gradients)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            raise RuntimeError(
                "contrastive_loss computes its gradient along with its value and can be "
                "differentiated once: create_graph=True is not supported."
            )
        gradients = ctx.gradients
        # Multiplying by 1 is left out, but not on a device where looking means waiting.
        if grad.device.type != "cpu" or grad != 1:
            gradients = gradients.times(grad)
        return (
            None,
            gradients.anchors,
            gradients.candidates,
            gradients.positives,
            gradients.self_scores,
        )

    @staticmethod
    def jvp(ctx: Any, *tangents: Any) -> None:
        raise RuntimeError(_NOT_TRANSFORMED)


def _mean_loss(problem: _Problem, gradients: Gradients | None) -> Tensor:
    """Return the mean loss over all anchors, and fill in its gradients unless they are None."""
    contrast, needs_gradient = problem.contrast, gradients is not None
    total = contrast.anchors.new_zeros(())
    for rows, pairwise in tiles(contrast, problem.similarity, needs_gradient):
        tile = problem.tile(rows, pairwise.values)
        part = problem.objective.evaluate(tile, problem.loss, needs_gradient)
        total += part.total
        if gradients is not None and part.gradients is not None:
            d_scores = gradients.write(rows, part.gradients, contrast)
            pairwise.add_gradients(
                d_scores,
                gradients.anchors[rows],
                gradients.candidates,
                is_one=contrast.anchors is contrast.candidates,
            )
    return total / len(contrast.anchors)


def tiles(
    contrast: Contrast, similarity: Similarity, needs_gradient: bool
) -> Iterator[tuple[slice, PairwiseScores]]:
    """Yield slices of the anchors and their scores with all candidates.

    The scores of one tile are overwritten by the scores of the next.
    """
    anchors, candidates = contrast.anchors, contrast.candidates
    rows = max(_TILE_ROWS, _TILE_ELEMENTS // max(1, len(candidates)))
    buffer = anchors.new_empty(min(rows, len(anchors)), len(candidates))
    for start in range(0, len(anchors), rows):
        tile = slice(start, min(start + rows, len(anchors)))
        out = buffer[: tile.stop - start]
        yield tile, pairwise_scores(anchors[tile], candidates, similarity, needs_gradient, out)


def same_class(contrast: Contrast, rows: slice) -> Tensor:
    """Return where anchor and candidate are known to share a class, dtype bool."""
    if contrast.anchor_labels is None:
        raise ValueError("The contrast has no labels.")
    return _same(contrast.anchor_labels, contrast.candidate_labels, contrast, rows)


def same_group(contrast: Contrast, rows: slice) -> Tensor | None:
    """Return where anchor and candidate are of one group, dtype bool; None without groups."""
    if contrast.anchor_groups is None:
        return None
    return _same(contrast.anchor_groups, contrast.candidate_groups, contrast, rows)


def _same(of_anchors: Tensor, of_candidates: Any, contrast: Contrast, rows: slice) -> Tensor:
    marks = of_anchors[rows]
    same = (marks[:, None] == of_candidates) & (marks >= 0)[:, None]
    return same.scatter_(1, contrast.excluded[rows], False)
