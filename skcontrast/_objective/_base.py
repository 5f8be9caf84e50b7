"""Objectives: from the scores of some anchors to their loss and its gradient.

An objective first takes a weighted mean of φ(s) over the candidates of each anchor, once for each
estimator of the loss (`Objective.expectation`, with a gradient written by hand), and then computes
the loss of each anchor from these means and the positives (`Objective.anchor_loss`, differentiated
by autograd; that is cheap, as nothing in it has one entry per candidate). Where a loss pulls
candidates too, a weighted mean of their scores takes the place of a share of the positives.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor

from ._rank_weights import weights_by_rank

if TYPE_CHECKING:
    from ..losses import Loss

ObjectiveName: TypeAlias = Literal["contrastive", "jensen-shannon"]
GroupRole: TypeAlias = Literal["neutral", "positive"]


class Tile(NamedTuple):
    """Some anchors with the scores of all candidates: everything that an objective reads.

    Attributes
    ----------
    scores : Tensor of shape (n_anchors, n_candidates)
        Scores; an objective may overwrite them. Those of excluded candidates are meaningless.
    excluded : Tensor of shape (n_anchors, n_excluded), dtype int64
        Candidates that are not negatives of the anchor.
    positives : Tensor of shape (n_anchors, n_positives)
        Scores of the positives.
    weights : Tensor of shape (n_anchors,) or None
        Factors on the losses of the anchors.
    same_class : Tensor of shape (n_anchors, n_candidates), dtype bool, or None
        Where anchor and candidate are known to share a class, for losses that read labels.
    bounds : tuple of float
        The lowest and the highest score that these vectors can have.
    self_scores : Tensor of shape (n_anchors,), float or None
        The score of each anchor with itself, for losses that correct the positive term.
    same_group : Tensor of shape (n_anchors, n_candidates), dtype bool, or None
        Where anchor and candidate are of one group, and so no negatives of each other.
    group_role : {"neutral", "positive"}
        Whether candidates of the anchor's group are ignored or pulled like its own views.
    """

    scores: Tensor
    excluded: Tensor
    positives: Tensor
    weights: Tensor | None
    same_class: Tensor | None
    bounds: tuple[float, float]
    self_scores: Tensor | float | None = None
    same_group: Tensor | None = None
    group_role: GroupRole = "neutral"

    @property
    def n_negatives(self) -> int:
        """Return N."""
        return self.scores.shape[1] - self.excluded.shape[1]

    def total(self, losses: Tensor) -> Tensor:
        """Return the weighted sum of the losses of the anchors."""
        return losses.sum() if self.weights is None else losses @ self.weights.to(losses.dtype)

    def prior(self, loss: Loss) -> Tensor | None:
        """Return the weights that a loss gives by label and by rank, or None where all are 1."""
        by_class = loss.class_weights(self.same_class) if loss.weighs_classes else None
        if by_class is not None:
            by_class = by_class.to(self.scores.dtype)
        if not loss.weighs_ranks:
            return by_class
        by_rank = weights_by_rank(self.scores, self.excluded, loss)
        return by_rank if by_class is None else by_rank * by_class

    def without_group(self, prior: Tensor | None) -> Tensor | None:
        """Return weights of the candidates that are 0 for those of the anchor's group."""
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
        prior, attracts = self.prior(loss), self.group_role == "positive"
        if not loss.pulls_candidates:
            pull = None
            if self.same_group is not None and attracts:
                pull = self.same_group.to(self.scores.dtype)
            return self.without_group(prior), pull
        if self.same_group is None:
            return loss.push_and_pull(prior)
        if attracts:
            return loss.push_and_pull(cast(Tensor, prior).masked_fill(self.same_group, 1.0))
        push, pull = loss.push_and_pull(prior)
        return self.without_group(push), self.without_group(pull)


class ScaledMatrix(NamedTuple):
    """A matrix given as a factor for each row, shape (n, 1), and a matrix, shape (n, m).

    The product is left to whoever can take it on smaller arrays.
    """

    scale: Tensor
    matrix: Tensor


class Expectation(NamedTuple):
    """A weighted mean over the candidates of each anchor, and the way back to their scores.

    Attributes
    ----------
    value : Tensor of shape (n_anchors,)
        The mean, or its logarithm, as the objective's `anchor_loss` expects it.
    pull : callable
        Takes the gradient with respect to `value`, shape (n_anchors,), and returns the gradient
        with respect to the scores. May be called only once, as it overwrites its own data.
    """

    value: Tensor
    pull: Callable[[Tensor], ScaledMatrix]


class TileGradients(NamedTuple):
    """The gradients of the sum of the losses of a tile.

    Attributes
    ----------
    scores : ScaledMatrix
        With respect to the scores of the candidates.
    positives : Tensor of shape (n_anchors, n_positives)
        With respect to the scores of the positives.
    self_scores : Tensor of shape (n_anchors,) or None
        With respect to the scores of the anchors with themselves, where they are a tensor.
    """

    scores: ScaledMatrix
    positives: Tensor
    self_scores: Tensor | None


class Evaluation(NamedTuple):
    """The sum of the losses of a tile, and its gradients if they were asked for."""

    total: Tensor
    gradients: TileGradients | None


class Objective:
    """Base class of the objectives: a function φ of the score, and a loss made of means of φ."""

    @staticmethod
    def check(loss: Loss) -> None:
        """Raise ValueError if the objective cannot be computed for this loss."""

    @staticmethod
    def attraction(scores: Tensor) -> tuple[Tensor, Tensor | None]:
        """Return what the loss raises for positives by their scores, and its slope (None: 1)."""
        raise NotImplementedError

    @staticmethod
    def expectation(tile: Tile, loss: Loss, prior: Tensor | None) -> Expectation:
        """Return the weighted mean of φ(s) over the candidates.

        The scores may be overwritten, and so may the prior: the factors c of the candidates,
        shape (n_anchors, n_candidates), or None where all are 1.
        """
        raise NotImplementedError

    @staticmethod
    def anchor_loss(means: list[Tensor], positives: Tensor, tile: Tile, loss: Loss) -> Tensor:
        """Return the loss of each anchor, shape (n,).

        Parameters
        ----------
        means : list of Tensor of shape (n,)
            Values of the expectations, one for each of ``loss.estimators()``.
        positives : Tensor of shape (n, n_positives)
            Scores of the positives.
        tile : Tile
            Everything else; its scores may have been overwritten.
        loss : Loss
            Without schedules.
        """
        raise NotImplementedError

    @classmethod
    def evaluate(cls, tile: Tile, loss: Loss, needs_gradient: bool) -> Evaluation:
        """Return the sum of the losses of the anchors, and its gradients if needed."""
        if loss.needs_whole_rows:
            return _row_loss(tile, loss, needs_gradient)
        expectations, share = cls._expectations(tile, loss)
        with torch.set_grad_enabled(needs_gradient):
            means = [_leaf(mean.value, needs_gradient) for mean in expectations]
            positives = _leaf(tile.positives, needs_gradient)
            has_self_scores = isinstance(tile.self_scores, Tensor)
            if has_self_scores:
                tile = tile._replace(self_scores=_leaf(tile.self_scores, needs_gradient))
            n = len(means) - (share is not None)
            losses = cls.anchor_loss(means[:n], positives, tile, loss)
            if share is not None:
                losses = losses + share * (cls.attraction(positives)[0].mean(1) - means[-1])
            total = tile.total(losses)
        if not needs_gradient:
            return Evaluation(total, None)
        leaves = [*means, positives, *([tile.self_scores] if has_self_scores else [])]
        gradients = list(torch.autograd.grad(total, leaves, materialize_grads=True))
        d_self_scores = gradients.pop() if has_self_scores else None
        *d_means, d_positives = gradients
        d_scores = _sum([mean.pull(d) for mean, d in zip(expectations, d_means, strict=True)])
        return Evaluation(total.detach(), TileGradients(d_scores, d_positives, d_self_scores))

    @classmethod
    def _expectations(cls, tile: Tile, loss: Loss) -> tuple[list[Expectation], Tensor | None]:
        """Return the expectations of all estimators, then of the pull of candidates.

        Also returns their share of the pull, or None where no candidates are pulled.
        """
        first, *others = loss.estimators()
        further = [
            cls.expectation(
                tile._replace(scores=tile.scores.clone()), one, tile.without_group(tile.prior(one))
            )
            for one in others
        ]
        prior, weights = tile.push_and_pull(first)
        share = None
        if weights is not None:
            pulled, share = cls._pulled(tile, weights, loss)
            further.append(pulled)
        # The first may overwrite the scores, so it comes last.
        return [cls.expectation(tile, first, prior), *further], share

    @classmethod
    def _pulled(cls, tile: Tile, weights: Tensor, loss: Loss) -> tuple[Expectation, Tensor]:
        """Return the mean attraction of candidates by their pull, and their share of the pull."""
        weights = weights.scatter_(1, tile.excluded, 0.0)
        total = weights.sum(1)
        share = loss.pull_share(total, tile.positives.shape[1]).masked_fill(total == 0, 0.0)
        mass = total.masked_fill(total == 0, 1.0)
        value, slope = cls.attraction(tile.scores)
        mean = (weights * value).sum(1).div_(mass)
        pulls = weights if slope is None else weights.mul_(slope)
        return (
            Expectation(mean, lambda d_mean: ScaledMatrix(column(d_mean / mass), pulls)),
            share,
        )


def _row_loss(tile: Tile, loss: Loss, needs_gradient: bool) -> Evaluation:
    """Evaluate a loss that implements ``row_loss``, by autograd."""
    scores = tile.scores.scatter_(1, tile.excluded, -torch.inf)
    if tile.same_group is not None:
        scores.masked_fill_(tile.same_group, -torch.inf)
    with torch.set_grad_enabled(needs_gradient):
        leaves = _leaf(scores, needs_gradient), _leaf(tile.positives, needs_gradient)
        losses = loss.row_loss(*leaves, tile.same_class)
        if getattr(losses, "shape", None) != scores.shape[:1]:
            got = f"shape {tuple(losses.shape)}" if isinstance(losses, Tensor) else repr(losses)
            raise ValueError(
                f"{type(loss).__name__}.row_loss must return a loss for each anchor, a tensor of "
                f"shape ({len(scores)},), got {got}."
            )
        total = tile.total(losses)
    if not needs_gradient:
        return Evaluation(total, None)
    d_scores, d_positives = torch.autograd.grad(total, leaves, materialize_grads=True)
    d_scores = ScaledMatrix(torch.ones_like(d_scores[:, :1]), d_scores)
    return Evaluation(total.detach(), TileGradients(d_scores, d_positives, None))


def _leaf(values: Tensor, needs_gradient: bool) -> Tensor:
    return values.detach().requires_grad_(needs_gradient)


def _sum(gradients: Sequence[ScaledMatrix]) -> ScaledMatrix:
    """Return the sum of several scaled matrices as one; the first is overwritten."""
    first, *others = gradients
    if not others:
        return first
    total = first.matrix.mul_(first.scale)
    for other in others:
        total.addcmul_(other.scale, other.matrix)
    return ScaledMatrix(torch.ones_like(first.scale), total)


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
    terms = logits.sub_(column(top)).exp_()
    return Exponentials(top, terms.sum(1), terms)


def log_weights(tile: Tile, prior: Tensor | None, beta: float) -> Tensor:
    """Return log c + β s, shape (n_anchors, n_candidates); −∞ where excluded."""
    logits = tile.scores * beta if beta else torch.zeros_like(tile.scores)
    if prior is not None:
        logits += prior.log()
    return logits.scatter_(1, tile.excluded, -torch.inf)


def column(row_values: Tensor) -> Tensor:
    """Return one value per row as a column, shape (n, 1)."""
    return row_values[:, None]
