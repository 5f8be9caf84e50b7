"""Series of unequal lengths as one array: what follows their ends, and gaps before them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from .._data._arrays import as_array, row_blocks


def padded(X: Sequence, names: Sequence[int] | None = None) -> NDArray:
    """Return a list of series as one array, (n, n_channels, n_times), with NaN behind ends."""
    arrays = [np.atleast_2d(as_array(x) if isinstance(x, Tensor) else np.asarray(x)) for x in X]
    names = range(len(X)) if names is None else names
    for place, array in zip(names, arrays, strict=True):
        if array.dtype.kind not in "biuf":
            raise TypeError(f"X must hold series of numbers: series {place} has {array.dtype}.")
        if array.shape[0] != arrays[0].shape[0]:
            advice = (
                ": if the channels are last, pass [x.T for x in X]; if they are batches, "
                "np.concatenate(X); images must have one size"
            )
            advice = advice if array.shape[1] == arrays[0].shape[1] else ""
            raise ValueError(
                f"The series in X must have as many channels as each other: series {place} has "
                f"shape {array.shape}, series {names[0]} has {arrays[0].shape}{advice}."
            )
        if not array.size:
            raise ValueError(f"Series {place} of X has no steps: its shape is {array.shape}.")
    longest = max(array.shape[1] for array in arrays)
    # float32 at least, which has NaN; wider numbers stay as wide.
    dtype = np.result_type(np.float32, *{array.dtype.newbyteorder("=") for array in arrays})
    array = np.full((len(arrays), arrays[0].shape[0], longest), np.nan, dtype)
    for row, series in zip(array, arrays, strict=True):
        row[:, : series.shape[1]] = series
    return array


def cleaned(X: NDArray, names: Sequence[int], *, interpolate: bool) -> NDArray:
    """Return series up to the end of the longest, a copy if gaps are filled.

    Parameters
    ----------
    X : ndarray of shape (n, n_channels, n_times)
        Series.
    names : sequence of int
        Their numbers in messages.
    interpolate : bool
        Whether gaps are filled; if not, they are refused.
    """
    filled, start = X, 0
    for block in row_blocks(X, 256):
        for row in _rows_with_gaps(block, names[start:]):
            if not interpolate:
                raise ValueError(_gap(block[row], names[start + row]))
            filled = X.copy() if filled is X else filled
            filled[start + row] = _interpolated(block[row], names[start + row])
        start += len(block)
    return _without_padding(filled)


def _length(series: NDArray) -> int:
    """Return the number of steps of a series (n_channels, n_times) before NaN in all channels."""
    known = ~np.isnan(series).all(axis=0)
    return int(known.nonzero()[0].max(initial=-1)) + 1


def _rows_with_gaps(X: NDArray, names: Sequence[int]) -> Iterator[int]:
    """Yield the rows of X whose NaN is not only behind the end; refuse infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        sums = X.sum(axis=(1, 2), dtype=np.float64)
    for row in map(int, np.flatnonzero(~np.isfinite(sums))):
        if np.isinf(X[row]).any():
            raise ValueError(f"Series {names[row]} of X contains infinity.")
        if np.isnan(X[row][:, : _length(X[row])]).any() or not _length(X[row]):
            yield row


def _without_padding(X: NDArray) -> NDArray:
    """Return X up to the end of its longest series."""
    if X.dtype.kind != "f" or not np.isnan(X[:, 0, -1]).all():
        return X
    return X[..., : max(map(_length, X))]


def _gap(series: NDArray, row: int) -> str:
    """Return what is wrong with a series that has gaps."""
    length = _length(series)
    if not length:
        return f"Series {row} of X contains NaN alone."
    # Read with the axes exchanged, only the end is missing: channels are last.
    if (n_known := _length(series.T)) and not np.isnan(series[:n_known]).any():
        return (
            f"NaN follows the end of series {row} of X along its first axis: the channels seem to "
            "be last. Pass X.transpose(0, 2, 1)."
        )
    # Padding in front, as some libraries make it.
    first = int((~np.isnan(series).all(axis=0)).argmax())
    if not np.isnan(series[:, first:length]).any():
        return (
            f"Series {row} of X begins with NaN, up to step {first}: NaN may only follow the end. "
            "Pass a list of series, [x[:, ~np.isnan(x).all(axis=0)] for x in X]."
        )
    channel, step = np.argwhere(np.isnan(series[:, :length]))[0]
    return (
        f"Series {row} of X contains NaN in channel {channel} at step {step}, before its end at "
        f"step {length}. NaN may only follow the end, in all channels: fill the gaps, or pass "
        "kind=Series(interpolate=True)."
    )


def _interpolated(series: NDArray, row: int) -> NDArray:
    """Return a series whose gaps are filled by straight lines, with what follows its end."""
    length, filled = _length(series), series.copy()
    steps = np.arange(length)
    for channel, values in enumerate(filled[:, :length]):
        known = ~np.isnan(values)
        if not known.any():
            raise ValueError(
                f"Channel {channel} of series {row} of X contains NaN alone, which cannot be "
                "interpolated: drop the series or the channel."
            )
        values[~known] = np.interp(steps[~known], steps[known], values[known])
    return filled
