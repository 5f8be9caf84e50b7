"""A contrast with the choices that determine its loss, and the gradients of that."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ..losses import Loss
from ..similarity import Similarity
from ._base import Objective, ScaledMatrix, TileGradients
from ._buffers import Arena
from ._contrast import Contrast
from ._tile import Anchors, GroupRole, Tile


class LossInputs(NamedTuple):
    """A contrast and the choices that determine its loss.

    `self_scores` holds the score of each anchor with itself: a tensor, one float for all, or None
    where the loss does not need them. `rank_tables` is filled as weights by rank are needed.
    """

    contrast: Contrast
    self_scores: Tensor | float | None
    loss: Loss
    similarity: Similarity
    objective: Objective
    group_role: GroupRole
    rank_tables: dict[int, Tensor]

    def anchors(self, rows: slice, positives: Tensor) -> Anchors:
        """Return what the objective reads of a few anchors with these positive scores."""
        contrast, self_scores = self.contrast, self.self_scores
        return Anchors(
            positives=positives,
            weights=None if contrast.weights is None else contrast.weights[rows],
            n_negatives=len(contrast.candidates) - contrast.excluded.shape[1],
            bounds=self.similarity.bounds(contrast.anchors.shape[1]),
            self_scores=self_scores[rows] if isinstance(self_scores, Tensor) else self_scores,
        )

    def tile(
        self,
        rows: slice,
        scores: Tensor,
        buffers: Arena | None,
        excluded: Tensor,
        first: int = 0,
    ) -> Tile:
        """Return what the objective reads of a few anchors and their candidates.

        The candidates are those from the `first` on; `excluded` counts from it.
        """
        contrast, positives = self.contrast, self.contrast.positives[rows]
        weights = contrast.pair_weights
        if not positives.is_floating_point():
            positives = scores.gather(1, positives)
        return Tile(
            anchors=self.anchors(rows, positives),
            scores=scores,
            excluded=excluded,
            same_class=(
                contrast.same_class(rows, excluded, first) if self.loss.requires_y else None
            ),
            same_group=contrast.same_group(rows, excluded, first),
            pair_weights=None if weights is None else weights[rows].to(scores.dtype),
            group_role=self.group_role,
            buffers=buffers,
            rank_tables=self.rank_tables,
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
        others = (None if g is None else g * factor for g in self[1:])
        return Gradients(self.anchors * factor, *others)

    def write(self, rows: slice, part: TileGradients, contrast: Contrast) -> ScaledMatrix:
        """Write the gradients of the inputs that belong to the anchors of a tile alone.

        Returns
        -------
        d_scores : ScaledMatrix
            The gradient of the mean loss with respect to the scores of the tile's candidates,
            which is left to be pulled back to anchors and candidates. Positives that are named
            among the candidates have theirs in it.
        """
        (scale, matrix), others = part
        n = len(contrast.anchors)
        scale = scale / n
        if self.self_scores is not None and others.self_scores is not None:
            self.self_scores[rows] = others.self_scores / n
        if self.positives is not None:
            self.positives[rows] = others.positives / n
            return ScaledMatrix(scale, matrix)
        matrix = matrix.mul_(scale).scatter_(1, contrast.positives[rows], others.positives / n)
        return ScaledMatrix(torch.ones_like(scale), matrix)
