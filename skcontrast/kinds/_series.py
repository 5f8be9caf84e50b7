"""Series: sensors, curves and recordings, of one or several channels and of any length."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import Tensor

from .._checks import learned, parameter
from .._checks._arguments import naming
from .._data._array_like import checked_numbers
from .._data._arrays import LazySamples, as_array, column_scaler, row_blocks, subset
from .._warnings import warn
from ._base import Request, Schema
from ._scaling import AffineScaler, ArrayKind, rows_for

# The ratio of steps to channels is above this in series.
_LEAST_RATIO = 2
# Steps of the series that validate a network that is built without data.
_EXAMPLE_LENGTH = 64
_FORMS = (
    "pass an array (n_samples, n_channels, n_times), or a list of arrays (n_channels, n_times)"
)


class Series(ArrayKind):
    """Series of one or several channels, shape (n_samples, n_channels, n_times).

    Series of unequal lengths are a list or a Dataset of arrays (n_channels, n_times), or one array
    in which NaN follows the end of the shorter ones. In `transform`, the embedding of a series
    does not depend on the padding. Later series may have other lengths than in `fit`.

    An array of three dimensions is detected as series if one of the last two is more than twice
    the other, and as grey images if they are equal; otherwise declare the kind
    by ``kind=``, such as ``kind="images"`` for spectrograms of 8 bands and 32 steps. With
    ``kind="series"``, or an encoder, augmentation or features for series, an array
    (n_samples, n_times) is read as series of one channel.

    Parameters
    ----------
    standardize : bool, default=True
        Whether each channel is scaled to zero mean and unit variance over all training samples,
        which keeps the level and the amplitude of a series.

    Attributes
    ----------
    n_times_ : int
        Length of the longest series in `fit`; only on the copy of the kind in a fitted embedder.

    See Also
    --------
    Images : For arrays of three dimensions that are images.
    Vectors : For curves whose points are features without an order.
    Kind : The base class.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast.kinds import Series
    >>> kind = Series()
    >>> X = np.array([[[1.0, 2, 4, 2, 1]], [[3.0, 2, np.nan, np.nan, np.nan]]])
    >>> batch = kind.scaler().fit(X).to_tensor(X, "cpu")
    >>> batch.shape, batch[1].isnan().sum()
    (torch.Size([2, 1, 5]), tensor(3))
    """

    name = "series"
    expected = "series, X of shape (n_samples, n_channels, n_times)"
    has_gaps = True
    differs_in_length = True

    standardize: bool = parameter(["boolean"], default=True)

    n_times_: int = learned()

    def recognise(self, X: Any, *, is_declared: bool = False) -> bool:
        """Return whether X is a list of series, or an array with three dimensions, one long."""
        if isinstance(X, list):
            return lists_series(X, is_declared)
        if is_declared and isinstance(X, np.ndarray) and X.ndim == 2:  # series of one channel
            return True
        return getattr(X, "ndim", 0) == 3 and (is_declared or is_long(*X.shape[1:]))

    def describes(self, sample_shape: tuple) -> bool:
        """Return whether this is ``(n_channels, None)``."""
        return len(sample_shape) == 2 and sample_shape[0] is not None and sample_shape[1] is None

    def sample_shape(self, X: Any) -> tuple:
        """Return ``(n_channels, None)``."""
        return X.shape[1], None

    def encoded_shape(self, sample_shape: tuple) -> tuple:
        """Return ``(n_channels, None)``: networks take series of any length."""
        return sample_shape[0], None

    def example_batch(self, sample_shape: tuple) -> Tensor:
        """Return two series of zeros, of the length in `fit`."""
        return torch.zeros(2, sample_shape[0], getattr(self, "n_times_", _EXAMPLE_LENGTH))

    def _read_array(self, X: Any, request: Request) -> tuple[Any, Schema]:
        if hasattr(X, "columns"):
            raise TypeError(
                f"X is a {type(X).__name__}, which cannot hold series: {_FORMS}. From a long "
                "table, [part[channels].to_numpy().T for _, part in X.groupby('series')]; from a "
                "table with series in its cells, [np.stack(row) for row in X.to_numpy()]."
            )
        if isinstance(X, list) and all(isinstance(x, (list, tuple)) for x in X):
            with naming("X", "lists of numbers"):
                X = [np.asarray(x) for x in X]
        X = padded(X) if isinstance(X, list) and _are_arrays(X) else X
        expected = "series, an array of numbers of shape (n_samples, n_channels, n_times)"
        X = checked_numbers(X, expected, request.convert, check_finite=False)
        if isinstance(X, LazySamples):
            X = X if isinstance(X, LazySeries) else LazySeries(X)
        elif X.ndim == 2:
            X = X[:, None]
        if X.ndim != 3:
            raise ValueError(f"X must hold series, got an array of shape {X.shape}: {_FORMS}.")
        _check_channels(X, request)
        if not isinstance(X, LazySeries):  # which check themselves what they read
            X = trimmed(X, range(len(X)))
        if request.seen is not None:
            return X, request.seen
        kind = clone(self)
        kind.n_times_ = X.shape[2]
        return X, Schema(kind, self.sample_shape(X))

    def check_unusual(self, X: Any, *, is_declared: bool) -> None:
        """Raise ValueError for channels-last series, warn about images, unless declared."""
        n_channels, n_times = X.shape[1:]
        # In series of unequal lengths, the axis of time is known from the padding.
        if is_declared or (isinstance(X, np.ndarray) and np.isnan(X[:, 0, -1]).any()):
            return
        if n_channels > n_times:
            raise ValueError(
                f"X of shape {X.shape} looks like series with the channels last, not (n_samples, "
                "n_channels, n_times): pass X.transpose(0, 2, 1). If there are indeed "
                f"{n_channels} channels, pass kind='series', and kind='images' for images."
            )
        if n_channels == n_times:
            warn(
                f"X of shape {X.shape} looks like grey images, but is read as series, because of "
                "its augmentation, encoder or features: use those for images, or an embedder with "
                "kind='series'."
            )

    def scaler(self) -> SeriesScaler:
        """Return the unfitted map from series to batches; see `Kind.scaler`."""
        return SeriesScaler(self.standardize)

    def rows_per_call(self, X: Any) -> int:
        """Return the number of series that have about a million numbers in 64 channels."""
        return rows_for(64 * X.shape[-1])


class LazySeries(LazySamples):
    """A Dataset of series, whose rows are an array, padded with NaN.

    Parameters
    ----------
    samples : LazySamples of shape (n, n_channels, n_times) or (n, n_times)
        The Dataset. The shape is that of its first series.
    """

    def __init__(self, samples: LazySamples):
        vars(self).update(vars(samples))
        if self.ndim == 2:
            self.shape, self.ndim = (self.shape[0], 1, self.shape[1]), 3

    def __getitem__(self, rows: Any) -> NDArray:
        rows = np.atleast_1d(np.arange(len(self))[rows])
        return trimmed(padded([self._item(row) for row in rows], rows), rows)


def is_long(n_channels: int, n_times: int) -> bool:
    """Return whether one side is so much longer than the other that an array is not an image."""
    short, long = sorted((n_channels, n_times))
    return short > 0 and long > _LEAST_RATIO * short


def _are_arrays(X: Sequence) -> bool:
    """Return whether the items of a list are arrays of one or two dimensions."""
    return bool(len(X)) and all(getattr(x, "ndim", 0) in (1, 2) for x in X)


def lists_series(X: list, is_declared: bool) -> bool:
    """Return whether a list holds series of unequal lengths, or of any lengths if declared."""
    if not _are_arrays(X) or len({x.ndim for x in X}) > 1:
        return False
    if X[0].ndim == 1:
        return is_declared or len({len(x) for x in X}) > 1
    firsts, lasts = ({x.shape[axis] for x in X} for axis in (0, 1))
    if is_declared or len(firsts) == len(lasts) == 1 or min(len(firsts), len(lasts)) > 1:
        return is_declared
    # Channels-last series raise an error with advice later. Two arrays may be a pair.
    varying, constant = (lasts, firsts) if len(firsts) == 1 else (firsts, lasts)
    return len(X) > 2 or max(varying) > _LEAST_RATIO * max(constant)


def _check_channels(X: Any, request: Request) -> None:
    """Raise ValueError unless series have as many channels as in `fit`."""
    if request.seen is None or X.shape[1] == request.seen.sample_shape[0]:
        return
    advice = "X.transpose(0, 2, 1)" if X.shape[2] == request.seen.sample_shape[0] else "X[None]"
    raise ValueError(
        f"X has series of {X.shape[1]} channel(s), but {request.name} was fitted on series of "
        f"{request.seen.sample_shape[0]}: if the axes are in another order, pass {advice}."
    )


def padded(X: Sequence, rows: Sequence[int] | None = None) -> NDArray:
    """Return a list of series as one array padded with NaN; `rows` are their numbers in X."""
    arrays = [np.atleast_2d(as_array(x) if isinstance(x, Tensor) else np.asarray(x)) for x in X]
    rows = range(len(X)) if rows is None else rows
    for row, array in zip(rows, arrays, strict=True):
        if array.dtype.kind not in "biuf":
            raise TypeError(f"X must hold numbers, but series {row} has dtype {array.dtype}.")
        if array.shape[0] != arrays[0].shape[0]:
            advice = (
                ": if the channels are last, pass [x.T for x in X]; if they are batches, "
                "np.concatenate(X); images must have one size"
            )
            advice = advice if array.shape[1] == arrays[0].shape[1] else ""
            raise ValueError(
                f"The series in X must have the same number of channels: series {row} has "
                f"shape {array.shape}, series {rows[0]} has {arrays[0].shape}{advice}."
            )
        if not array.size:
            raise ValueError(f"Series {row} of X has no steps: its shape is {array.shape}.")
    longest = max(array.shape[1] for array in arrays)
    # float32 at least, which has NaN.
    dtype = np.result_type(np.float32, *{array.dtype.newbyteorder("=") for array in arrays})
    array = np.full((len(arrays), arrays[0].shape[0], longest), np.nan, dtype)
    for target, series in zip(array, arrays, strict=True):
        target[:, : series.shape[1]] = series
    return array


def trimmed(X: NDArray, rows: Sequence[int]) -> NDArray:
    """Return series up to the end of the longest; raise ValueError for gaps and infinity.

    Parameters
    ----------
    X : ndarray of shape (n, n_channels, n_times)
        Series.
    rows : sequence of int
        Their row numbers in X, for messages.
    """
    start, longest = 0, 0
    for block in row_blocks(X, 256):
        with np.errstate(over="ignore", invalid="ignore"):
            sums = block.sum(axis=(1, 2), dtype=np.float64)
        longest = X.shape[2] if np.isfinite(sums).any() else longest
        for row in map(int, np.flatnonzero(~np.isfinite(sums))):
            series, number = block[row], rows[start + row]
            length = _length(series)
            longest = max(longest, length)
            if np.isinf(series).any() or not length:
                what = "only NaN" if not length else "infinity"
                raise ValueError(f"Series {number} of X contains {what}: remove it, or impute.")
            if (gaps := np.argwhere(np.isnan(series[:, :length]))).size:
                channel, step = gaps[0]
                raise ValueError(
                    f"Series {number} of X contains NaN in channel {channel} at step {step}, "
                    f"before its end at step {length}: fill gaps by pandas.DataFrame(x.T)"
                    ".interpolate(), or transpose X to (n, n_channels, n_times)."
                )
        start += len(block)
    return X[..., :longest]


def _length(series: NDArray) -> int:
    """Return the number of steps of a series (n_channels, n_times) before NaN in all channels."""
    return 1 + int((~np.isnan(series).all(axis=0)).nonzero()[0].max(initial=-1))


class SeriesScaler(AffineScaler):
    """The map from series to the float32 tensors that augmentations and networks work on.

    NaN, which pads series, stays.

    Parameters
    ----------
    standardize : bool
        As in `Series`.
    """

    def fit(self, X: NDArray) -> SeriesScaler:
        """Learn mean and standard deviation of each channel of X (n, n_channels, n_times)."""
        self.only_casts_ = not self.standardize
        if self.standardize:
            steps = subset(X).transpose(0, 2, 1).reshape(-1, X.shape[1])
            channels = column_scaler(steps[~np.isnan(steps[:, 0])])
            self.center_, self.scale_ = channels.mean_[:, None], channels.scale_[:, None]
        return self
