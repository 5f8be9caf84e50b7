"""Images: grey or with channels, uint8 or float."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._checks import POSITIVE_INT, parameter
from .._data._array_like import checked_numbers
from .._data._arrays import as_tensor
from .._warnings import warn
from ._base import Request, Schema
from ._scaling import AffineScaler, ArrayKind, Standardize, channel_statistics
from ._series import is_long

# Larger floats are neither in [0, 1] nor standardised for a pretrained network.
_LARGEST_UNSCALED = 10.0
# Images with values up to 255 rarely have no value above this.
_LARGEST_OTHER_UNIT = 127.0


class Images(ArrayKind):
    """Images, (n_samples, height, width) or (n_samples, channels, height, width).

    In uint8, 255 is white; floats are mapped to [0, 1] by the range of the training set. Unless
    the kind is declared, grey images that are not square raise an error, because they may be
    series, and those with one side more than twice the other are read as `Series`.

    Parameters
    ----------
    standardize : bool, default=True
        Whether to map intensities to [0, 1] and then to zero mean and unit variance per channel.
        If False, float images must have intensities in [0, 1]; for encoders that normalise their
        input, see :ref:`pretrained`.
    size : int, default=None
        The height and width of image files and images of Pillow, which are read in three
        channels, as by :class:`~skcontrast.datasets.ImageFolder`. With None, files have size 64,
        and images of Pillow keep their size, which must be the same for all, and one channel if
        they are grey. Arrays are not resized.

    See Also
    --------
    Vectors : For arrays of two dimensions.
    Kind : The base class.
    skcontrast.augmentation.Unflatten : Turns flattened images into images.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.kinds import Images
    >>> spectrograms = np.random.default_rng(0).uniform(size=(20, 4, 32))
    >>> embedder = ContrastiveEmbedder(kind=Images(), max_epochs=1, random_state=0)
    >>> embedder.fit_transform(spectrograms).shape[0]
    20
    """

    name = "images"
    expected = "images of shape (n_samples, channels, height, width)"
    trains_in_bf16 = True

    standardize: bool = parameter(["boolean"], default=True)
    size: int | None = parameter([*POSITIVE_INT, None], default=None)

    def recognise(self, X: Any, *, is_declared: bool = False) -> bool:
        """Return whether X has three or four dimensions.

        Raises
        ------
        ValueError
            If samples have two dimensions of different lengths, and the kind is not declared.
        """
        if getattr(X, "ndim", 2) < 3:
            return False
        if is_declared or X.ndim != 3 or X.shape[1] == X.shape[2] or 0 in X.shape:
            return True
        channels, length = sorted(X.shape[1:])
        raise ValueError(
            f"X of shape {X.shape} may hold grey images of {X.shape[1]} × {X.shape[2]} pixels or "
            f"series of {channels} channels and {length} steps: pass kind='images' or X[:, None] "
            "for images, kind='series' for series."
        )

    def image_shape(self, sample_shape: tuple) -> tuple[int, ...]:
        """Return ``(channels, height, width)``."""
        return (1, *sample_shape)[-3:]

    def example_batch(self, sample_shape: tuple) -> Tensor:
        """Return a batch of two images, to validate an encoder."""
        return torch.zeros(2, *self.image_shape(sample_shape))

    def describes(self, sample_shape: tuple) -> bool:
        """Return whether this is ``(height, width)`` or ``(channels, height, width)``."""
        return len(sample_shape) in (2, 3) and None not in sample_shape

    def _read_array(self, X: Any, request: Request) -> tuple[Any, Schema]:
        seen = request.seen
        if getattr(X, "ndim", 2) < 3 and seen is None:
            raise ValueError(
                "X must hold images, shape (n_samples, channels, height, width), got an array of "
                "two dimensions: put Unflatten((channels, height, width)) before it."
            )
        try:
            X = checked_numbers(X, "images, an array of numbers", request.convert)
        except ValueError as error:
            if "NaN" not in str(error):
                raise
            raise ValueError(
                f"X of shape {X.shape} contains NaN: drop these images, or pass np.nan_to_num(X) "
                "to set the pixels to 0. For series that are padded with NaN, pass kind='series'."
            ) from error
        if seen is not None and X.shape == seen.sample_shape:
            raise ValueError(
                f"X must hold several images, got a single one of shape {X.shape}: pass X[None]."
            )
        shape = X.shape[1:]
        request.check_shape(shape)
        # For a list of files, n_features_in_ is not the number of pixels.
        is_list = isinstance(getattr(X, "dataset", None), Sequence)
        return X, Schema(self, shape, None if is_list else math.prod(shape))

    def check_unusual(self, X: Any, *, is_declared: bool) -> None:
        """Raise ValueError for channels-last images, warn about series, unless declared."""
        shape = X.shape[1:]
        if not is_declared and type(self) is Images and len(shape) == 2 and is_long(*shape):
            warn(
                f"X of shape {X.shape} looks like series, but is read as images, because of its "
                "augmentation, encoder or features: use those for series, or an embedder with "
                "kind='images'."
            )
        if not is_declared and len(shape) == 3 and _has_channels_last(*shape):
            raise ValueError(
                f"X looks like channels-last images of shape {shape}: pass X.transpose(0, 3, 1, "
                f"2), or kind='images' if they do have {shape[0]} channels."
            )

    def scaler(self) -> ImageScaler:
        """Return the unfitted map from images to batches; see `Kind.scaler`."""
        return ImageScaler(self.standardize)

    def first_layer(self, subset: Tensor, scaler: Any, *, channels_last: bool) -> nn.Module:
        """Return a layer that standardises each channel."""
        mean, std = channel_statistics(subset) if self.standardize else (0.0, 1.0)
        return Standardize(mean, std, channels_last)

    def nbytes(self, X: Any) -> float:
        """Return the bytes of X as uint8 or in float32."""
        return super().nbytes(X) / (4 if X.dtype == np.uint8 else 1)


class ImageScaler(AffineScaler):  # numpydoc ignore=PR02
    """Convert images to tensors with intensities in [0, 1], as augmentations expect.

    uint8 stays uint8, where 255 stands for 1; floats are mapped by the range of the training set.

    Parameters
    ----------
    standardize : bool, default=True
        If False, floats are only cast to float32; they must be in [0, 1].
    """

    lowest, highest = 0.0, 1.0

    def fit(self, X: np.ndarray) -> ImageScaler:
        """Learn the map from X of shape (n_samples, ...)."""
        self.keeps_uint8_ = X.dtype == np.uint8
        self.center_, self.scale_ = 0.0, 255.0 if self.keeps_uint8_ else 1.0
        self.only_casts_ = not (self.standardize or self.keeps_uint8_)
        low, high = float(X.min()), float(X.max())
        self.is_unit_ = low >= -0.01 and high <= 1.01
        if self.standardize and not self.keeps_uint8_:
            self.center_, self.scale_ = _range(X, low, high)
        if self.only_casts_ and (largest := max(-low, high)) > _LARGEST_UNSCALED:
            is_byte = _LARGEST_OTHER_UNIT < largest <= 255
            advice = "divide X by 255, or pass uint8 images"
            advice = advice if is_byte else f"divide X by their maximum, {largest:g}"
            warn(
                f"X holds floats up to {largest:g}, but augmentations expect [0, 1], and "
                f"standardize=False does not scale: {advice}."
            )
        return self

    def to_tensor(self, X: np.ndarray, device: torch.device | str) -> Tensor:
        """Return X as a tensor on a device: uint8 if fitted on uint8, else float32.

        Grey images of shape (n, height, width) get a channel axis. X is copied only if it has to
        be converted or moved.
        """
        X = X[:, None] if X.ndim == 3 else X
        is_plain = self.keeps_uint8_ and X.dtype == np.uint8
        if not is_plain and self._has_other_unit(X):
            warn(
                f"X has values from {X.min():g} to {X.max():g}, but in fit black was "
                f"{self.center_:g} and white {self.center_ + self.scale_:g}: rescale X as in fit."
            )
        return as_tensor(X).to(device) if is_plain else super().to_tensor(X, device)

    def from_tensor(self, batch: Tensor, X: np.ndarray) -> np.ndarray:
        """Return views of X in its own intensities and shape; only uint8 is rounded."""
        if X.dtype != np.uint8:
            return super().from_tensor(batch, X).reshape(X.shape)
        views = batch.double().numpy() * self.scale_ + self.center_
        return np.rint(views).clip(0, 255).reshape(X.shape).astype(np.uint8)

    def _has_other_unit(self, X: np.ndarray) -> bool:
        """Return whether X is scaled differently from the X of `fit`.

        Either a tenth of the intensities is outside the range of `fit`, or all are below a tenth
        of it. Fewer than ten images may be dark, unless their dtype or range has another maximum.
        """
        # Without standardisation, any scale is valid. Near the limit of float64, the range was
        # cut.
        if (self.only_casts_ and not self.is_unit_) or self.scale_ > 1e300:
            return False
        low, high, white = float(X.min()), float(X.max()), self.center_ + self.scale_
        if X.dtype.kind in "iu":
            is_other = np.iinfo(X.dtype).max < white / 10 or 0 < white <= 1 < high
        else:
            # In [0, 1], or standardised by mean and deviation; flat images may be black.
            most = _LARGEST_UNSCALED if low < 0 else 1
            is_other = max(-low, high) <= most and low < high and white > _LARGEST_OTHER_UNIT
        # The range of uint8 and of data that are only cast is that of the dtype.
        is_learned = not (self.keeps_uint8_ or self.only_casts_) and len(X) >= 10
        is_dark = is_learned and low < high < self.center_ + 0.1 * self.scale_
        with np.errstate(over="ignore"):
            some = X.flat[:: X.size // 100_000 + 1]
            relative = np.subtract(some, self.center_, dtype=np.float64) / self.scale_
        return is_other or is_dark or bool(np.mean(np.abs(relative - 0.5) > 0.51) > 0.1)


def _has_channels_last(first: int, second: int, last: int) -> bool:
    """Return whether the last size is more likely the number of channels than the first."""
    if first <= 4 or second == last:
        return False
    is_picture = not is_long(first, second) and is_long(second, last) and last < second
    return last in (1, 3, 4) or first == second or is_picture


def _range(X: np.ndarray, low: float, high: float) -> tuple[float, float]:
    """Return the lowest intensity of images and their range, without a few far outliers."""
    largest = np.finfo(np.float64).max / 8
    low, high = max(low, -largest), min(high, largest)
    subset = X.flat[:: -(-X.size // 1_000_000)]
    inner = np.quantile(subset.astype(np.float64).clip(low, high), [0.001, 0.999])
    if 0 < inner[1] - inner[0] < (high - low) / 10:
        warn(
            f"Intensities in X range from {low:g} to {high:g}, but 99.8 % are in "
            f"[{inner[0]:g}, {inner[1]:g}]. The others are clipped."
        )
        low, high = inner
    return low, (high - low) or 1.0
