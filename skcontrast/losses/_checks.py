"""Checks of custom losses, and of a loss with a similarity."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .._checks import (
    NON_NEGATIVE,
    POSITIVE_INT,
    StrOptions,
    belongs_to_package,
    check_argument,
    check_returned,
    checked,
)
from .._runtime._modes import trial
from ..schedules._numbers import check_numbers
from ..similarity import Similarity
from ._base import Loss

_LARGEST = torch.finfo(torch.float64).max
_TOTALS = [StrOptions({"N", "free", "replaces N"})]
# Anchors that are made; their scores are between −2 and 2.
_N_ANCHORS, _TOP = 6, 2.0
# The fewest candidates: each anchor has some of its class and some of others.
_N_CANDIDATES = 8


@checked(loss=Loss, n_candidates=POSITIVE_INT, n_positives=POSITIVE_INT)
def check_loss(loss: Loss, n_candidates: int = 254, n_positives: int = 1) -> None:
    """Check that a custom loss computes what its methods promise.

    Each method that you have overridden is called on synthetic scores of 6 anchors. Call this in a
    test of your class: ``fit`` and :func:`skcontrast.contrastive_loss` do not.

    Parameters
    ----------
    loss : Loss
        An instance with numbers, not schedules, as hyperparameters. Those of the package pass.
    n_candidates : int, default=254
        The number N of candidates of each anchor. At least 8 are made.
    n_positives : int, default=1
        The number of positives of each anchor, which is that of the views less one.

    Raises
    ------
    TypeError, ValueError
        If a method returns anything but a tensor of the shape that it must have; weights that are
        negative, not finite, or 0 for all ranks; a loss or a gradient that is not finite, though
        all scores are; if the loss of an anchor has no gradient, or depends on other anchors; or
        if a ``row_loss`` without labels does not fall as positives score higher and candidates
        lower.

    See Also
    --------
    skcontrast.similarity.check_similarity : The same for a similarity.
    skcontrast.frameworks.check_framework : The same for a framework.

    Examples
    --------
    >>> from skcontrast.losses import Loss, check_loss
    >>> class Margin(Loss):
    ...     def row_loss(self, scores, positives):
    ...         return (1 + scores.amax(1) - positives.mean(1)).clamp_min(0)
    >>> check_loss(Margin())
    >>> class Upwards(Loss):
    ...     def row_loss(self, scores, positives):
    ...         return positives.mean(1) - scores.amax(1)
    >>> check_loss(Upwards())
    Traceback (most recent call last):
    ...
    ValueError: Upwards.row_loss must fall as positives score higher, and candidates lower, but...
    """
    check_numbers(loss)
    loss, n, m = copy.copy(loss), max(n_candidates, _N_CANDIDATES), n_positives
    with trial(torch.device("cpu")):
        made = torch.arange(_N_ANCHORS * (n + m)).sin().view(_N_ANCHORS, -1)
        made = made * torch.linspace(_TOP, _TOP / 2, _N_ANCHORS)[:, None]  # whose means differ
        scores, positives = made.split([n, m], 1)
        places = torch.arange(n) + torch.arange(_N_ANCHORS)[:, None]
        same_class = places % 3 == 0
        if loss.overrides("row_loss"):
            _check_rows(loss, scores, positives, same_class)
            return
        _check_numbers_of(loss)
        _check_weights(loss, scores, same_class, m)
        _check_anchors(loss, scores, positives)


def check_pieces(
    loss: Loss, similarity: Similarity, contrast: Any, objective: str = "contrastive"
) -> None:
    """Raise ValueError if a loss cannot be computed of the scores of a similarity.

    It may have no Jensen–Shannon form, or be floored at the lowest score, which the similarity
    does not give.
    """
    name = type(loss).__name__
    if objective == "jensen-shannon" and not loss.is_estimate:
        raise ValueError(
            f"{name} is more than an estimate over negatives and has no Jensen–Shannon form: "
            "pass framework=InfoGraph(objective='contrastive')."
        )
    is_floored = not loss.overrides("row_loss") and loss.coefficients()[1] > 0
    is_asked = is_floored and objective == "contrastive"
    if is_asked and type(similarity).bounds is Similarity.bounds:
        raise ValueError(
            f"{name} is floored at the lowest score, which {type(similarity).__name__} does not "
            "give: add def bounds(self, width), which returns the lowest and the highest score, "
            "-math.inf and math.inf if there is none."
        )


def _check_numbers_of(loss: Loss) -> None:
    """Raise ValueError unless β ≥ 0, a > 0 and b ≥ 0, and the sum of weights has a known name."""
    name, beta, pair = type(loss).__name__, loss.hardness(), loss.coefficients()
    check_argument(name, "sum_of_weights", loss.sum_of_weights, _TOTALS)
    check_argument(name, "detach_weights", loss.detach_weights, bool)
    if not NON_NEGATIVE[0].is_satisfied_by(beta):
        raise ValueError(f"{name}.hardness must return a number β ≥ 0, got {beta!r}.")
    is_pair = isinstance(pair, tuple) and len(pair) == 2
    if not (is_pair and pair[0] != 0 and all(map(NON_NEGATIVE[0].is_satisfied_by, pair))):
        raise ValueError(
            f"{name}.coefficients must return two numbers, a > 0 and b ≥ 0, got {pair!r}."
        )


def _check_weights(loss: Loss, scores: Tensor, same_class: Tensor, n_positives: int) -> None:
    """Check the weights by class and by rank, and those that push and pull."""
    n, weights = scores.shape[1], torch.ones_like(scores)
    if loss.overrides("class_weights") and (found := loss.class_weights(same_class)) is not None:
        weights = weights * _weights(loss, "class_weights", found, scores.shape)
    if loss.overrides("rank_weights"):
        ranks = torch.arange(1, n + 1, dtype=torch.float64, device=scores.device)
        found = _weights(loss, "rank_weights", loss.rank_weights(ranks, n), ranks.shape)
        weights = weights * (by_rank := found.to(scores.dtype))
        is_ours = belongs_to_package(type(loss).rank_weights)
        if not (is_ours or loss.overrides("push_and_pull") or 0 < by_rank.sum() < torch.inf):
            raise ValueError(
                f"{type(loss).__name__}.rank_weights must return numbers whose sum is > 0 and "
                f"finite in {by_rank.dtype}."
            )
    if loss.overrides("push_and_pull"):
        push, pull = loss.push_and_pull(weights)
        for found in [pull] if push is None else [push, pull]:
            _weights(loss, "push_and_pull", found, scores.shape)
    mass = weights.sum(1) + 1
    _weights(loss, "pull_share", loss.pull_share(mass, n_positives), mass.shape)


def _weights(loss: Loss, method: str, found: Any, shape: Sequence[int]) -> Tensor:
    """Return the weights that a method has returned, checked."""
    owner = f"{type(loss).__name__}.{method}"
    found = check_returned(owner, found, shape)
    least, most = found.min().item(), found.max().item()
    limit, range_ = (1, "in [0, 1]") if method == "pull_share" else (_LARGEST, "≥ 0, finite")
    if not 0 <= least <= most <= limit:
        raise ValueError(f"{owner} must return numbers {range_}, got {least:g} to {most:g}.")
    return found


def _check_anchors(loss: Loss, scores: Tensor, positives: Tensor) -> None:
    """Check the estimate of the expectation, and the loss of each anchor from estimates."""
    n, top = scores.shape[1], torch.full_like(scores[:, 0], _TOP)
    given = [part.clone().requires_grad_() for part in (scores[:, 0], positives)]
    k = len(loss.estimators())
    methods = {
        "log_expectation": lambda mean, s: loss.log_expectation(mean, s, -_TOP),
        "anchor_loss": lambda mean, s: loss.anchor_loss([mean] * k, s, n, (-_TOP, top[: len(s)])),
    }
    for method, function in methods.items():
        if not belongs_to_package(getattr(type(loss), method)):
            _check_differentiable(loss, method, function, given)


def _check_rows(loss: Loss, scores: Tensor, positives: Tensor, same_class: Tensor) -> None:
    """Check a loss of whole rows, of which some candidates are excluded."""
    own = torch.arange(_N_ANCHORS, device=scores.device)[:, None]
    scores = scores.scatter(1, own, -torch.inf).requires_grad_()
    positives = positives.clone().requires_grad_()
    known = [same_class.scatter(1, own, False)] if loss.requires_y else []

    def row_loss(scores: Tensor, positives: Tensor, same_class: Tensor | None = None) -> Tensor:
        return loss.row_loss(scores, positives, *[same_class] * loss.takes_labels)

    _check_differentiable(loss, "row_loss", row_loss, [scores, positives, *known])
    if loss.takes_labels:
        return  # it may pull all candidates, as those of the anchor's class
    low, positives = torch.where(scores.isinf(), scores, 0.0), torch.zeros_like(positives)
    even = loss.row_loss(low, positives)
    tolerance = 1e-4 * (1 + even.abs())
    grows = loss.row_loss(low, positives + 1) > even + tolerance
    if (grows | (loss.row_loss(low + 1, positives) < even - tolerance)).any():
        raise ValueError(
            f"{type(loss).__name__}.row_loss must fall as positives score higher, and candidates "
            "lower, but it grows. It is called with (scores, positives)."
        )


def _check_differentiable(
    loss: Loss, method: str, function: Callable[..., Any], given: list[Tensor]
) -> None:
    """Check a loss of each anchor, of its own row alone, and its gradient for what is given."""
    owner, device = f"{type(loss).__name__}.{method}", given[0].device
    copies = [part.clone() for part in given]
    with trial(device):  # from the same random numbers, if it draws any
        losses = check_returned(owner, function(*copies), (_N_ANCHORS,))
        draws_none = torch.equal(losses, function(*copies))
    if not all(map(torch.equal, copies, given)):
        raise ValueError(f"{owner} changes its arguments in place.")
    if not losses.requires_grad:
        raise ValueError(f"{owner} must return what autograd can differentiate, without detach.")
    found = [losses, *torch.autograd.grad(losses.sum(), given[:2], materialize_grads=True)]
    if not all(bool(part.isfinite().all()) for part in found):
        raise ValueError(
            f"{owner} and its gradient must be finite for finite scores, got NaN or infinity. A "
            "row_loss gets −inf for excluded candidates."
        )
    scores, positives, *known = (part[:-1] for part in given)
    if draws_none:
        scores, *known = (part.flip([*range(1, part.ndim)]) for part in (scores, *known))
    with trial(device):
        others = function(scores, positives, *known)
    if not torch.allclose(others, losses[:-1], rtol=1e-3, atol=1e-4):
        raise ValueError(
            f"{owner} must compute each loss from its own row alone, of candidates in any order."
        )
