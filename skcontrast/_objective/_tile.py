"""The input of an objective: a tile of anchors, and their scores with the candidates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor

from ..similarity import Similarity
from ._buffers import Arena
from ._contrast import Contrast
from ._rank_weights import weights_by_rank

if TYPE_CHECKING:
    from ..losses import Loss
    from ._base import Objective

GroupRole: TypeAlias = Literal["neutral", "positive"]


class Anchors(NamedTuple):
    """The input of an objective for each anchor, apart from its candidates.

    Attributes
    ----------
    positives : Tensor of shape (n_anchors, n_positives)
        Scores of the positives.
    weights : Tensor of shape (n_anchors,) or None
        Factors on the losses of the anchors.
    n_negatives : int
        The number N of candidates that are not excluded.
    bounds : tuple of float
        The lowest and the highest score that these vectors can have.
    self_scores : Tensor of shape (n_anchors,), float or None
        The score of each anchor with itself, for losses that correct the positive term.
    """

    positives: Tensor
    weights: Tensor | None
    n_negatives: int
    bounds: tuple[float, float]
    self_scores: Tensor | float | None = None

    def total(self, losses: Tensor) -> Tensor:
        """Return the weighted sum of the losses of the anchors."""
        return losses.sum() if self.weights is None else losses @ self.weights.to(losses.dtype)


class Tile(NamedTuple):
    """A tile of anchors with the scores of their candidates, or of a subset of these.

    Attributes
    ----------
    anchors : Anchors
        The anchors.
    scores : Tensor of shape (n_anchors, n_candidates)
        Scores; an objective may overwrite them. Those of excluded candidates are meaningless.
    excluded : Tensor of shape (n_anchors, n_excluded), dtype int64
        Candidates that are not negatives of the anchor.
    same_class : Tensor of shape (n_anchors, n_candidates), dtype bool, or None
        Where anchor and candidate are known to share a class, for losses that read labels.
    same_group : Tensor of shape (n_anchors, n_candidates), dtype bool, or None
        Where anchor and candidate are of one group, and so no negatives of each other.
    pair_weights : Tensor of shape (n_anchors, n_candidates), or None
        Factors on the weights of the candidates.
    group_role : {"neutral", "positive"}
        Whether candidates of the anchor's group are ignored or pulled like its own views.
    is_upper_triangle : bool
        Whether the first candidates are the anchors, and the rest is taken both ways: as
        candidates of these, and these as candidates of the rest.
    buffers : Arena or None
        Where room for numbers of each pair comes from; None is fresh memory.
    rank_tables : dict or None
        The weights by rank that were tabulated for earlier tiles; None is none.
    """

    anchors: Anchors
    scores: Tensor
    excluded: Tensor
    same_class: Tensor | None = None
    same_group: Tensor | None = None
    pair_weights: Tensor | None = None
    group_role: GroupRole = "neutral"
    is_upper_triangle: bool = False
    buffers: Arena | None = None
    rank_tables: dict[int, Tensor] | None = None

    def empty(self) -> Tensor:
        """Return an array with an entry for each pair, and anything in it; used for this tile."""
        if self.buffers is None:
            return torch.empty_like(self.scores)
        return self.buffers.empty(self.scores.shape, self.scores.dtype)

    def sum(self, terms: Tensor) -> Tensor:
        """Return the sums of numbers, one for each pair, over the candidates of each anchor.

        Of a strip, they are the sums of its pairs for each of its candidates.
        """
        if not self.is_upper_triangle:
            return terms.sum(1)
        return torch.cat([terms.sum(1), terms[:, len(terms) :].sum(0)])

    def prior(self, loss: Loss) -> Tensor | None:
        """Return the weights that a loss gives by label and by rank, or None where all are 1."""
        by_class = loss.class_weights(cast(Tensor, self.same_class))
        if by_class is not None:
            by_class = by_class.to(self.scores.dtype)
        if not loss.overrides("rank_weights"):
            return by_class
        by_rank = weights_by_rank(self.scores, self.excluded, loss, self.buffers, self.rank_tables)
        return by_rank if by_class is None else by_rank * by_class

    def of_pairs(self, weights: Tensor | None) -> Tensor | None:
        """Return weights of the candidates, None for 1, times those of the contrast."""
        if self.pair_weights is None:
            return weights
        return self.pair_weights.clone() if weights is None else weights * self.pair_weights

    def without_group(self, prior: Tensor | None) -> Tensor | None:
        """Return the same, and 0 for candidates of the anchor's group."""
        prior = self.of_pairs(prior)
        if self.same_group is None:
            return prior
        if prior is None:
            return (~self.same_group).to(self.scores.dtype)
        return prior.masked_fill(self.same_group, 0.0)

    def push_and_pull(self, loss: Loss) -> tuple[Tensor | None, Tensor | None]:
        """Return the weights by which candidates push (None: all 1) and pull (None: none).

        Candidates of the anchor's group do neither if groups are neutral. If groups are positive,
        they are what a loss pulls most; a loss that pulls nothing pulls them and nothing else.
        """
        prior = self.prior(loss)
        attracted = self.same_group if self.group_role == "positive" else None
        if not loss.overrides("push_and_pull"):
            pull = None if attracted is None else self.of_pairs(attracted.to(self.scores.dtype))
            return self.without_group(prior), pull
        if prior is None:
            prior = torch.ones_like(self.scores)
        if attracted is not None:
            prior = prior.masked_fill(attracted, 1.0)
        push, pull = loss.push_and_pull(prior)
        kept = self.without_group if attracted is None else self.of_pairs
        return kept(push), kept(pull)


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
        self, rows: slice, scores: Tensor, buffers: Arena | None, excluded: Tensor, first: int = 0
    ) -> Tile:
        """Return what the objective reads of a few anchors and their candidates.

        The candidates are those from the `first` on; `excluded` counts from it.
        """
        contrast, positives = self.contrast, self.contrast.positives[rows]
        weights = contrast.pair_weights
        # Integers are places of positives among the candidates, which have their scores already.
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


class Exponentials(NamedTuple):
    """Rows of numbers e^top · terms; `total` is the sum of the terms of each row.

    `terms` is None where only the total is needed.
    """

    top: Tensor | float
    total: Tensor
    terms: Tensor | None


def exponentials(logits: Tensor) -> Exponentials:
    """Return e^logits (computed in place) with the maximum of each row taken out.

    Logits of −∞ give exactly 0, also in a row that holds nothing else.
    """
    top = logits.amax(1).clamp_min(torch.finfo(logits.dtype).min / 4)
    terms = logits.sub_(top[:, None]).exp_()
    return Exponentials(top, terms.sum(1), terms)


def log_weights(tile: Tile, prior: Tensor | None, beta: float) -> Tensor:
    """Return log c + β s, shape (n_anchors, n_candidates); −∞ where excluded."""
    logits = tile.scores * beta if beta else torch.zeros_like(tile.scores)
    if prior is not None:
        logits += prior.log()
    return logits.scatter_(1, tile.excluded, -torch.inf)
