"""What methods of custom classes return: type and shape, checked by the name of the class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor


def belongs_to_package(thing: Any) -> bool:
    """Return whether a class or function is defined in this package, not by a user."""
    return str(getattr(thing, "__module__", "")).partition(".")[0] == __package__.partition(".")[0]


def check_returned(owner: str, found: Any, shape: Sequence[int]) -> Tensor:
    """Return what a custom method has returned; raise unless it is a tensor of this shape."""
    is_tensor, shape = isinstance(found, Tensor), tuple(shape)
    if is_tensor and found.shape == shape:
        return found
    got = f"shape {tuple(found.shape)}" if is_tensor else type(found).__name__
    error = ValueError if is_tensor else TypeError
    raise error(f"{owner} must return a tensor of shape {shape}, got {got}.")


def are_rows(found: Any, *lengths: int) -> bool:
    """Return whether this is a floating tensor of two dimensions and one of these lengths."""
    is_floating = isinstance(found, Tensor) and found.is_floating_point()
    return is_floating and found.ndim == 2 and len(found) in lengths


def check_rows(owner: str, found: Any, n: int, samples: str) -> Tensor:
    """Return the output of a module; raise unless it is a floating tensor of shape (n, width)."""
    if are_rows(found, n) and found.shape[1]:
        return found
    raise ValueError(
        f"{owner} must map a batch of {n}, {samples}, to a floating tensor of shape "
        f"({n}, width), got {got(found)}."
    )


def got(found: Any) -> str:
    """Return what a custom method has returned, for messages."""
    if not isinstance(found, Tensor):
        return f"a {type(found).__name__}"
    return f"a tensor of shape {tuple(found.shape)} and dtype {found.dtype}"
