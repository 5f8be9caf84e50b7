"""``check_loss``: a check of custom losses, to be called in tests."""

import copy
from typing import Any

import torch
from torch import Tensor

from .._checks import (
    NON_NEGATIVE,
    POSITIVE_INT,
    StrOptions,
    check_argument,
    check_returned,
    validated,
)
from .._runtime import guarded, seeded_rng
from ..schedules._numbers import check_hyperparameters
from ._base import Loss
from ._rows import Rows
from ._tape import Tape

_TOTALS = [StrOptions({"N", "free", "replaces N"})]
# Synthetic anchors, whose scores are between −2 and 2.
_N_ANCHORS, _TOP = 6, 2.0


@guarded()
@validated(loss=Loss, n_candidates=POSITIVE_INT, n_positives=POSITIVE_INT)
def check_loss(loss: Loss, n_candidates: int = 254, n_positives: int = 1) -> None:
    """Check that a custom loss computes what its methods promise.

    Its methods are called on synthetic scores of 6 anchors. Call this in a test of your class:
    ``fit`` and :func:`skcontrast.contrastive_loss` do not.

    Parameters
    ----------
    loss : Loss
        An instance whose hyperparameters are numbers, not schedules.
    n_candidates : int, default=254
        The number N of candidates of each anchor.
    n_positives : int, default=1
        The number of positives of each anchor, which is the number of views less one.

    Raises
    ------
    TypeError, ValueError
        If a method returns anything but a tensor of the right shape; weights that are negative or
        not finite; a loss or a gradient that is not finite; if the loss of an anchor has no
        gradient, depends on other anchors or on the order of its candidates, does not fall as its
        positives score higher, or falls as all candidates do; or if a custom class overrides
        nothing, as with a misspelled method.

    See Also
    --------
    skcontrast.similarity.check_similarity : The same for a similarity.
    skcontrast.frameworks.check_framework : The same for a framework.

    Examples
    --------
    >>> from skcontrast.losses import Loss, check_loss
    >>> class Margin(Loss):
    ...     def losses(self, rows):
    ...         return (1 + rows.scores.amax(1) - rows.positives.mean(1)).clamp_min(0)
    >>> check_loss(Margin())
    >>> class Upwards(Loss):
    ...     def losses(self, rows):
    ...         return rows.positives.mean(1) - rows.scores.amax(1)
    >>> check_loss(Upwards())
    Traceback (most recent call last):
    ...
    ValueError: Upwards.losses must fall as positives score higher, but it grows.
    """
    check_hyperparameters(loss)
    loss = copy.copy(loss)
    loss.check_overrides(strictly=True)
    _check_numbers(loss)
    numbers = torch.arange(_N_ANCHORS * (n_candidates + n_positives)).sin().view(_N_ANCHORS, -1)
    # The anchors have different means, and so have halves of their scores.
    scores, positives = (numbers * torch.linspace(_TOP, _TOP / 2, _N_ANCHORS)[:, None]).split(
        [n_candidates, n_positives], 1
    )
    columns = torch.arange(n_candidates) + torch.arange(_N_ANCHORS)[:, None]
    same_class = columns % 3 == 0
    name = type(loss).__name__
    if loss.overrides("rank_weights"):
        ranks = torch.arange(1, n_candidates + 1, dtype=torch.float64)
        weights = loss.rank_weights(ranks, n_candidates)
        _check_weights(f"{name}.rank_weights", weights, (n_candidates,))
    if loss.overrides("class_weights"):
        _check_weights(f"{name}.class_weights", loss.class_weights(same_class), scores.shape)
    all_losses = _losses(loss, scores, positives, same_class)
    flipped = _losses(loss, scores.flip(1), positives, same_class.flip(1))
    fewer = _losses(loss, scores[:-1], positives[:-1], same_class[:-1])
    for other in (flipped, fewer):
        if not torch.allclose(other, all_losses[: len(other)], rtol=1e-3, atol=1e-4):
            raise ValueError(
                f"{name}.losses must compute each loss from its own row alone, and must not "
                "depend on the order of candidates."
            )
    if loss.pulls:  # positives are in its denominator, too, and candidates are pulled
        return
    higher = _losses(loss, scores, positives + 1, same_class)
    nearer = _losses(loss, scores + 1, positives, same_class)
    slack = 1e-4 * (1 + all_losses.abs())
    if (higher > all_losses + slack).any() or not (higher < all_losses).any():
        does = "grows" if (higher > all_losses).any() else "is constant"
        raise ValueError(f"{name}.losses must fall as positives score higher, but it {does}.")
    if (nearer < all_losses - slack).any():
        raise ValueError(
            f"{name}.losses must not fall as all candidates score higher. If it pulls some, set "
            "pulls = True in the class."
        )


def _check_numbers(loss: Loss) -> None:
    """Raise ValueError unless β ≥ 0, a > 0 and b ≥ 0."""
    name, beta, pair = type(loss).__name__, loss.hardness(), loss.coefficients()
    check_argument(name, "sum_of_weights", loss.sum_of_weights, _TOTALS)
    if not NON_NEGATIVE[0].is_satisfied_by(beta):
        raise ValueError(f"{name}.hardness must return a number β ≥ 0, got {beta!r}.")
    is_pair = isinstance(pair, tuple) and len(pair) == 2
    if not (is_pair and pair[0] != 0 and all(map(NON_NEGATIVE[0].is_satisfied_by, pair))):
        raise ValueError(
            f"{name}.coefficients must return two numbers, a > 0 and b ≥ 0, got {pair!r}."
        )


def _check_weights(owner: str, weights: Any, shape: tuple[int, ...]) -> None:
    weights = check_returned(owner, weights, shape).double()
    low, high = weights.min().item(), weights.max().item()
    if not 0 <= low <= high <= torch.finfo(weights.dtype).max:
        raise ValueError(f"{owner} must return finite numbers ≥ 0, got {low:g} to {high:g}.")
    if high == 0 and "rank" in owner:
        raise ValueError(f"{owner} must not return 0 for all ranks.")


def _losses(loss: Loss, scores: Tensor, positives: Tensor, same_class: Tensor) -> Tensor:
    """Return the losses of synthetic anchors, after a check of losses and gradients."""
    owner, n = f"{type(loss).__name__}.losses", len(scores)
    with seeded_rng(0, scores.device):  # the same random numbers in each call
        # An excluded column, like the anchor itself in a batch.
        padded = torch.cat([torch.zeros(n, 1), scores], 1)
        excluded = torch.zeros(n, 1, dtype=torch.int64)
        tape = Tape(padded, positives, excluded, bounds=(-_TOP - 1, _TOP + 1))
        same_class = torch.cat([excluded.bool(), same_class], 1)
        rows = Rows(tape, same_class if loss.requires_y else None)
        losses = check_returned(owner, loss.losses(rows), (n,))
        if not losses.requires_grad:
            raise ValueError(f"{owner} must return a differentiable tensor: leave out detach.")
        results = [losses.detach(), *tape.gradients(losses.sum())[:2]]
    if not all(bool(tensor.isfinite().all()) for tensor in results):
        raise ValueError(
            f"{owner} and its gradient must be finite for finite scores, got NaN or infinity. "
            "Excluded candidates score −inf."
        )
    return results[0]
