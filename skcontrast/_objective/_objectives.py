"""From the scores of some anchors to their loss, and the gradient with respect to the scores."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ._rank_weights import weights_by_rank

# e^{score} stays a normal float32 up to here, also summed over all candidates; beyond, the maximum
# of each row is taken out first.
_LARGEST_EXPONENT = 60.0
# So many numbers from 1 to 2 may be multiplied in float32.
_FACTORS = 64


class Tile(NamedTuple):
    """Some anchors with the scores of all candidates; those of excluded ones mean nothing.

    What evaluates a tile may overwrite its scores.
    """

    scores: Tensor
    excluded: Tensor
    positives: Tensor
    weights: Tensor | None
    same_class: Tensor | None
    bounds: tuple
    highest: Tensor | float | None = None

    @property
    def n_negatives(self):
        """Return N."""
        return self.scores.shape[1] - self.excluded.shape[1]

    def total(self, losses):
        """Return the weighted sum of the losses of the anchors."""
        return losses.sum() if self.weights is None else losses @ self.weights.to(losses.dtype)

    def prior(self, loss):
        """Return the weights that a loss gives by rank or by label, or None where all are 1."""
        if loss.requires_y and (by_class := loss.class_weights(self.same_class)) is not None:
            return by_class.to(self.scores.dtype)
        if loss.weighs_ranks:
            return weights_by_rank(self.scores, self.excluded, loss)
        return None


class _Objective:
    """From a tile to its loss, and the gradients with respect to scores and positives."""

    @staticmethod
    def check(loss):
        """Raise ValueError if the objective has no such loss."""

    @classmethod
    def evaluate(cls, tile, loss, wants):
        """Return the sum of the losses, (row scale, matrix) of d/d scores, and other gradients.

        These are those with respect to the positives and, where it is a tensor, `highest`.
        """
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
            if isinstance(tile.highest, Tensor):
                tile = tile._replace(highest=tile.highest.detach().requires_grad_(wants))
            n = len(parts)
            value = tile.total(cls.anchor_loss(leaves[:n], leaves[n], tile, loss))
        if not wants:
            return value, None, [None, None]
        if isinstance(tile.highest, Tensor):
            leaves.append(tile.highest)
        grads = torch.autograd.grad(value, leaves, allow_unused=True)
        pulled = [pull(d_mean) for (_, pull), d_mean in zip(parts, grads, strict=False)]
        return value.detach(), _sum(pulled), grads[n:]

    @classmethod
    def _by_autograd(cls, tile, loss, wants):
        scores = tile.scores.scatter_(1, tile.excluded, -torch.inf)
        with torch.set_grad_enabled(wants):
            leaves = [t.detach().requires_grad_(wants) for t in (scores, tile.positives)]
            value = tile.total(loss.row_loss(*leaves, tile.same_class))
        if not wants:
            return value, None, [None]
        d_scores, d_positives = torch.autograd.grad(value, leaves)
        return value.detach(), (torch.ones_like(d_scores[:, :1]), d_scores), [d_positives]


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
        bounds = tile.bounds if tile.highest is None else (tile.bounds[0], tile.highest)
        return loss.anchor_loss(log_means, positives, tile.n_negatives, bounds)


class _JensenShannon(_Objective):
    """φ = softplus, L = softplus(−s⁺) + E."""

    @staticmethod
    def check(loss):
        """Refuse what is more than an estimate of an expectation over true negatives."""
        if loss.needs_whole_rows or loss.corrects_positives:
            raise ValueError(
                f"{type(loss).__name__} is more than an estimate over negatives and has no "
                "Jensen–Shannon form: pass framework=InfoGraph(objective='contrastive')."
            )

    @staticmethod
    def expectation(tile, loss):
        """Return mean_j w_j softplus(s_j), and a function that pulls a gradient back to s."""
        scores, beta, prior = tile.scores, loss.hardness(), tile.prior(loss)
        if prior is None and beta == 0:
            total = _softplus_sum(scores, tile.excluded)
            slope = scores.sigmoid_().scatter_(1, tile.excluded, 0.0)
            n = tile.n_negatives
            return total / n, lambda g: (_column(g / n), slope)
        logits = _tilted(tile, prior, beta)
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
    if beta:
        logits = _tilted(tile, prior, beta)
        parts_v = _softmax_parts(tile.scores.add_(logits))
        return *parts_v, *_softmax_parts(logits)
    if prior is None:
        parts_v = _softmax_parts(tile.scores.scatter_(1, tile.excluded, -torch.inf))
        return *parts_v, 0.0, torch.full_like(parts_v[1], tile.n_negatives), None
    prior = prior.scatter_(1, tile.excluded, 0.0)
    mass_w = prior.sum(1)
    return *_softmax_parts(tile.scores.add_(prior.log_())), 0.0, mass_w, None


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


def _softplus_sum(scores, excluded):
    """Return the sum of softplus(s) over each row without its excluded columns, shape (n,).

    softplus(s) = max(s, 0) + log(1 + e^{−|s|}), and the logarithms of several columns are that of
    their product, which lies in [1, 2^k].
    """
    positive = scores.clamp_min(0).scatter_(1, excluded, 0.0)
    factors = scores.abs().neg_().exp_().scatter_(1, excluded, 0.0).add_(1)
    products = [part.prod(1) for part in factors.split(_FACTORS, dim=1)]
    return positive.sum(1).add_(torch.stack(products, 1).log_().sum(1))


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
