"""Weights by rank: from a function of the rank to a weight for each candidate of each anchor.

The rank of a candidate is its place in the order of the scores, the farthest first. The function
of the rank is evaluated once for each of the N ranks. Candidates of equal score share the mean of
the weights at their ranks, so that it does not matter which of them comes first, nor whether
rounding makes two scores equal or tells equal ones apart.

One sort of integers, with a score in their upper bits and its column in the others, gives the
order. Those of 32 bits are sorted fastest; where they cannot tell scores apart that float32 can,
they have 64.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from ._buffers import Arena

if TYPE_CHECKING:
    from ..losses import Loss

# More columns leave too few of 32 bits to the score.
_SHORT_COLUMNS = 2**13
# If a larger share of the scores in 32 bits belongs to crowds of so many equal ones or more, all
# have 64: a class lies so close together that 32 do not order it.
_CROWDED, _CROWD = 0.001, 5
# Scores of which a thread finds the ranks at a time: what that needs stays in its cache.
_BLOCK_ELEMENTS = 2**18
# So many bytes are sorted within the registers of a processor; some sort longer rows, which takes
# other instructions, several times as slowly, and others twice as fast as piece by piece.
_PIECE_BYTES = 2**11


def weights_by_rank(
    scores: Tensor,
    excluded: Tensor,
    loss: Loss,
    buffers: Arena | None = None,
    tables: dict[int, Tensor] | None = None,
) -> Tensor:
    """Return the weights of all candidates, shape (n_anchors, n).

    Parameters
    ----------
    scores : Tensor of shape (n_anchors, n)
        Finite scores. Those of excluded candidates are overwritten.
    excluded : Tensor of shape (n_anchors, n_excluded), dtype int64
        Columns that are left out; their weights are meaningless.
    loss : Loss
        Its ``rank_weights`` gives the weights at ranks 1 to N.
    buffers : Arena, default=None
        Where the weights, and what is needed to find them, are held; None is fresh memory.
    tables : dict, default=None
        Weights by rank of earlier calls with the same N, by the ids of their losses; filled in.
    """
    buffers = Arena(scores.device) if buffers is None else buffers
    weights = buffers.empty(scores.shape, scores.dtype)
    tables = {} if tables is None else tables
    if id(loss) not in tables:
        tables[id(loss)] = _table(loss, scores.shape[1] - excluded.shape[1], scores)
    # Excluded candidates are the first in the order, before rank 1.
    by_place = torch.nn.functional.pad(tables[id(loss)], (excluded.shape[1], 0))
    # On CPUs, as many anchors at a time as the caches of all threads hold.
    n_rows = len(scores)
    if scores.device.type == "cpu":
        n_rows = _BLOCK_ELEMENTS * torch.get_num_threads() // max(1, scores.shape[1])
    parts = [array.split(max(1, n_rows)) for array in (scores, excluded, weights)]
    for subset, excluded_of_subset, out in zip(*parts, strict=True):
        with buffers.released():
            _place(subset, excluded_of_subset, by_place, buffers, out)
    return weights


def _table(loss: Loss, n_candidates: int, like: Tensor) -> Tensor:
    """Return the weights at ranks 1, 2, …, N in the dtype of the scores."""
    ranks = torch.arange(1, n_candidates + 1, dtype=torch.float64, device=like.device)
    weights = loss.rank_weights(ranks, n_candidates).double()
    # Subnormal numbers would slow each product down.
    vanishing = weights < weights.max() * torch.finfo(like.dtype).tiny
    return weights.masked_fill(vanishing, 0.0).to(like.dtype)


def _place(
    scores: Tensor, excluded: Tensor, by_place: Tensor, buffers: Arena, out: Tensor
) -> None:
    """Write the weight of each candidate by its place in the order; excluded ones come first."""
    is_short = scores.dtype == torch.float32 and scores.shape[1] <= _SHORT_COLUMNS
    keys, spare = _sorted_keys(scores, excluded, buffers, is_short)
    ties = _ties(keys, spare, buffers)
    n = _CROWD - 2  # the last of a crowd of equal scores is no tie, and its first begins n others
    if is_short and (ties[n:] == ties[:-n] + n).sum() > _CROWDED * keys.numel():
        keys, spare = _sorted_keys(scores, excluded, buffers, False)
        ties = _ties(keys, spare, buffers)
    torch.bitwise_and(keys, 2 ** _column_bits(keys) - 1, out=spare)
    order = buffers.empty(keys.shape, torch.int64).copy_(spare)
    out.scatter_(1, order, by_place.expand_as(out))
    if len(ties):
        _share(ties, order, by_place, out)


def _column_bits(keys: Tensor) -> int:
    return (keys.shape[1] - 1).bit_length()


def _sorted_keys(
    scores: Tensor, excluded: Tensor, buffers: Arena, is_short: bool
) -> tuple[Tensor, Tensor]:
    """Return for each anchor sorted integers that hold scores and columns, and room for as many.

    The score, as one of many levels from the lowest to the highest of the anchor, is in the upper
    bits; the column, which is not negative, in the others. Both have the shape of the scores.
    """
    dtype, real = (torch.int32, torch.float32) if is_short else (torch.int64, torch.float64)
    n, bits, limits = scores.shape[1], _column_bits(scores), torch.iinfo(dtype)
    n_pieces, length = 1, n
    if scores.device.type == "cpu" and n * dtype.itemsize > _PIECE_BYTES and _pieces_are_faster():
        n_pieces, length = _pieces(n, dtype.itemsize)
    padded, room = (buffers.empty((len(scores), n_pieces * length), dtype) for _ in range(2))
    high = scores.scatter_(1, excluded, -torch.inf).amax(1, keepdim=True)
    low = scores.scatter_(1, excluded, high.expand_as(excluded)).amin(1, keepdim=True)
    low, high = low.to(real) / 2, high.to(real) / 2  # whose difference is finite
    # Levels are exact in a number with so many digits, also after rounding.
    top = 2.0 ** min(limits.bits - 1 - bits, 22 if is_short else 51) - 4
    scale = top / (high - low).clamp_min(4 * top * torch.finfo(real).tiny)
    levels = room.view(real)[:, :n]
    torch.sub(scores, low + high, out=levels).mul_(scale)
    keys = padded[:, :n].copy_(levels).mul_(2**bits)
    keys.add_(torch.arange(n, dtype=dtype, device=keys.device))
    keys.scatter_(1, excluded, excluded.to(dtype) + limits.min)
    if scores.device.type != "cpu":
        return keys.sort(1).values, room
    padded[:, n:] = limits.max
    _sort(padded.numpy(), n_pieces, room.numpy())
    return keys, room[:, :n]


def _ties(keys: Tensor, spare: Tensor, buffers: Arena) -> Tensor:
    """Return the flat places of sorted keys whose score is that of the next."""
    torch.bitwise_right_shift(keys, _column_bits(keys), out=spare)
    is_tie = buffers.empty((len(keys), keys.shape[1] - 1), torch.bool)
    if keys.device.type == "cpu":  # where numpy is faster
        level, found = spare.numpy(), is_tie.numpy()
        ties = torch.from_numpy(np.flatnonzero(np.equal(level[:, 1:], level[:, :-1], out=found)))
    else:
        ties = torch.eq(spare[:, 1:], spare[:, :-1], out=is_tie).view(-1).nonzero().view(-1)
    return ties + ties // max(1, is_tie.shape[1])


def _pieces(n: int, itemsize: int) -> tuple[int, int]:
    """Return into how many pieces of which length numbers are split to be sorted."""
    limit = _PIECE_BYTES // itemsize
    for n_pieces in range(2, 17):
        length = 2 * n_pieces * -(-n // (2 * n_pieces**2))
        if 2 * (n_pieces - 1) ** 2 <= length <= limit:
            return n_pieces, length
    return 1, n


@cache
def _pieces_are_faster() -> bool:
    """Return whether this processor sorts faster piece by piece than at once: the same numbers."""
    keys = np.random.default_rng(0).integers(2**31, size=(32, 2048), dtype=np.int32)
    seconds = []
    for n_pieces in [4, 1] * 3:
        copy = keys.copy()
        start = time.perf_counter()
        _columnsort(copy, n_pieces, np.empty_like(copy))
        seconds.append(time.perf_counter() - start)
    return min(seconds[::2]) < min(seconds[1::2])


def _sort(keys: np.ndarray, n_pieces: int, room: np.ndarray) -> None:
    """Sort each row; rows are shared among as many threads as torch has."""
    n_threads = min(torch.get_num_threads(), len(keys))
    if n_threads <= 1 or keys.size < _BLOCK_ELEMENTS:
        _columnsort(keys, n_pieces, room)
        return
    parts = [np.array_split(array, n_threads) for array in (keys, room)]
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(_columnsort, parts[0], [n_pieces] * n_threads, parts[1]))


def _columnsort(keys: np.ndarray, n_pieces: int, room: np.ndarray) -> None:
    """Sort each row by sorting short pieces of it four times (T. Leighton, 1985)."""
    n_rows, length = len(keys), keys.shape[1] // n_pieces
    pieces = keys.reshape(n_rows, n_pieces, length)
    # Leighton's columns are the pieces of a row. Step 1: sort each.
    pieces.sort(axis=2)
    if n_pieces == 1:
        return
    # Steps 2 and 3: deal the numbers out to the pieces in turn, as cards, and sort each.
    dealt = room.reshape(pieces.shape)
    by_turns = keys.reshape(n_rows, length, n_pieces).swapaxes(1, 2)
    np.copyto(dealt, by_turns)
    dealt.sort(axis=2)
    # Steps 4 and 5: collect them in the same turns, and sort each. Of zeros and ones, what is
    # out of order now spans half a piece at most, as pieces are as long as `_pieces` makes them.
    np.copyto(by_turns, dealt)
    pieces.sort(axis=2)
    # Steps 6 to 8: shift by half a piece, sort, shift back; without a copy, these are the second
    # half of each piece and the first half of the next.
    between = keys[:, length // 2 : -(length // 2)]
    between.reshape(n_rows, n_pieces - 1, length).sort(axis=2)


def _share(ties: Tensor, order: Tensor, by_place: Tensor, out: Tensor) -> None:
    """Write the mean of the weights of each run of equal scores; all but its last are ties."""
    begins = torch.ones(len(ties) + 1, dtype=torch.bool, device=ties.device)
    torch.ne(ties[1:], ties[:-1] + 1, out=begins[1:-1])
    first, last = ties[begins[:-1]], ties[begins[1:]] + 1
    run = begins[:-1].cumsum(0) - 1
    weights, n = by_place.double(), out.shape[1]
    mean = weights[last % n].index_add_(0, run, weights[ties % n]).div_(last - first + 1)
    mean = mean.to(out.dtype)
    for member, weight in ((ties, mean[run]), (last, mean)):
        out[member // n, order.view(-1)[member]] = weight
