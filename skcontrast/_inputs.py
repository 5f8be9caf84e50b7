"""What may be passed as X, checked and named, before any of it becomes a tensor."""

from __future__ import annotations

import math
import warnings

import numpy as np
import torch
from sklearn.utils import assert_all_finite, column_or_1d, gen_batches
from sklearn.utils.validation import check_array, validate_data

# Beyond this many standard deviations a value carries no more information, only overflow.
FARTHEST = 1e6

VECTORS = "vectors"
IMAGES = "images"


def kind_of(shape):
    """Return ``"vectors"`` for samples of one dimension and ``"images"`` for two or three.

    Parameters
    ----------
    shape : tuple of int
        Shape of one sample: ``(n_features,)``, ``(height, width)`` or
        ``(channels, height, width)``.
    """
    return VECTORS if len(shape) == 1 else IMAGES


def validate_inputs(estimator, X, *, reset, min_samples=1, check_finite=True):
    """Check X and return it as an array of shape (n_samples, ...).

    Accepts anything that scikit-learn accepts as a 2-D array, images as arrays of shape
    (n_samples, height, width) or (n_samples, channels, height, width), torch tensors and memory
    maps. Nothing is copied that already is a numeric array.

    Parameters
    ----------
    estimator : estimator
        Gets ``n_features_in_``, ``feature_names_in_`` and ``_sample_shape`` when `reset`;
        otherwise X is compared with them.
    X : array-like
        The data.
    reset : bool
        Whether this is a ``fit``.
    min_samples : int, default=1
        The least number of samples.
    check_finite : bool, default=True
        If False, vectors are not searched for NaN and infinity: the caller does that.

    Returns
    -------
    X : ndarray of shape (n_samples, ...)
        uint8 (images only), float32 or float64.

    Raises
    ------
    ValueError
        If X holds NaN, infinity, complex numbers or strings, is empty, has one or more than four
        dimensions, or differs in width or shape from what was fitted.
    """
    if isinstance(X, torch.Tensor):
        X = X.detach().cpu().numpy()
    # scikit-learn looks for NaN in the sum of X, which overflows for finite values near 1e308.
    with np.errstate(over="ignore", invalid="ignore"):
        if getattr(X, "ndim", 2) in (3, 4):
            return _validate_images(estimator, X, reset, min_samples)
        return _validate_vectors(estimator, X, reset, min_samples, check_finite)


def _validate_vectors(estimator, X, reset, min_samples, check_finite):
    _check_sample_ndim(estimator, 1, reset=reset)
    X = validate_data(
        estimator,
        X,
        reset=reset,
        dtype=[np.float64, np.float32],
        ensure_min_samples=min_samples,
        ensure_all_finite=check_finite,
    )
    if reset:
        estimator._sample_shape = X.shape[1:]
    return X


def _validate_images(estimator, X, reset, min_samples):
    X = check_array(
        X,
        allow_nd=True,
        dtype=[np.float64, np.float32, np.uint8],
        ensure_min_samples=min_samples,
        estimator=estimator,
        input_name="X",
    )
    shape = X.shape[1:]
    if not reset and shape != estimator._sample_shape:
        raise ValueError(
            f"X has samples of shape {shape}, but {type(estimator).__name__} was fitted on "
            f"samples of shape {estimator._sample_shape}."
        )
    if min(shape) == 0:
        raise ValueError(
            f"Found images of shape {shape} in X: every dimension must be at least 1."
        )
    if reset:
        _warn_channels_last(shape)
        estimator._sample_shape = shape
        estimator.n_features_in_ = math.prod(shape)
        estimator.__dict__.pop("feature_names_in_", None)
    return X


def _check_sample_ndim(estimator, ndim, *, reset):
    fitted = None if reset else getattr(estimator, "_sample_shape", None)
    if fitted is not None and len(fitted) != ndim:
        raise ValueError(
            f"X must be an array of shape (n_samples, {', '.join(map(str, fitted))}), as in fit: "
            f"{type(estimator).__name__} was fitted on images."
        )


def _warn_channels_last(shape):
    if len(shape) == 3 and shape[0] > 4 and shape[-1] in (1, 3, 4):
        warnings.warn(
            f"X looks like channels-last images of shape {shape}; skcontrast expects "
            "(n_samples, channels, height, width): pass X.transpose(0, 3, 1, 2).",
            UserWarning,
            stacklevel=6,
        )


def validate_labels(y, n_samples, *, needed_by):
    """Return y as integers, −1 where unlabeled.

    Parameters
    ----------
    y : array-like of shape (n_samples,) or None
        Classes, numbers or strings; −1 marks unlabeled samples, as in scikit-learn.
    n_samples : int
        How many there must be.
    needed_by : str
        Name of the loss, for the message.

    Returns
    -------
    labels : ndarray of shape (n_samples,), dtype int64
    """
    if y is None:
        raise ValueError(
            f"{needed_by} requires y to be passed, but the target y is None: pass the classes, "
            "with -1 where they are unknown."
        )
    y = column_or_1d(y)
    if len(y) != n_samples:
        raise ValueError(f"y must have one entry per sample, {n_samples}, got {len(y)}.")
    if y.dtype.kind == "f":
        assert_all_finite(y, input_name="y")
    _, labels = np.unique(y, return_inverse=True)
    unlabeled = y == -1 if y.dtype.kind in "iuf" else np.zeros(len(y), dtype=bool)
    return np.where(unlabeled, -1, labels).astype(np.int64)


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
            mean, std = _mean_and_std(X)
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
        if self.keeps_uint8_ and X.dtype == np.uint8:
            return _as_tensor(X).to(device)
        return self._mapped(X).to(device)

    def _mapped(self, X):
        if self.only_casts_:
            mapped = _as_tensor(X).to(torch.float32)
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


def _as_tensor(X):
    X = np.ascontiguousarray(X)
    # torch warns about arrays it must not write to (memory maps, joblib's shared memory), although
    # nothing here writes.
    if not X.flags.writeable:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="The given NumPy array is not writable")
            return torch.from_numpy(X)
    return torch.from_numpy(X)


def moments(X):
    """Return mean and standard deviation of each column of X, float64, without overflow.

    Columns are scaled by their range before anything is squared; a constant column has exactly
    its value as mean and exactly zero standard deviation.
    """
    low, high = X.min(axis=0).astype(np.float64), X.max(axis=0).astype(np.float64)
    centre, half = low / 2 + high / 2, high / 2 - low / 2
    unit = np.where(half > 0, half, 1.0)
    total, squares = np.zeros_like(centre), np.zeros_like(centre)
    for rows in gen_batches(len(X), 4096):
        deviation = (X[rows] - centre) / unit
        total += deviation.sum(axis=0)
        squares += np.square(deviation).sum(axis=0)
    mean = total / len(X)
    variance = np.maximum(squares / len(X) - mean**2, 0.0)
    return centre + half * mean, half * np.sqrt(variance)


def _mean_and_std(X):
    mean, std = moments(X)
    # As in StandardScaler: what varies less than the rounding of its mean is constant.
    std[std <= 10 * np.finfo(X.dtype).eps * np.abs(mean)] = 1.0
    return mean, np.maximum(std, np.finfo(np.float64).tiny)


def _range(X):
    largest = np.finfo(np.float64).max / 4
    low, high = max(float(X.min()), -largest), min(float(X.max()), largest)
    return low, (high - low) or 1.0
