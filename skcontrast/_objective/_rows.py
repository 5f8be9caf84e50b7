"""The walk over tiles of anchors: the mean loss of a contrast, and its gradient along with it.

A tile is a few anchors with all their candidates. Its scores, its loss and its gradient are
computed together and then forgotten, so that memory grows with the number of samples and not with
its square.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ..similarity import Similarity
from ._base import Gradients
from ._buffers import Arena, buffers_on
from ._contrast import Contrast
from ._pairwise import PairwiseScores, form_of
from ._tile import LossInputs

# Scores held at a time: large enough to keep the matrix products efficient, small enough to stay
# in cache. More threads share a larger tile, as each call has to wake them; a GPU takes far larger
# ones, as the time of each call is that of its launch.
_TILE_ELEMENTS = 2**22
_GPU_TILE_ELEMENTS = 2**24
_TILE_ROWS = 128
# Beyond, a matrix and its transpose take longer to add than the product that this saves.
_WHOLE_ROWS = 2048


def mean_loss(inputs: LossInputs, gradients: Gradients | None) -> Tensor:
    """Return the mean loss over all anchors, and fill in its gradients unless they are None."""
    contrast, needs_gradient = inputs.contrast, gradients is not None
    # Of few vectors with themselves, one tile has all: its gradients take a product less.
    is_small = contrast.anchors is contrast.candidates and len(contrast.anchors) <= _WHOLE_ROWS
    total = contrast.anchors.new_zeros(())
    # A tile of rows at a time: scores, loss and gradient, before the next overwrites them.
    for rows, pairwise, buffers in _scored(contrast, inputs.similarity, needs_gradient):
        tile = inputs.tile(rows, pairwise.values, buffers, contrast.excluded[rows])
        part, slopes = inputs.objective.evaluate(tile, inputs.loss, needs_gradient)
        total += part
        if gradients is not None and slopes is not None:
            d_scores = gradients.write(rows, slopes, contrast)
            pairwise.add_gradients(
                d_scores,
                gradients.anchors[rows],
                gradients.candidates,
                is_whole=is_small and len(tile.scores) == len(contrast.candidates),
            )
    return total / len(contrast.anchors)


def tiles(contrast: Contrast, similarity: Similarity) -> Iterator[tuple[slice, Tensor]]:
    """Yield slices of the anchors and their scores with all candidates.

    The scores of one tile are overwritten by the scores of the next.
    """
    for rows, pairwise, _ in _scored(contrast, similarity, needs_gradient=False):
        yield rows, pairwise.values


def _scored(
    contrast: Contrast, similarity: Similarity, needs_gradient: bool
) -> Iterator[tuple[slice, PairwiseScores, Arena]]:
    anchors, candidates = contrast.anchors, contrast.candidates
    n_rows = tile_rows(anchors, len(candidates))
    with buffers_on(anchors.device) as buffers:
        for start in range(0, len(anchors), n_rows):
            rows = slice(start, min(start + n_rows, len(anchors)))
            with buffers.released():
                out = buffers.empty((rows.stop - start, len(candidates)), anchors.dtype)
                # Of a contrast whose positives are places, excluded scores are read.
                is_read = not contrast.positives.is_floating_point()
                unused = None if is_read else contrast.excluded[rows]
                given = anchors[rows], candidates, similarity, needs_gradient, out, unused
                yield rows, form_of(similarity)(*given), buffers


def tile_rows(anchors: Tensor, n_candidates: int) -> int:
    """Return how many anchors make a tile."""
    on_cpu = anchors.device.type == "cpu"
    elements = torch.get_num_threads() * _TILE_ELEMENTS if on_cpu else _GPU_TILE_ELEMENTS
    return max(_TILE_ROWS, elements // max(1, n_candidates))
