"""Validation of custom similarities, and of the scores in a fit."""

from __future__ import annotations

import copy
import math
from typing import Any

import torch
from torch import Tensor

from .._checks import POSITIVE_INT, check_returned, validated
from .._runtime import trial
from ..schedules._numbers import check_hyperparameters
from ._base import Similarity


@validated(similarity=Similarity, width=POSITIVE_INT)
def check_similarity(similarity: Similarity, width: int = 64) -> None:
    """Check that the methods of a custom similarity are consistent.

    The methods are called on synthetic vectors of several lengths, some of which are nearly equal
    or nearly opposite. Call this in a test of your class: ``fit`` does not.

    Parameters
    ----------
    similarity : Similarity
        An instance with numbers, not schedules, as hyperparameters. The package's own pass.
    width : int, default=64
        The number of outputs of the network.

    Raises
    ------
    TypeError, ValueError
        If a method returns anything but a tensor of the right shape, NaN for finite vectors, or a
        score outside of ``bounds``; if it changes its arguments; if a vector or a score depends on
        other vectors, or has no finite gradient; if opposite vectors score higher than equal ones;
        or if ``pairs`` is not the diagonal of ``scores``.

    See Also
    --------
    skcontrast.losses.check_loss : The same for a loss.
    skcontrast.frameworks.check_framework : The same for a framework.

    Examples
    --------
    >>> from skcontrast.similarity import Similarity, check_similarity
    >>> class Narrow(Similarity):
    ...     def bounds(self, width):
    ...         return -1.0, 1.0
    ...
    ...     def embed(self, z):
    ...         return z
    >>> check_similarity(Narrow())
    Traceback (most recent call last):
    ...
    ValueError: Narrow.scores returns a score of ... but Narrow.bounds is [-1, 1].
    """
    check_hyperparameters(similarity)
    similarity, owner = copy.copy(similarity), type(similarity).__name__
    with trial(torch.device("cpu")):
        # Six pairs of directions: equal, opposite or independent; short and long.
        synthetic = torch.arange(1.0, 1 + 12 * width).sin().view(2, 6, width)
        z, noise = torch.nn.functional.normalize(synthetic, dim=-1)
        signs, lengths = torch.tensor([[1.0, -1, 0, 1, -1, 0], [0.1, 0.1, 1, 1, 3, 3]])[..., None]
        z = torch.stack([z, signs * z + (1.1 - signs.abs()) * noise]) * lengths
        u, v = _returned(similarity, "embed", z)
        _returned(similarity, "bank_vectors", z)
        scores = _returned(similarity, "scores", u, v)
        check_scores(similarity, scores, u, v, f"{owner}.scores returns")
        pairs, diagonal = _returned(similarity, "pairs", u, v), scores.diagonal()
        # The same for fewer vectors, with a gradient; scores of equal and of opposite vectors.
        some = _returned(similarity, "embed", z[0, :4].clone().requires_grad_())
        some_scores = _returned(similarity, "scores", some, v[:3])
        equal, opposite = (similarity.pairs(some, similarity.embed(w[0, :4])) for w in (z, -z))
    if not some_scores.requires_grad:
        raise ValueError(f"{owner} must return scores that autograd can differentiate.")
    leaf = some.detach().requires_grad_()
    (slope,) = torch.autograd.grad(similarity.scores(leaf, leaf).sum(), leaf)
    if not slope.isfinite().all():
        raise ValueError(
            f"{owner}.scores must have a finite gradient, also for equal vectors: write a "
            "distance as (squares + 1e-12).sqrt()."
        )
    for what, together, alone in (("embed", u[:4], some), ("scores", scores[:4, :3], some_scores)):
        if not _are_close(together, alone):
            raise ValueError(
                f"{owner}.{what} must not depend on the other vectors, but its output "
                "changes with them."
            )
    if not similarity.n_extra and (equal < opposite - 1e-3).all():
        raise ValueError(
            f"{owner} scores a vector and its opposite higher than a vector and itself: negate "
            "a distance."
        )
    if not _are_close(pairs, diagonal):
        raise ValueError(
            f"{owner}.pairs(u, v) must be the diagonal of scores(u, v), got "
            f"{pairs[:2].tolist()} and {diagonal[:2].tolist()}: override both."
        )


def _are_close(actual: Tensor, expected: Tensor) -> bool:
    return torch.allclose(actual, expected, rtol=1e-2, atol=1e-3, equal_nan=True)


def _returned(similarity: Similarity, name: str, *vectors: Tensor) -> Tensor:
    """Return the validated output of a method."""
    owner, before = f"{type(similarity).__name__}.{name}", [z.clone() for z in vectors]
    output: Any = getattr(similarity, name)(*vectors)
    shape = [len(z) for z in vectors] if name == "scores" else list(vectors[0].shape[:-1])
    if name in ("embed", "bank_vectors"):
        shape += getattr(output, "shape", [])[-1:] or vectors[0].shape[-1:]
    check_returned(owner, output, shape)
    if not all(map(torch.equal, vectors, before)):
        raise ValueError(f"{owner} changes its arguments in place.")
    if name != "scores" and output.isnan().any():
        raise ValueError(f"{owner} returns NaN for finite numbers.")
    return output


def check_scores(similarity: Any, scores: Tensor, u: Tensor, v: Tensor, what: str) -> None:
    """Raise ValueError for scores of finite vectors that are out of bounds or NaN.

    Parameters
    ----------
    similarity : Similarity
        Its `bounds` are checked.
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
            f"{type(similarity).__name__}.bounds is [{low:g}, {high:g}]."
        )
