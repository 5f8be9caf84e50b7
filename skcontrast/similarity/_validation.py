"""Checks of the arguments of `contrastive_loss` and of similarities: embeddings of one width."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

# Vectors; or mean directions and concentrations.
Embeddings: TypeAlias = "Tensor | tuple[Tensor, Tensor]"


def check_views(
    views: Sequence[Embeddings], queue: Embeddings | None, similarity: Any, least: int = 2
) -> None:
    """Raise TypeError or ValueError unless views and queue are embeddings of the same kind.

    Parameters
    ----------
    views : sequence of Tensor or of tuple of Tensor
    queue : Tensor, tuple of Tensor or None
    similarity : Similarity
        Says whether tuples are admissible.
    least : int, default=2
        The fewest views.
    """
    if len(views) < least:
        advice = ": pass z1, z2"
        if views and isinstance(views[0], (list, tuple)):
            advice = ": pass *views instead of views"
        elif getattr(views[0] if views else None, "ndim", 0) == 3:
            advice = ": pass *views, which takes the stacked views apart"
        raise ValueError(f"At least {least} views are needed, got {len(views)}{advice}.")
    named = {f"view {k + 1}": view for k, view in enumerate(views)}
    if queue is not None:
        named["queue"] = queue
    tensors = check_kinds(named, similarity)
    n = len(tensors["view 1"])
    for name, tensor in tensors.items():
        if name != "queue" and len(tensor) != n:
            raise ValueError(
                f"All views must hold the same samples: {name} has {len(tensor)} rows, "
                f"view 1 has {n}."
            )
    if queue is None and n < 2:
        raise ValueError("Without a queue, at least 2 samples are needed: one has no negatives.")
    if min(map(len, tensors.values())) == 0:
        raise ValueError("views and queue must hold at least one row.")


def check_kinds(named: Mapping[str, Embeddings], similarity: Any) -> dict[str, Tensor]:
    """Check types and widths, and return the tensors, or the directions of tuples.

    Parameters
    ----------
    named : dict of str to Tensor or tuple of Tensor
        By the names to be used in messages.
    similarity : Similarity
        Says whether tuples are admissible.
    """
    tensors: dict[str, Any] = dict(named)
    if any(isinstance(z, tuple) for z in named.values()):
        tensors = _directions(tensors, similarity)
    names, first = ", ".join(tensors), next(iter(tensors.values()))
    for name, z in tensors.items():
        _check_tensor(name, z)
        if z.device != first.device:
            raise ValueError(
                f"{names} must be on one device: {name} is on {z.device}, the first on "
                f"{first.device}."
            )
        if z.ndim != 2 or z.shape[1] != first.shape[1]:
            width = "d" if z is first else first.shape[1]
            raise ValueError(f"{name} must have shape (n, {width}), got {tuple(z.shape)}.")
    if not first.shape[1]:
        raise ValueError(f"{names} must have at least one column, got shape (n, 0).")
    return tensors


def _check_tensor(name: str, tensor: Any, shape: str = "(n, d)") -> None:
    if not isinstance(tensor, Tensor) or not tensor.is_floating_point():
        got = tensor.dtype if isinstance(tensor, Tensor) else type(tensor).__name__
        advice = ""
        if hasattr(tensor, "get_params"):  # a loss or a similarity
            role = "similarity" if hasattr(tensor, "scores") else "loss"
            got, advice = repr(tensor), f" Pass it by name, {role}={tensor!r}."
        raise TypeError(f"{name} must be a floating tensor of shape {shape}, got {got}.{advice}")
    if tensor.is_nested or tensor.layout != torch.strided:
        got = "a nested one" if tensor.is_nested else f"layout {tensor.layout}"
        raise TypeError(f"{name} must be a dense tensor of shape {shape}, got {got}.")
    if tensor.is_meta:
        raise ValueError(f"{name} must hold data, got a tensor on the device 'meta'.")


def _directions(named: dict[str, Any], similarity: Any) -> dict[str, Any]:
    """Check the concentrations of tuples, and return the mean directions."""
    if not similarity.n_extra:
        raise TypeError(
            "Tuples of directions and concentrations need similarity=VonMisesFisher(), not "
            f"{similarity!r}."
        )
    for name, view in named.items():
        if not isinstance(view, tuple) or len(view) != 2:
            raise TypeError(
                f"{', '.join(named)} must all be tuples (mu, kappa), or all be tensors: {name} is "
                f"{f'a tuple of {len(view)}' if isinstance(view, tuple) else type(view).__name__}."
            )
        mu, kappa = view
        _check_tensor(f"The directions of {name}", mu)
        _check_tensor(f"The concentrations of {name}", kappa, "(n,)")
        if kappa.shape != mu.shape[:1]:
            raise ValueError(
                f"The concentrations of {name} must have shape {tuple(mu.shape[:1])}, got "
                f"{tuple(kappa.shape)}."
            )
        similarity.check_concentrations(kappa, name)
    return {name: mu for name, (mu, _) in named.items()}


def mapped(function: Callable[[Any], Any], z: Any) -> Any:
    """Return what a function makes of an array or tensor, or of each part of a tuple of them."""
    return tuple(map(function, z)) if isinstance(z, tuple) else function(z)


def in_one_dtype(embeddings: Sequence[Embeddings]) -> list[Any]:
    """Return the tensors in float64 if one of them is, else in float32."""
    flat = [t for z in embeddings for t in (z if isinstance(z, tuple) else (z,))]
    dtype = torch.float64 if any(t.dtype == torch.float64 for t in flat) else torch.float32
    return [mapped(lambda tensor: tensor.to(dtype), z) for z in embeddings]
