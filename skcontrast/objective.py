r"""From scores to a loss: the estimate of an expectation over true negatives, and its gradient.

Every loss of the package estimates, for a function :math:`\varphi` of the score,

.. math:: \hat E^-[\varphi] = a \cdot \frac1N \sum_j w_j\, \varphi(s_j)
    - b \cdot \frac1M \sum_m \varphi(s^+_m), \qquad w_j \propto e^{c_j + \beta s_j}

and gives (c, β, a, b). This module does the rest, once for all of them: the contrastive objective
(:math:`\varphi = \exp`) and the Jensen–Shannon objective (:math:`\varphi` = softplus). Anchors are
walked in tiles: the scores of a tile, its loss and its gradient are computed together and
forgotten, so that memory grows with the number of samples and not with its square.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from ._sklearn_compat import check_component, validate_parameters
from .losses import InfoNCE, Loss
from .schedules import Schedule
from .similarity import Cosine, Similarity

__all__ = ["OBJECTIVES", "Contrast", "contrastive_loss", "in_batch", "objective_value"]

# Scores held at a time: large enough to keep the matrix products efficient, small enough to stay
# in cache.
_TILE_ELEMENTS = 2**20
_TILE_ROWS = 128


class Contrast(NamedTuple):
    """Who is contrasted with whom.

    Attributes
    ----------
    anchors : Tensor of shape (n_anchors, k)
        Vectors as ``similarity.embed`` returns them.
    candidates : Tensor of shape (n_candidates, k)
        The same for the candidate negatives.
    positives : Tensor of shape (n_anchors, n_positives)
        Scores of each anchor's positives.
    excluded : Tensor of shape (n_anchors, n_excluded), dtype int64
        For each anchor, the candidates that are no negatives of it: itself, its own views.
    """

    anchors: Tensor
    candidates: Tensor
    positives: Tensor
    excluded: Tensor


def in_batch(views, similarity):
    """Contrast every view of a batch with all views of the other samples.

    Parameters
    ----------
    views : Tensor of shape (n_views, n, k)
        Embedded views; ``views[v, i]`` is view v of sample i.
    similarity : Similarity
        Scores the positives.

    Returns
    -------
    contrast : Contrast
        With n_views · n anchors, n_views − 1 positives each, N = n_views · (n − 1).
    """
    n_views, n = views.shape[:2]
    score = {
        (v, w): similarity.pairs(views[v], views[w]) for v in range(n_views) for w in range(v)
    }
    positives = [
        torch.stack([score[max(v, w), min(v, w)] for w in range(n_views) if w != v], dim=1)
        for v in range(n_views)
    ]
    flat = views.flatten(0, 1)
    own = torch.arange(n, device=views.device)[:, None] + n * torch.arange(
        n_views, device=views.device
    )
    return Contrast(flat, flat, torch.cat(positives), own.repeat(n_views, 1))


def contrastive_loss(*views, loss=None, similarity=None, queue=None):
    r"""Contrastive loss of two or more views of the same samples, differentiable.

    For people with their own training loop. The loss is the mean over the anchors of

    .. math:: L_i = -\log \frac{e^{s_i^+}}{e^{s_i^+} + N \hat E_i^-}

    where the estimate :math:`\hat E^-_i` of the mean of :math:`e^s` over true negatives is what
    `loss` stands for. With more than two views, the mean over an anchor's positives stands
    outside the logarithm. Loss and gradient are computed together, in tiles of anchors: memory
    grows with n, not with its square.

    Parameters
    ----------
    *views : Tensor of shape (n, d)
        Embeddings of the same n samples, at least two tensors, floating. They need not be
        normalised: the similarity does that. Computed in float32, or float64 if they are.
    loss : Loss, default=None
        How the expectation over true negatives is estimated; None is :class:`InfoNCE`.
    similarity : Similarity, default=None
        The score of two embeddings; None is ``Cosine()``.
    queue : Tensor of shape (m, d), default=None
        Embeddings that serve as the negatives, as in MoCo. Then the first view gives the anchors
        and the others their positives. Without a queue, every view is an anchor and its negatives
        are the views of the other samples.

    Returns
    -------
    value : Tensor of shape ()
        The mean loss over the anchors.

    Raises
    ------
    ValueError
        If shapes disagree, there are fewer than 2 samples and no queue, or a hyperparameter lies
        outside its range or is a schedule.
    TypeError
        If views are not floating tensors, or a class is passed where an instance is due.

    Examples
    --------
    >>> import torch
    >>> from skcontrast import contrastive_loss
    >>> from skcontrast.losses import HCL
    >>> from skcontrast.similarity import Cosine
    >>> z = torch.randn(2, 64, 16, generator=torch.Generator().manual_seed(0)).requires_grad_()
    >>> value = contrastive_loss(z[0], z[1], loss=HCL(tau_plus=0.1), similarity=Cosine(0.5))
    >>> value.backward()
    >>> z.grad.shape
    torch.Size([2, 64, 16])
    """
    loss = check_component(loss, Loss, owner="contrastive_loss", parameter="loss", default=InfoNCE)
    similarity = check_component(
        similarity, Similarity, owner="contrastive_loss", parameter="similarity", default=Cosine
    )
    for component in (loss, similarity):
        _check_numbers(component)
    _check_views(views, queue)
    embedded = [similarity.embed(_at_least_float32(z)) for z in views]
    if queue is None:
        contrast = in_batch(torch.stack(embedded), similarity)
    else:
        positives = torch.stack([similarity.pairs(embedded[0], key) for key in embedded[1:]], 1)
        none = torch.empty(len(positives), 0, dtype=torch.int64, device=positives.device)
        keys = similarity.embed(_at_least_float32(queue))
        contrast = Contrast(embedded[0], keys, positives, none)
    return objective_value(contrast, loss, similarity)


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
    # Under autocast the products would be taken in half precision, which 1/temperature magnifies.
    with torch.autocast(contrast.anchors.device.type, enabled=False):
        return _TiledObjective.apply(*contrast, loss, similarity, OBJECTIVES[objective])


class _TiledObjective(torch.autograd.Function):
    """Mean loss over anchors; the gradient is computed along with it, a tile at a time."""

    @staticmethod
    def forward(ctx, anchors, candidates, positives, excluded, loss, similarity, objective):
        wants = any(ctx.needs_input_grad[:3])
        grads = [torch.zeros_like(t) for t in (anchors, candidates, positives)] if wants else None
        total = anchors.new_zeros(())
        rows = max(_TILE_ROWS, _TILE_ELEMENTS // max(1, len(candidates)))
        for start in range(0, len(anchors), rows):
            tile = slice(start, start + rows)
            pairwise = _PairwiseScores(anchors[tile], candidates, similarity, wants)
            scores = pairwise.values
            scores.scatter_(1, excluded[tile], -torch.inf)
            n_negatives = len(candidates) - excluded.shape[1]
            mean, pull = objective.expectation(scores, n_negatives, loss)
            value, d_mean, d_positives = _anchor_gradients(
                objective, mean, positives[tile], n_negatives, loss, similarity.lower_bound, wants
            )
            total += value
            if wants:
                grads[2][tile] = d_positives
                pairwise.add_gradients(pull(d_mean), grads[0][tile], grads[1])
        ctx.grads = [g.div_(len(anchors)) for g in grads] if wants else None
        return total / len(anchors)

    @staticmethod
    @once_differentiable
    def backward(ctx, grad):
        return (*(g * grad for g in ctx.grads), None, None, None, None)


class _PairwiseScores:
    """The scores of one tile, and their gradient with respect to anchors and candidates."""

    def __init__(self, anchors, candidates, similarity, wants):
        self.anchors, self.candidates = anchors, candidates
        if similarity.bilinear:
            self.values = anchors @ candidates.T
            return
        with torch.set_grad_enabled(wants):
            self.leaves = [t.detach().requires_grad_(wants) for t in (anchors, candidates)]
            self.scores = similarity.scores(*self.leaves)
        self.values = self.scores.detach().clone()

    def add_gradients(self, gradient, d_anchors, d_candidates):
        """Add the pull-back of `gradient`, given as (row scale, matrix), to the gradients."""
        scale, matrix = gradient
        if hasattr(self, "leaves"):
            pulled = torch.autograd.grad(self.scores, self.leaves, scale * matrix)
            d_anchors += pulled[0]
            d_candidates += pulled[1]
            return
        # The rows are scaled on the thin side of the products, not over the whole tile.
        d_anchors.addcmul_(scale, matrix @ self.candidates)
        d_candidates.addmm_(matrix.T, scale * self.anchors)


def _anchor_gradients(objective, mean, positives, n_negatives, loss, lower_bound, wants):
    """Sum the losses of the anchors; differentiate with respect to mean and positive scores."""
    with torch.set_grad_enabled(wants):
        mean = mean.detach().requires_grad_(wants)
        positives = positives.detach().requires_grad_(wants)
        value = objective.anchor_loss(mean, positives, n_negatives, loss, lower_bound).sum()
    if not wants:
        return value, None, None
    return value.detach(), *torch.autograd.grad(value, (mean, positives))


class _Contrastive:
    """φ = exp, −log(P / (P + N·E)). The mean over negatives is held as its logarithm."""

    @staticmethod
    def expectation(scores, n_negatives, loss):
        """Return log mean_j w_j e^{s_j}, and a function that pulls a gradient back to s.

        With W_j ∝ e^{c_j + β s_j} and V_j ∝ e^{c_j + (1 + β) s_j}, both of sum 1 over j, the
        derivative is (1 + β) V_j − β W_j, and V_j where the weights are detached.
        """
        prior, beta = loss.log_prior(scores), loss.beta
        if not loss.normalize_weights:
            top, mass, v = _softmax_parts(scores if prior is None else scores.add_(prior))
            return top + mass.log() - math.log(n_negatives), lambda g: (_column(g / mass), v)
        if prior is None and beta == 0:
            top, mass, v = _softmax_parts(scores)
            return top + mass.log() - math.log(n_negatives), lambda g: (_column(g / mass), v)
        tilted = (
            scores * beta
            if beta
            else torch.zeros_like(scores).masked_fill_(scores == -torch.inf, -torch.inf)
        )
        if prior is not None:
            tilted += prior
        top_v, mass_v, v = _softmax_parts(scores.add_(tilted))
        top_w, mass_w, w = _softmax_parts(tilted)
        mean = top_v + mass_v.log() - top_w - mass_w.log()
        if beta == 0 or loss.detach_weights:
            return mean, lambda g: (_column(g / mass_v), v)
        return mean, lambda g: (
            _column(g / mass_v * (1 + beta)),
            v.addcmul_(w, _column(-beta / (1 + beta) * mass_v / mass_w)),
        )

    @staticmethod
    def anchor_loss(log_mean, positives, n_negatives, loss, lower_bound):
        """Return the loss of each anchor, shape (n,), from log mean and positive scores."""
        log_negative = _log_debiased(log_mean, positives, *loss.coefficients(), lower_bound)
        excess = math.log(n_negatives) + log_negative[:, None] - positives
        return torch.logaddexp(excess, torch.zeros_like(excess)).mean(1)


class _JensenShannon:
    """φ = softplus, L = softplus(−s⁺) + E."""

    @staticmethod
    def expectation(scores, n_negatives, loss):
        """Return mean_j w_j softplus(s_j), and a function that pulls a gradient back to s."""
        prior, beta = loss.log_prior(scores), loss.beta
        tilted = (
            scores * beta
            if beta
            else torch.zeros_like(scores).masked_fill_(scores == -torch.inf, -torch.inf)
        )
        if prior is not None:
            tilted += prior
        if loss.normalize_weights:
            weights = torch.softmax(tilted, dim=1)
        else:
            weights = tilted.exp_().div_(n_negatives)
        phi = F.softplus(scores)
        mean = (weights * phi).sum(1)

        def pull(g):
            slope = torch.sigmoid(scores)
            if beta and not loss.detach_weights:
                slope += beta * (phi - _column(mean))
            return _column(g), weights * slope

        return mean, pull

    @staticmethod
    def anchor_loss(mean, positives, n_negatives, loss, lower_bound):
        """Return the loss of each anchor, shape (n,)."""
        a, b = loss.coefficients()
        negative = (a * mean - b * F.softplus(positives).mean(1)).clamp_min(0)
        return F.softplus(-positives).mean(1) + negative


OBJECTIVES = {"contrastive": _Contrastive, "jensen-shannon": _JensenShannon}


def _softmax_parts(logits):
    """Return row maximum, row sum and e^{logits − maximum} (in place); −inf gives exactly 0."""
    top = logits.amax(1)
    e = logits.sub_(_column(top)).exp_()
    return top, e.sum(1), e


def _log_debiased(log_mean, positives, a, b, lower_bound):
    """Return log max(a · mean − b · mean_m e^{s⁺_m}, e^{lower bound}), shape (n,)."""
    if b == 0:
        return log_mean + math.log(a)
    top = torch.maximum(log_mean, positives.amax(1)).detach()
    estimate = a * (log_mean - top).exp() - b * (positives - _column(top)).exp().mean(1)
    above = estimate > (lower_bound - top).exp()
    log_estimate = torch.where(above, estimate, torch.ones_like(estimate)).log() + top
    return torch.where(above, log_estimate, torch.full_like(log_estimate, lower_bound))


def _column(row_values):
    return row_values[:, None]


def _at_least_float32(z):
    return z if z.dtype == torch.float64 else z.float()


def _check_numbers(component):
    for name, value in component.get_params(deep=False).items():
        if isinstance(value, Schedule):
            raise ValueError(
                f"The {name!r} parameter of {type(component).__name__} is a schedule; outside of "
                "fit it needs a number: pass skcontrast.schedules.at_progress(obj, progress)."
            )
    validate_parameters(component)


def _check_views(views, queue):
    if len(views) < 2:
        raise ValueError(f"contrastive_loss needs at least two views, got {len(views)}.")
    names = [f"view {k + 1}" for k in range(len(views))]
    tensors = list(views)
    if queue is not None:
        names.append("queue")
        tensors.append(queue)
    for name, tensor in zip(names, tensors, strict=True):
        if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
            got = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
            raise TypeError(f"{name} must be a floating tensor of shape (n, d), got {got}.")
        if tensor.ndim != 2 or tensor.shape[1] != tensors[0].shape[-1]:
            raise ValueError(
                f"{name} must have shape (n, {tensors[0].shape[-1]}), got {tuple(tensor.shape)}."
            )
        if name != "queue" and len(tensor) != len(tensors[0]):
            raise ValueError(
                f"All views must hold the same samples: {name} has {len(tensor)} rows, "
                f"view 1 has {len(tensors[0])}."
            )
    if queue is None and len(views[0]) < 2:
        raise ValueError("Without a queue, at least 2 samples are needed: one has no negatives.")
    if min(len(t) for t in tensors) == 0:
        raise ValueError("views and queue must hold at least one row.")
