"""Refuses losses that would silently compute something else than their author means."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from .._checks import Interval, belongs_to_package

if TYPE_CHECKING:
    from ._base import Loss

_LARGEST = sys.float_info.max
_AT_LEAST_0 = Interval(Real, 0, None, closed="left")
# A loss that overrides none of these is InfoNCE.
_HOOKS = (
    "coefficients",
    "hardness",
    "rank_weights",
    "class_weights",
    "push_and_pull",
    "log_expectation",
    "anchor_loss",
    "row_loss",
)
# Not used if `row_loss` is overridden.
_NOT_IN_ROWS = (*_HOOKS[:-1], "pull_share", "estimators")
_TOTALS = ("N", "free", "replaces N")


def check_class(cls: type[Loss], base: type[Loss]) -> None:
    """Raise TypeError for a subclass of `base` with a method that is never called."""

    def place(method: str) -> int:
        return next(k for k, parent in enumerate(cls.__mro__) if method in vars(parent))

    def overrides(method: str) -> bool:
        return getattr(cls, method) is not getattr(base, method)

    if overrides("row_loss"):
        unused = [name for name in _NOT_IN_ROWS if place(name) <= place("row_loss")]
        if unused:
            raise TypeError(
                f"{cls.__name__} overrides row_loss, so its {unused[0]} would never be called."
            )
    elif overrides("estimators") and not overrides("anchor_loss"):
        raise TypeError(
            f"{cls.__name__} overrides estimators, whose means only anchor_loss reads: override "
            "anchor_loss too."
        )


def check_overrides(cls: type[Loss], base: type[Loss]) -> None:
    """Raise TypeError for a subclass that is InfoNCE because it overrides nothing."""
    is_ours = belongs_to_package(cls)
    if is_ours or any(getattr(cls, name) is not getattr(base, name) for name in _HOOKS):
        return
    own = [
        name
        for parent in cls.__mro__[: cls.__mro__.index(base)]
        for name, value in vars(parent).items()
        if callable(value) and not name.startswith("_")
    ]
    never = f"; it has {', '.join(own)}, which would never be called" if own else ""
    raise TypeError(
        f"{cls.__name__} overrides nothing of Loss ({', '.join(_HOOKS)}){never}. See 'Your own "
        "pieces' in the user guide."
    )


def check_numbers_of(loss: Loss) -> None:
    """Raise ValueError unless β ≥ 0, a > 0 and b ≥ 0, and the sum of weights has a known name."""
    cls, name = type(loss), type(loss).__name__
    if loss.sum_of_weights not in _TOTALS:
        raise ValueError(
            f"{name}.sum_of_weights must be one of {_TOTALS}, got {loss.sum_of_weights!r}."
        )
    if not belongs_to_package(cls.hardness):
        beta = loss.hardness()
        if not _AT_LEAST_0.is_satisfied_by(beta):
            raise ValueError(f"{name}.hardness must return a number β ≥ 0, got {beta!r}.")
    if not belongs_to_package(cls.coefficients):
        pair = loss.coefficients()
        is_pair = isinstance(pair, tuple) and len(pair) == 2
        if not (is_pair and pair[0] != 0 and all(map(_AT_LEAST_0.is_satisfied_by, pair))):
            raise ValueError(
                f"{name}.coefficients must return two numbers, a > 0 and b ≥ 0, got {pair!r}."
            )


def check_result(
    loss: Loss, method: str, result: Any, shape: Sequence[int], *, is_weight: bool = True
) -> Tensor:
    """Return what a method of a loss has returned, after a check if a user wrote it.

    Parameters
    ----------
    loss : Loss
        The loss.
    method : str
        The name of its method.
    result : object
        What it returned.
    shape : sequence of int
        The shape that it must have.
    is_weight : bool, default=True
        Whether its entries must be at least 0.
    """
    if belongs_to_package(getattr(type(loss), method)):
        return result
    owner, shape = f"{type(loss).__name__}.{method}", tuple(shape)
    is_tensor = isinstance(result, Tensor)
    if not is_tensor or result.shape != shape:
        got = f"shape {tuple(result.shape)}" if is_tensor else type(result).__name__
        error = ValueError if is_tensor else TypeError
        raise error(f"{owner} must return a tensor of shape {shape}, got {got}.")
    if is_weight:
        least, most = float(result.min()), float(result.max())
        limit, range_ = (1, "in [0, 1]") if method == "pull_share" else (_LARGEST, "≥ 0, finite")
        if not 0 <= least <= most <= limit:
            raise ValueError(f"{owner} must return numbers {range_}, got {least:g} to {most:g}.")
    return result


def check_finite(
    loss: Loss, methods: Sequence[str], found: Sequence[Tensor], given: Sequence[Tensor]
) -> None:
    """Raise ValueError if a user's loss or its gradient is not finite, though all scores are.

    Parameters
    ----------
    loss : Loss
        The loss.
    methods : sequence of str
        Its methods on which the losses depend; the first that a user wrote is blamed.
    found, given : sequence of Tensor
        Losses and gradients, and the scores that they are of.
    """
    blamed = [name for name in methods if not belongs_to_package(getattr(type(loss), name))]
    if not blamed or all(part.isfinite().all() for part in found):
        return
    if all(part.isfinite().all() for part in given):
        raise ValueError(
            f"{type(loss).__name__}.{blamed[0]} and its gradient must be finite for finite "
            "scores, got NaN or infinity. A row_loss gets −inf for excluded candidates."
        )


def check_direction(loss: Loss, scores: Tensor, positives: Tensor) -> None:
    """Raise ValueError for a `row_loss` that is less for close candidates than close positives."""
    if loss.takes_labels:
        return  # it may pull all candidates, as those of the anchor's class
    low, positives = torch.where(scores.isinf(), scores, 0.0), torch.zeros_like(positives)
    even = loss.row_loss(low, positives)
    close_positives = loss.row_loss(low, positives + 1)
    close_candidates = loss.row_loss(low + 1, positives)
    tolerance = 1e-4 * (1 + even.abs())
    if (close_positives > even + tolerance).any() or (close_candidates < even - tolerance).any():
        raise ValueError(
            f"{type(loss).__name__}.row_loss must fall as positives score higher, and candidates "
            "lower, but it grows. It is called with (scores, positives)."
        )
