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
from typing import Any

import torch
from torch import Tensor

from . import _rows
from ._base import Expectations, Gradients
from ._buffers import Arena, buffers_on
from ._tile import LossInputs

# Up to so many scores of the batch, slopes are kept between the two walks and not computed twice.
_KEPT_SCORES = 2**22

# The more strips, the less is computed below the diagonal; the larger, the fewer calls.
_STRIPS = 4
_STRIP_ROWS = 256


def takes(inputs: LossInputs) -> bool:
    """Return whether the pairs of a contrast, each taken once, give its loss."""
    contrast, similarity = inputs.contrast, inputs.similarity
    return (
        contrast.is_symmetric
        and len(contrast.anchors) > 0
        and contrast.positives.is_floating_point()
        and similarity.bilinear
        and inputs.objective.is_pairwise(inputs.loss, similarity.bounds(contrast.anchors.shape[1]))
    )


def mean_loss(inputs: LossInputs, gradients: Gradients | None) -> Tensor:
    """Return the mean loss over all anchors, and fill in its gradients unless they are None."""
    contrast = inputs.contrast
    n = len(contrast.anchors)
    sums: list[Tensor] = []
    kept: list[tuple[slice, Expectations]] = []
    keeps = gradients is not None and n * n <= _KEPT_SCORES
    with buffers_on(contrast.anchors.device) as buffers:
        # The sums of all anchors: by symmetry, a strip adds to those that follow its rows, too.
        for rows, strip in _strips(inputs, buffers, keeps):
            sums = sums or [contrast.anchors.new_zeros(n) for _ in strip.sums]
            for total, part in zip(sums, strip.sums, strict=True):
                total[rows.start :] += part.value
            if keeps:
                kept.append((rows, strip))
        # The loss from the sums, and its gradient for them.
        anchors = inputs.anchors(slice(n), contrast.positives)
        total, found = inputs.objective.complete(
            strip, sums, anchors, inputs.loss, gradients is not None
        )
        if gradients is not None and found is not None:
            if gradients.self_scores is not None and found.self_scores is not None:
                torch.div(found.self_scores, n, out=gradients.self_scores)
            torch.div(found.positives, n, out=gradients.positives)
            gradients.anchors.zero_()
            # From the sums back to the vectors, by the strips again, computed anew if not kept.
            d_sums = [d_sum / n for d_sum in found.sums]
            for rows, strip in kept or _strips(inputs, buffers, keeps):
                _add_gradients(gradients.anchors, contrast.anchors, rows, strip, d_sums, buffers)
    return total / n


def _strips(
    inputs: LossInputs, buffers: Arena, keeps: bool
) -> Iterator[tuple[slice, Expectations]]:
    """Yield slices of the anchors, and their sums with themselves and all that follow.

    Unless `keeps`, each strip is overwritten by the next.
    """
    vectors = inputs.contrast.anchors
    n = len(vectors)
    n_rows = min(_rows.tile_rows(vectors, n), max(_STRIP_ROWS, n // _STRIPS))
    for start in range(0, n, n_rows):
        rows = slice(start, min(start + n_rows, n))
        with contextlib.nullcontext() if keeps else buffers.released():
            first, rest = vectors[rows], vectors[start:]
            out = buffers.empty((len(first), len(rest)), vectors.dtype)
            scores = torch.mm(first, rest.T, out=out)
            excluded = inputs.contrast.excluded[rows]
            if start:
                # The anchor itself replaces those before it, as it is excluded anyway.
                own = torch.arange(start, rows.stop, device=excluded.device)[:, None]
                excluded = torch.where(excluded < start, own, excluded) - start
            tile = inputs.tile(rows, scores, buffers, excluded, start)
            tile = tile._replace(is_upper_triangle=True)
            yield rows, inputs.objective.expectations(tile, inputs.loss)


def _add_gradients(
    d_vectors: Tensor,
    vectors: Tensor,
    rows: slice,
    strip: Expectations,
    d_sums: list[Tensor],
    buffers: Arena,
) -> None:
    """Add the gradients of a strip to those of the vectors."""
    d_scores: Any = None
    with buffers.released():
        for part, d_sum in zip(strip.sums, d_sums, strict=True):
            if part.slope is None:
                continue
            factors = d_sum if part.factor == 1 else d_sum * part.factor
            both = buffers.empty(part.slope.shape, part.slope.dtype)
            torch.add(factors[rows, None], factors[rows.start :], out=both).mul_(part.slope)
            d_scores = both if d_scores is None else d_scores.add_(both)
        d_vectors[rows].addmm_(d_scores, vectors[rows.start :])
        n_rows = rows.stop - rows.start
        d_vectors[rows.stop :].addmm_(d_scores[:, n_rows:].T, vectors[rows])
