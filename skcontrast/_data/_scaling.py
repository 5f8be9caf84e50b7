"""The map from validated arrays to the tensors that augmentations and encoders work on."""

from __future__ import annotations

import warnings

import numpy as np
import torch
from sklearn.utils import assert_all_finite

from .._statistics import FARTHEST, as_tensor, mean_and_std


class InputScaler:
    """The map from X to the tensors that augmentations work on.

    Vectors are cast to float32; the network standardises them with ``mean_`` and ``std_``. Only
    where float32 would lose something (offsets far beyond the spread, magnitudes near its limits)
    are they standardised here, in float64, first. Images become intensities in [0, 1]: uint8
    stays uint8 (255 is 1), floats are mapped by the range of the training set.

    Parameters
    ----------
    standardize : bool
        If False, values are only cast to float32.
    """

    # Offsets of at most so many standard deviations cost less than 1e-5 of them in float32.
    _NEAR_ZERO = 100.0
    _WELL_INSIDE_FLOAT32 = (1e-30, 1e30)

    def __init__(self, standardize=True):
        self.standardize = standardize

    def fit(self, X):
        """Learn the map from X of shape (n_samples, ...)."""
        self.keeps_uint8_ = X.dtype == np.uint8
        self.center_, self.scale_ = 0.0, 255.0 if self.keeps_uint8_ else 1.0
        self.mean_, self.std_ = np.zeros(X.shape[1]), np.ones(X.shape[1])
        self.only_casts_ = not (self.standardize or self.keeps_uint8_)
        if self.standardize and X.ndim == 2:
            mean, std = mean_and_std(X)
            self.only_casts_ = self._fits_float32(mean, std)
            if self.only_casts_:
                self.mean_, self.std_ = mean, std
            else:
                self.center_, self.scale_ = mean, std
        elif self.standardize and not self.keeps_uint8_:
            self.center_, self.scale_ = _range(X)
        return self

    def to_tensor(self, X, device):
        """Return X as a tensor on `device`: uint8 where fitted on it, else float32.

        Grey images of shape (n, height, width) get their channel axis. Nothing is copied that
        already is as it should be.
        """
        if X.ndim == 3:
            X = X[:, None]
        if X.ndim == 4:
            self._warn_other_unit(X)
        if self.keeps_uint8_ and X.dtype == np.uint8:
            return as_tensor(X).to(device)
        return self._mapped(X).to(device)

    def _warn_other_unit(self, X):
        is_uint8 = X.dtype == np.uint8
        white = 255.0 if self.keeps_uint8_ else self.center_ + self.scale_
        if self.keeps_uint8_ and not is_uint8 and 0 < X.max() <= 1:
            advice = "multiply X by 255"
        elif is_uint8 and white <= 1 < X.max():
            advice = "divide X by 255"
        else:
            return
        warnings.warn(
            f"X holds {X.dtype} images with values up to {X.max()}, but white was {white:g} in "
            f"fit: {advice}.",
            UserWarning,
            stacklevel=4,
        )

    def _mapped(self, X):
        if self.only_casts_:
            mapped = as_tensor(X).to(torch.float32)
            # One sum over what lies in cache tells; only what looks odd is searched.
            if not mapped.sum().isfinite():
                self._check_finite(X, mapped)
            return mapped
        lowest, highest = (-FARTHEST, FARTHEST) if X.ndim == 2 else (0.0, 1.0)
        # What overflows lies beyond the farthest value and is clipped.
        with np.errstate(over="ignore"):
            mapped = np.subtract(X, self.center_, dtype=np.float64)
            mapped /= self.scale_
        return torch.from_numpy(mapped.clip(lowest, highest, out=mapped)).to(torch.float32)

    def _check_finite(self, X, mapped):
        with np.errstate(over="ignore", invalid="ignore"):
            assert_all_finite(X, input_name="X")
        if not self.standardize and not mapped.isfinite().all():
            raise ValueError(
                "X holds values too large for float32: pass standardize=True or rescale X."
            )

    def _fits_float32(self, mean, std):
        low, high = self._WELL_INSIDE_FLOAT32
        near = np.abs(mean) / self._NEAR_ZERO <= std
        return bool(near.all() and std.min() > low and std.max() < high)


def _range(X):
    """Return lowest intensity and range of images; a few far outliers do not count."""
    largest = np.finfo(np.float64).max / 8
    low, high = max(float(X.min()), -largest), min(float(X.max()), largest)
    some = X.reshape(-1)[:: -(-X.size // 1_000_000)]
    inner = np.quantile(some.astype(np.float64).clip(low, high), [0.001, 0.999])
    if 0 < inner[1] - inner[0] < (high - low) / 10:
        warnings.warn(
            f"X holds images with intensities from {low:g} to {high:g}, but all except 0.2 % lie "
            f"in [{inner[0]:g}, {inner[1]:g}]: the others are clipped.",
            UserWarning,
            stacklevel=6,
        )
        low, high = inner
    return low, (high - low) or 1.0
