"""Checks of the arguments of `contrastive_loss` and of similarities: embeddings of one width."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import torch
from torch import Tensor

from .._checks import belongs_to_package

# Vectors; or mean directions and concentrations.
Embeddings: TypeAlias = "Tensor | tuple[Tensor, Tensor]"
# Rows whose scores are computed twice, by `pairs` and by `scores`.
_PAIRS_COMPARED = 8


def check_views(views: Sequence[Embeddings], queue: Embeddings | None, similarity: Any) -> None:
    """Raise TypeError or ValueError unless views and queue are embeddings of the same kind.

    Parameters
    ----------
    views : sequence of Tensor or of tuple of Tensor
    queue : Tensor, tuple of Tensor or None
    similarity : Similarity
        Says whether tuples are admissible.
    """
    if len(views) < 2:
        advice = ": pass z1, z2"
        if views and isinstance(views[0], (list, tuple)):
            advice = ": pass *views instead of views"
        elif getattr(views[0] if views else None, "ndim", 0) == 3:
            advice = ": pass *views, which takes the stacked views apart"
        raise ValueError(f"contrastive_loss needs at least two views, got {len(views)}{advice}.")
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
        raise TypeError(f"{name} must be a floating tensor of shape {shape}, got {got}.")
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


def in_one_dtype(embeddings: Sequence[Embeddings]) -> list[Any]:
    """Return the tensors in float64 if one of them is, else in float32."""
    flat = [t for z in embeddings for t in (z if isinstance(z, tuple) else (z,))]
    dtype = torch.float64 if any(t.dtype == torch.float64 for t in flat) else torch.float32
    return [
        tuple(t.to(dtype) for t in z) if isinstance(z, tuple) else z.to(dtype) for z in embeddings
    ]


def checking_returned(name: str, method: Callable[..., Any]) -> Callable[..., Tensor]:
    """Return a user's method, such as `embed`, that refuses to return what it must not."""

    @functools.wraps(method)
    def checked(self: Any, u: Any, *v: Any) -> Tensor:
        returned = method(self, u, *v)
        owner = f"{type(self).__name__}.{name}"
        if not isinstance(returned, Tensor):
            raise TypeError(f"{owner} must return a tensor, got {type(returned).__name__}.")
        if not isinstance(u, Tensor):  # directions and concentrations
            return returned
        shape = [len(u), *map(len, v)]
        if name != "scores":
            shape = list(torch.broadcast_shapes(*(z.shape[:-1] for z in (u, *v))))
        shape += [] if name in ("scores", "pairs") else returned.shape[-1:]
        if list(returned.shape) != shape:
            raise ValueError(
                f"{owner} must return a tensor of shape {shape}, got {list(returned.shape)}."
            )
        has_nan = name != "scores" and returned.isnan().any()
        if has_nan and all(z.isfinite().all() for z in (u, *v)):
            raise ValueError(f"{owner} returns NaN for finite numbers.")
        return returned

    return checked


def check_pairs(similarity: Any, u: Tensor, v: Tensor) -> None:
    """Raise ValueError if a user's similarity scores rows by `pairs` unlike by `scores`.

    Parameters
    ----------
    similarity : Similarity
    u, v : Tensor of shape (n, k) and (m, k)
        Embedded vectors, of which the first are scored.
    """
    if belongs_to_package(type(similarity)):
        return
    n = min(len(u), len(v), _PAIRS_COMPARED)
    # From the other end, so that no vector is scored with itself.
    u, v = u[:n].detach().float(), v.flip(0)[:n].detach().float()
    owner, pairs = type(similarity).__name__, similarity.pairs(u, v)
    diagonal = similarity.scores(u, v).diagonal()
    check_scores(similarity, diagonal, u, v, f"{owner}.scores returns")
    if not torch.allclose(pairs, diagonal, rtol=1e-2, atol=1e-3, equal_nan=True):
        raise ValueError(
            f"{owner}.pairs(u, v) must be the diagonal of scores(u, v), got "
            f"{pairs[:2].tolist()} and {diagonal[:2].tolist()}: override both."
        )


def check_scores(similarity: Any, scores: Tensor, u: Tensor, v: Tensor, what: str) -> None:
    """Raise ValueError for a score that is out of bounds, or NaN though all vectors are finite.

    Parameters
    ----------
    similarity : Similarity
        Its `bounds` are those of the scores.
    scores : Tensor of any shape
        Scores of the vectors.
    u, v : Tensor of shape (n, k) and (m, k)
        Embedded vectors.
    what : str
        The beginning of the message, such as "Own.scores returns".
    """
    low, high = similarity.bounds(u.shape[1])
    slack = 1e-3 * max([1.0, *(abs(end) for end in (low, high) if math.isfinite(end))])
    outside = scores[~((scores >= low - slack) & (scores <= high + slack))]
    if len(outside) and u.isfinite().all() and v.isfinite().all():
        raise ValueError(
            f"{what} a score of {float(outside[0]):g} for finite vectors, but "
            f"{type(similarity).__name__}.bounds says that scores are in [{low:g}, {high:g}]."
        )
