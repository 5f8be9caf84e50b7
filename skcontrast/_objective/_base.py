"""Objectives: from the scores of anchors to their loss and its gradient.

An objective first takes sums over the candidates of each anchor, with the slope of each summand
written by hand (`Objective.expectation`), and then computes the loss of each anchor from these
sums and the positives (`Objective.anchor_loss`, differentiated by autograd; that is cheap, as
nothing in it has one entry per candidate). Where a loss pulls candidates too, a weighted mean of
their scores takes the place of a share of the positives.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import torch
from torch import Tensor

from ._contrast import Contrast
from ._tile import Anchors, Tile

if TYPE_CHECKING:
    from ..losses import Loss

ObjectiveName: TypeAlias = Literal["contrastive", "jensen-shannon"]


class RowScaled(NamedTuple):
    """A matrix given as a factor for each row, shape (n, 1), and a matrix, shape (n, m).

    The product is left to whoever can take it on smaller arrays.
    """

    scale: Tensor
    matrix: Tensor


class Sum(NamedTuple):
    """A sum over the candidates of each anchor, of a function of their scores.

    Attributes
    ----------
    value : Tensor of shape (n_anchors,)
        The sums.
    slope : Tensor of shape (n_anchors, n_candidates) or None
        The derivative of each summand with respect to its score, without `factor`; 0 where
        excluded. None where no gradient flows.
    factor : float
        The factor by which the slope is to be multiplied.
    """

    value: Tensor
    slope: Tensor | None
    factor: float = 1.0


class Expectation(NamedTuple):
    """A weighted mean over the candidates of each anchor, as a function of sums over them.

    Attributes
    ----------
    sums : list of Sum
        The sums.
    mean : callable
        Takes the values of the sums and returns the mean, or its logarithm, as the objective's
        `anchor_loss` expects it, shape (n_anchors,). Differentiable.
    """

    sums: list[Sum]
    mean: Callable[[Sequence[Tensor]], Tensor]

    @property
    def value(self) -> Tensor:
        """The mean."""
        return self.mean([part.value for part in self.sums])


class Expectations(NamedTuple):
    """The parts of the loss of an anchor besides its positives.

    Attributes
    ----------
    means : list of Expectation
        One for each of ``loss.estimators()``.
    pull : Expectation or None
        The mean attraction of candidates by their pull, if any are pulled; its second sum is that
        of their weights.
    """

    means: list[Expectation]
    pull: Expectation | None

    @property
    def sums(self) -> list[Sum]:
        """All sums, in order."""
        every = self.means if self.pull is None else [*self.means, self.pull]
        return [part for expectation in every for part in expectation.sums]


class AnchorGradients(NamedTuple):
    """The gradients of the sum of the losses of anchors.

    Attributes
    ----------
    sums : sequence of Tensor of shape (n_anchors,)
        With respect to the sums over the candidates.
    positives : Tensor of shape (n_anchors, n_positives)
        With respect to the scores of the positives.
    self_scores : Tensor of shape (n_anchors,) or None
        With respect to the scores of the anchors with themselves, where they are a tensor.
    """

    sums: Sequence[Tensor]
    positives: Tensor
    self_scores: Tensor | None = None


# Those with respect to the scores of the candidates of a tile, and the others.
TileGradients: TypeAlias = tuple[RowScaled, AnchorGradients]


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

    def write(self, rows: slice, part: TileGradients, contrast: Contrast) -> RowScaled:
        """Write the gradients of the inputs that belong to the anchors of a tile alone.

        Returns
        -------
        d_scores : RowScaled
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
            return RowScaled(scale, matrix)
        matrix = matrix.mul_(scale).scatter_(1, contrast.positives[rows], others.positives / n)
        return RowScaled(torch.ones_like(scale), matrix)


class Objective(NamedTuple):
    """A function φ of the score, and a loss made of means of φ.

    Attributes
    ----------
    attraction : callable
        Takes scores and returns what the loss raises for positives, and its slope (None: 1).
    expectation : callable
        Takes a tile, a loss and a prior, and returns the weighted mean of φ(s) over the
        candidates. The scores may be overwritten, and so may the prior: the factors c of the
        candidates, shape (n_anchors, n_candidates), or None where all are 1.
    anchor_loss : callable
        Takes the values of the expectations, one of shape (n,) for each of ``loss.estimators()``,
        the scores of the positives, shape (n, n_positives), the anchors and the loss without
        schedules, and returns the loss of each anchor, shape (n,).
    is_pairwise : callable
        Takes a loss and the bounds of scores, and returns whether each summand depends on its own
        pair alone, not on the rest of its row. Then the summands of a batch with itself are
        symmetric, and the sums may be taken in parts.
    """

    attraction: Callable[[Tensor], tuple[Tensor, Tensor | None]]
    expectation: Callable[[Tile, Loss, Tensor | None], Expectation]
    anchor_loss: Callable[[list[Tensor], Tensor, Anchors, Loss], Tensor]
    is_pairwise: Callable[[Loss, tuple[float, float]], bool] = lambda loss, bounds: False

    def evaluate(
        self, tile: Tile, loss: Loss, needs_gradient: bool
    ) -> tuple[Tensor, TileGradients | None]:
        """Return the sum of the losses of the anchors, and its gradients if needed."""
        if loss.overrides("row_loss"):
            return _row_loss(tile, loss, needs_gradient)
        expectations = self.expectations(tile, loss)
        # The chain rule in two steps: slopes of the loss by sums, and of sums by scores.
        values = [part.value for part in expectations.sums]
        total, gradients = self.complete(expectations, values, tile.anchors, loss, needs_gradient)
        if gradients is None:
            return total, None
        d_scores = _added(
            RowScaled((d_sum if part.factor == 1 else d_sum * part.factor)[:, None], part.slope)
            for part, d_sum in zip(expectations.sums, gradients.sums, strict=True)
            if part.slope is not None
        )
        return total, (d_scores, gradients)

    def expectations(self, tile: Tile, loss: Loss) -> Expectations:
        """Return the expectations of all estimators, and that of the pull of candidates."""
        first, *others = loss.estimators()
        further = [
            self.expectation(
                tile._replace(scores=tile.scores.clone()), one, tile.without_group(tile.prior(one))
            )
            for one in others
        ]
        prior, weights = tile.push_and_pull(first)
        pull = None if weights is None else self._pulled(tile, weights)
        # The first may overwrite the scores, so it comes last.
        return Expectations([self.expectation(tile, first, prior), *further], pull)

    def _pulled(self, tile: Tile, weights: Tensor) -> Expectation:
        """Return the mean attraction of candidates by their pull."""
        weights = weights.scatter_(1, tile.excluded, 0.0)
        value, slope = self.attraction(tile.scores)
        total, mass = tile.sum(torch.mul(weights, value, out=tile.empty())), tile.sum(weights)
        weights = weights if slope is None else weights.mul_(slope)
        sums = [Sum(total, weights), Sum(mass, None)]
        return Expectation(sums, lambda sums: sums[0] / or_one(sums[1]))

    def complete(
        self,
        expectations: Expectations,
        values: list[Tensor],
        anchors: Anchors,
        loss: Loss,
        needs_gradient: bool,
    ) -> tuple[Tensor, AnchorGradients | None]:
        """Return the total loss of anchors from the values of all sums, and its gradients."""
        leaves = [_leaf(value, needs_gradient) for value in (*values, anchors.positives)]
        anchors = anchors._replace(positives=leaves[-1])
        if isinstance(anchors.self_scores, Tensor):
            leaves.append(_leaf(anchors.self_scores, needs_gradient))
            anchors = anchors._replace(self_scores=leaves[-1])
        n = len(values)
        with torch.set_grad_enabled(needs_gradient):
            total = anchors.total(self._losses(expectations, leaves[:n], anchors, loss))
        if not needs_gradient:
            return total, None
        gradients = torch.autograd.grad(total, leaves, materialize_grads=True)
        return total.detach(), AnchorGradients(gradients[:n], *gradients[n:])

    def _losses(
        self, expectations: Expectations, sums: Sequence[Tensor], anchors: Anchors, loss: Loss
    ) -> Tensor:
        """Return the loss of each anchor from sums over its candidates, and from scores."""
        rest, positives = iter(sums), anchors.positives
        means = [one.mean([next(rest) for _ in one.sums]) for one in expectations.means]
        losses = self.anchor_loss(means, positives, anchors, loss)
        if expectations.pull is None:
            return losses
        weighted, mass = sums[-2], sums[-1].detach()  # of the pull, which comes last
        pulled = expectations.pull.mean([weighted, mass])
        own = self.attraction(positives)[0]
        return losses + _pull_share(loss, mass, own) * (own.mean(1) - pulled)


def _row_loss(tile: Tile, loss: Loss, needs_gradient: bool) -> tuple[Tensor, TileGradients | None]:
    """Evaluate a loss that implements ``row_loss``, by autograd."""
    # A copy, as a custom loss may keep what it gets.
    scores = tile.scores.scatter(1, tile.excluded, -torch.inf)
    with torch.set_grad_enabled(needs_gradient):
        leaves = _leaf(scores, needs_gradient), _leaf(tile.anchors.positives, needs_gradient)
        total = tile.anchors.total(_row_loss_of_groups(tile, loss, *leaves))
    if not needs_gradient:
        return total, None
    d_scores, d_positives = torch.autograd.grad(total, leaves, materialize_grads=True)
    scaled = RowScaled(torch.ones_like(d_scores[:, :1]), d_scores)
    return total.detach(), (scaled, AnchorGradients([], d_positives))


def _row_loss_of_groups(tile: Tile, loss: Loss, scores: Tensor, positives: Tensor) -> Tensor:
    """Return the loss of each row where candidates of the anchor's group are no negatives.

    If groups are positive, a loss that takes labels gets them as candidates of the anchor's class;
    beside any other they are pulled, as they are beside losses that pull nothing.
    """
    group, same_class, attracts = tile.same_group, tile.same_class, tile.group_role == "positive"
    if group is None:
        return loss.row_loss(scores, positives, *[same_class] * loss.takes_labels)
    # A loss that pulls classmates pulls the group as if it were a class.
    if loss.takes_labels and attracts:
        same_class = group if same_class is None else same_class | group
        return loss.row_loss(scores, positives, same_class)
    others = scores.masked_fill(group, -torch.inf)
    if loss.takes_labels:
        same_class = None if same_class is None else same_class & ~group
        return loss.row_loss(others, positives, same_class)
    losses = loss.row_loss(others, positives)
    if not attracts:
        return losses
    # Others get the pull beside their loss: part of that of the positives goes to the group.
    mass = group.sum(1).to(scores.dtype)
    pulled = scores.masked_fill(~group, 0.0).sum(1) / or_one(mass)
    return losses + _pull_share(loss, mass, positives) * (positives.mean(1) - pulled)


def _pull_share(loss: Loss, mass: Tensor, positives: Tensor) -> Tensor:
    """Return the share of the pull that goes to candidates of this mass, 0 where it is 0."""
    return loss.pull_share(mass, positives.shape[1]).masked_fill(mass == 0, 0.0)


def _leaf(values: Tensor, needs_gradient: bool) -> Tensor:
    return values.detach().requires_grad_(needs_gradient)


def or_one(mass: Tensor) -> Tensor:
    """Return numbers to divide by: 1 in the place of 0."""
    return mass.masked_fill(mass == 0, 1.0)


def _added(gradients: Iterable[RowScaled]) -> RowScaled:
    """Return the sum of several scaled matrices as one; the first is overwritten."""
    first, *others = gradients
    if not others:
        return first
    total = first.matrix.mul_(first.scale)
    for other in others:
        total.addcmul_(other.scale, other.matrix)
    return RowScaled(torch.ones_like(first.scale), total)
