"""Series: sensors, curves and recordings, of one or several channels and of any length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils.validation import check_array
from torch import Tensor, nn

from .._checks import check_entries, learned, naming, parameter
from .._data._array_like import as_array_like, checked_numbers
from .._data._arrays import FARTHEST, LazySamples, as_tensor, mean_and_std, row_blocks, subset
from .._warnings import warn
from ._base import Request, Schema
from ._gaps import cleaned, padded
from ._scaling import AffineScaler, ArrayKind, float_of, rows_for

_EXPECTED = "series, an array of numbers of shape (n_samples, n_channels, n_times)"
# A channel has more steps than there are channels, by more than this factor.
_LEAST_RATIO = 2
# Samples among which one is looked for that is shorter than others.
_SERIES_SEARCHED = 2000
# Steps of the series on which a network is tried that was built without any.
_EXAMPLE_LENGTH = 64
_FORMS = (
    "pass an array (n_samples, n_channels, n_times), or a list of arrays (n_channels, n_times)"
)


class Series(ArrayKind):
    """Series of one or several channels, shape (n_samples, n_channels, n_times).

    Series of unequal lengths are a list or a Dataset of arrays (n_channels, n_times), or one array
    in which NaN follows the end of the shorter ones. In `transform`, the embedding of a series
    does not depend on what it is padded to. Later series may have other lengths than in `fit`.

    An array of three dimensions is recognised as series if one of the last two is more than twice
    the other, and as grey images if they are equal; what is in between is refused. Declare either
    by ``kind=``, such as ``kind="images"`` for spectrograms of 8 bands and 32 steps. With
    ``kind="series"``, an array (n_samples, n_times) is read as series of one channel.

    Parameters
    ----------
    standardize : {"channel", "series"} or None, default="channel"
        What is scaled to zero mean and unit variance. "channel": each channel over all training
        samples, which keeps the level and the amplitude of a series. "series": each channel of
        each series by itself, which leaves the shape alone. None: nothing.
    interpolate : bool, default=False
        Whether NaN before the end of a series is a gap that is filled: linearly between its
        neighbours, with the nearest value at either end. If False, gaps are refused.

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
    _expected = "series, X of shape (n_samples, n_channels, n_times)"
    _augmentation_advice = "; choose an augmentation of series such as TimeCrop"
    has_gaps = True
    _differs_in_length = True

    standardize: Literal["channel", "series"] | None = parameter(
        {"channel", "series", None}, default="channel"
    )
    interpolate: bool = parameter(["boolean"], default=False)

    n_times_: int = learned()

    def _recognise(self, X: Any, *, is_declared: bool = False) -> bool:
        """Return whether X has three dimensions, one of them long, or is a list of series."""
        if isinstance(X, list):
            return lists_series(X, is_declared)
        return getattr(X, "ndim", 0) == 3 and (is_declared or is_long(*X.shape[1:]))

    def _describes(self, sample_shape: tuple) -> bool:
        """Return whether this is ``(n_channels, None)``."""
        return len(sample_shape) == 2 and sample_shape[0] is not None and sample_shape[1] is None

    def sample_shape(self, X: Any) -> tuple:
        """Return ``(n_channels, None)``."""
        return X.shape[1], None

    def _encoded_shape(self, sample_shape: tuple) -> tuple:
        """Return ``(n_channels, None)``: networks take series of any length."""
        return sample_shape[0], None

    def _describe(self, sample_shape: tuple) -> str:
        """Return the number of channels."""
        return f"series of shape ({sample_shape[0]} channels, n_times)"

    def _example_batch(self, sample_shape: tuple) -> Tensor:
        """Return two series of zeros, of the length in `fit`."""
        return torch.zeros(2, sample_shape[0], getattr(self, "n_times_", _EXAMPLE_LENGTH))

    def _read(self, X: Any, request: Request) -> tuple[Any, Schema]:
        request.refuse_graphs(X, self)
        _refuse_frames(X)
        X = as_array_like(X, one_shape=False)
        check_entries(X, "X")
        if isinstance(X, list) and X and all(isinstance(x, (list, tuple)) for x in X):
            with naming("X", "lists of numbers"):
                X = [np.asarray(x) for x in X]
        X = padded(X) if isinstance(X, list) and _are_arrays(X) else X
        convert = partial(check_array, allow_nd=True, estimator=request.owner, input_name="X")
        X = checked_numbers(X, _EXPECTED, convert, request.min_samples, check_finite=False)
        if isinstance(X, LazySamples):
            X = X if isinstance(X, LazySeries) else LazySeries(X, self)
        elif X.ndim == 2:
            X = X[:, None]
        if X.ndim != 3:
            raise ValueError(f"X must hold series, got an array of shape {X.shape}: {_FORMS}.")
        _check_channels(X, request)
        if not isinstance(X, LazySeries):  # which check themselves what they read
            X = cleaned(X, range(len(X)), interpolate=self.interpolate)
        if request.seen is not None:
            return X, request.seen
        kind = clone(self)
        kind.n_times_ = X.shape[2]
        return X, Schema(kind, self.sample_shape(X))

    def _check_unusual(self, X: Any, *, is_declared: bool) -> None:
        """Refuse series that seem to have their channels last, and warn of grey images.

        Unless they were declared.
        """
        n_channels, n_times = X.shape[1:]
        # Of series that differ in length, the steps are known.
        differ = isinstance(X, np.ndarray) and np.isnan(X[:, 0, -1]).any()
        if not (is_declared or differ) and n_channels > n_times:
            raise ValueError(
                f"X of shape {X.shape} looks like series of {n_times} channel(s) and {n_channels} "
                "steps with the channels last; skcontrast expects (n_samples, n_channels, "
                "n_times): pass X.transpose(0, 2, 1). If there are indeed "
                f"{n_channels} channels, pass kind='series', and kind='images' for images."
            )
        if not (is_declared or differ) and n_channels == n_times:
            warn(
                f"X of shape {X.shape} looks like grey images, but is read as series of "
                f"{n_channels} channels, for which the augmentation or the encoder is: choose one "
                "of images such as RandomAffine or ConvNet. For series, pass kind='series'."
            )

    def _check_encoder(self, module: nn.Module, samples: Callable, name: str) -> None:
        """Refuse a module that returns NaN for series that are shorter than others."""
        batch = samples(_SERIES_SEARCHED)
        ends = batch[:, 0].isnan().any(1).nonzero()[:, 0][:2]
        if not len(ends) or _output(module, batch[ends]).isfinite().all():
            return
        raise ValueError(
            f"The encoder {name} returns NaN for series of unequal lengths. In a batch (n, "
            f"{batch.shape[1]}, n_times), NaN follows the end of a series: the encoder must leave "
            "these steps out, as SeriesNet() does, or all series must have one length."
        )

    def scaler(self) -> SeriesScaler:
        """Return the map from series to batches, unfitted; see `Kind.scaler`."""
        return SeriesScaler(self.standardize)

    def _rows_per_call(self, X: Any) -> int:
        """Return the number of series that have about a million numbers as 64 maps."""
        return rows_for(64 * X.shape[-1])


class LazySeries(LazySamples):
    """A Dataset of series, whose rows are one array with NaN behind the ends of shorter ones.

    Parameters
    ----------
    samples : LazySamples of shape (n, n_channels, n_times) or (n, n_times)
        The Dataset. The shape is that of its first series.
    kind : Series
        Says what becomes of gaps.
    """

    kind: Series

    def __init__(self, samples: LazySamples, kind: Series):
        vars(self).update(vars(samples), kind=kind)
        if self.ndim == 2:
            self.shape, self.ndim = (self.shape[0], 1, self.shape[1]), 3

    def __getitem__(self, rows: Any) -> NDArray:
        rows = np.atleast_1d(np.arange(len(self))[rows])
        X = padded([self._item(row) for row in rows], rows)
        return cleaned(X, rows, interpolate=self.kind.interpolate)


def is_long(n_channels: int, n_times: int) -> bool:
    """Return whether one of two sides is so much longer that an array is not an image."""
    short, long = sorted((n_channels, n_times))
    return short > 0 and long > _LEAST_RATIO * short


def _are_arrays(X: Sequence) -> bool:
    """Return whether the items of a list are arrays of one or two dimensions."""
    return bool(len(X)) and all(getattr(x, "ndim", 0) in (1, 2) for x in X)


def lists_series(X: list, is_declared: bool) -> bool:
    """Return whether a list holds series of unequal lengths, or any if they are declared."""
    if not _are_arrays(X) or len({x.ndim for x in X}) > 1:
        return False
    if X[0].ndim == 1:
        return len({len(x) for x in X}) > 1
    firsts, lasts = ({x.shape[axis] for x in X} for axis in (0, 1))
    if is_declared or len(firsts) == len(lasts) == 1 or min(len(firsts), len(lasts)) > 1:
        return is_declared
    # Or, with the channels last, to be refused with advice. Two arrays may be a pair.
    several, one = (lasts, firsts) if len(firsts) == 1 else (firsts, lasts)
    return len(X) > 2 or max(several) > _LEAST_RATIO * max(one)


def _refuse_frames(X: Any) -> None:
    """Raise TypeError for a DataFrame, whose rows or cells are not in the form of series."""
    if hasattr(X, "columns"):
        raise TypeError(
            f"X is a {type(X).__name__}, which cannot hold series: {_FORMS}. From a long table, "
            "[part[channels].to_numpy().T for _, part in X.groupby('series')]; from a table with "
            "series in its cells, [np.stack(row) for row in X.to_numpy()]."
        )


def _check_channels(X: Any, request: Request) -> None:
    """Raise ValueError unless series have as many channels as in `fit`."""
    if request.seen is None or X.shape[1] == request.seen.sample_shape[0]:
        return
    expected = request.seen.sample_shape[0]
    advice = ""
    if X.shape[2] == expected:
        advice = ": pass X.transpose(0, 2, 1)"
    elif (len(X), X.shape[1]) == (expected, 1):
        advice = ": pass X[None] if it is a single series"
    raise ValueError(
        f"X has series of {X.shape[1]} channel(s), but {request.name} was fitted on series of "
        f"{expected}{advice}."
    )


def _output(module: nn.Module, batch: Tensor) -> Tensor:
    """Return the output of a module in inference mode, which it leaves."""
    mode = module.training
    try:
        with torch.no_grad():
            return module.eval()(batch)
    finally:
        module.train(mode)


class SeriesScaler(AffineScaler):
    """The map from series to the float32 tensors that augmentations and networks work on.

    NaN, which follows the end of a series, stays.

    Parameters
    ----------
    standardize : {"channel", "series"} or None
        As in `Series`.
    """

    finds_nonfinite = False

    def fit(self, X: NDArray) -> SeriesScaler:
        """Learn mean and standard deviation of each channel of X (n, n_channels, n_times)."""
        self.only_casts_ = self.standardize is None
        if self.standardize == "channel":
            X = subset(X)
            columns = (X[:, channel].ravel() for channel in range(X.shape[1]))
            found = [mean_and_std(x[~np.isnan(x)][:, None]) for x in columns]
            self.center_, self.scale_ = np.array(found)[:, :, 0].T[:, :, None]
        return self

    def to_tensor(self, X: NDArray, device: torch.device | str) -> Tensor:
        """Return X as a float32 tensor (n, n_channels, n_times) on a device."""
        if self.standardize == "series":
            return torch.cat([own_scale(as_tensor(rows)) for rows in row_blocks(X)]).to(device)
        if not self.only_casts_:
            return super().to_tensor(X, device)
        tensor = as_tensor(X).to(torch.float32)
        if tensor.isinf().any():
            raise ValueError(
                "X holds values too large for float32: pass standardize='channel' or rescale X."
            )
        return tensor.to(device)

    def from_tensor(self, batch: Tensor, X: NDArray) -> NDArray:
        """Return views of X in its own units, as floats that hold its dtype."""
        if self.standardize != "series":
            return super().from_tensor(batch, X)
        center, scale = (part.numpy() for part in own_moments(as_tensor(X)))
        return (batch.double().numpy() * scale + center).astype(float_of(X))

    def layer(self) -> nn.Module:
        """Return the map as a layer on tensors of the dtype of `fit`."""
        return OwnScale() if self.standardize == "series" else super().layer()


def own_moments(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and standard deviation of each channel of each series, (n, n_channels, 1).

    Parameters
    ----------
    x : Tensor of shape (n, n_channels, n_times)
        Series; steps of NaN do not count. A constant channel has a standard deviation of 1.
    """
    # As for columns: half precision and integers are exact in what follows.
    rounding = torch.finfo(torch.float32 if x.dtype == torch.float32 else torch.float64).eps
    x = x.double()
    is_known = ~x.isnan()
    known = torch.where(is_known, x, 0.0)
    # Scaled before it is squared, so that nothing overflows.
    unit = known.abs().amax(-1, keepdim=True)
    unit = torch.where(unit > 0, unit, 1.0)
    count = is_known.sum(-1, keepdim=True)
    mean = (known / unit).sum(-1, keepdim=True) / count
    deviation = torch.where(is_known, known / unit - mean, 0.0)
    std = (deviation.square().sum(-1, keepdim=True) / count).sqrt()
    is_constant = std <= 10 * rounding * mean.abs()
    return mean * unit, torch.where(is_constant, 1.0, std * unit)


def own_scale(x: Tensor) -> Tensor:
    """Return series of zero mean and unit variance per channel, float32; see `own_moments`."""
    mean, std = own_moments(x)
    return ((x.double() - mean) / std).clamp(-FARTHEST, FARTHEST).float()


class OwnScale(nn.Module):
    """`own_scale` as a layer."""

    def forward(self, x: Tensor) -> Tensor:
        """Standardise each channel of each series of x, shape (n, n_channels, n_times)."""
        return own_scale(x)
