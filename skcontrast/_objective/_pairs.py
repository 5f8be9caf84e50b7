"""The walk over the pairs of a batch with itself, each taken once.

Where what a candidate adds to an anchor's sums is what the anchor adds to the candidate's, the
scores above the diagonal are enough. A strip is a few anchors with themselves and all that follow
them; sums over its rows and columns are parts of the sums of both. When these are complete, the
losses of all anchors follow at once, and then their gradients, strip by strip again: the factors
of the two directions of a pair are added, so that one matrix product does what else takes two.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor

from . import _rows
from ._arena import Arena, arena_on
from ._base import Expectations
from ._pairwise import pairwise_scores
from ._problem import Gradients, Problem

# Up to so many scores of the batch, slopes are kept between the two walks and not computed twice.
_KEPT_SCORES = 2**22

# The more strips, the less is computed below the diagonal; the larger, the fewer calls.
_STRIPS = 4
_STRIP_ROWS = 256


def takes(problem: Problem) -> bool:
    """Return whether the pairs of a contrast, each taken once, give its loss."""
    contrast, similarity = problem.contrast, problem.similarity
    return (
        contrast.is_symmetric
        and len(contrast.anchors) > 0
        and contrast.positives.is_floating_point()
        and similarity.bilinear
        and problem.objective.is_pairwise(problem.loss, similarity.limits(contrast.anchors))
    )


def mean_loss(problem: Problem, gradients: Gradients | None) -> Tensor:
    """Return the mean loss over all anchors, and fill in its gradients unless they are None."""
    contrast = problem.contrast
    n = len(contrast.anchors)
    sums: list[Tensor] = []
    kept: list[tuple[slice, Expectations]] = []
    some: Expectations | None = None
    keeps = gradients is not None and n * n <= _KEPT_SCORES
    with arena_on(contrast.anchors.device) as arena:
        for rows, strip in _strips(problem, arena, keeps):
            some = strip
            sums = sums or [contrast.anchors.new_zeros(n) for _ in strip.sums]
            for total, part in zip(sums, strip.sums, strict=True):
                total[rows.start :] += part.value
            if keeps:
                kept.append((rows, strip))
        anchors = problem.anchors(slice(n), contrast.positives)
        assert some is not None, "No anchors: see `takes`."
        total, found = problem.objective.complete(
            some.with_values(sums), anchors, problem.loss, gradients is not None
        )
        if gradients is not None and found is not None:
            if gradients.self_scores is not None and found.self_scores is not None:
                torch.div(found.self_scores, n, out=gradients.self_scores)
            torch.div(found.positives, n, out=gradients.positives)
            gradients.anchors.zero_()
            d_sums = [d_sum / n for d_sum in found.sums]
            for rows, strip in kept or _strips(problem, arena, keeps):
                _add_gradients(gradients.anchors, contrast.anchors, rows, strip, d_sums, arena)
    return total / n


def _strips(problem: Problem, arena: Arena, keeps: bool) -> Iterator[tuple[slice, Expectations]]:
    """Yield slices of the anchors, and their sums with themselves and all that follow.

    Unless `keeps`, each strip is overwritten by the next.
    """
    vectors = problem.contrast.anchors
    n = len(vectors)
    n_rows = min(_rows.tile_rows(vectors, n), max(_STRIP_ROWS, n // _STRIPS))
    for start in range(0, n, n_rows):
        rows = slice(start, min(start + n_rows, n))
        with contextlib.nullcontext() if keeps else arena.released():
            some, rest = vectors[rows], vectors[start:]
            out = arena.empty((len(some), len(rest)), vectors.dtype)
            scores = pairwise_scores(some, rest, problem.similarity, False, out)
            tile = problem.tile(rows, scores.values, arena, is_strip=True)
            yield rows, problem.objective.expectations(tile, problem.loss)


def _add_gradients(
    d_vectors: Tensor,
    vectors: Tensor,
    rows: slice,
    strip: Expectations,
    d_sums: list[Tensor],
    arena: Arena,
) -> None:
    """Add to the gradients of the vectors what a strip says."""
    d_scores = None
    with arena.released():
        for part, d_sum in zip(strip.sums, d_sums, strict=True):
            if part.slope is None:
                continue
            factors = d_sum if part.factor == 1 else d_sum * part.factor
            both = arena.empty(part.slope.shape, part.slope.dtype)
            torch.add(factors[rows, None], factors[rows.start :], out=both).mul_(part.slope)
            d_scores = both if d_scores is None else d_scores.add_(both)
        assert d_scores is not None
        d_vectors[rows].addmm_(d_scores, vectors[rows.start :])
        n_rows = rows.stop - rows.start
        d_vectors[rows.stop :].addmm_(d_scores[:, n_rows:].T, vectors[rows])
