"""What may be passed as X, checked and named, before any of it becomes a tensor."""

from __future__ import annotations

import math

import numpy as np
import torch
from sklearn.utils import assert_all_finite, column_or_1d
from sklearn.utils.validation import check_array, validate_data
from torch.utils.data import Dataset

from ._source import LazySamples
from .graphs import PackedGraphs, is_graphs, pack_graphs

VECTORS = "vectors"
IMAGES = "images"
GRAPHS = "graphs"


def kind_of(shape):
    """Return ``"vectors"`` for samples of one dimension and ``"images"`` for two or three.

    Parameters
    ----------
    shape : tuple of int
        Shape of one sample: ``(n_features,)``, ``(height, width)``,
        ``(channels, height, width)``, or ``(None, n_node_features)`` for ``"graphs"``.
    """
    if shape[0] is None:
        return GRAPHS
    return VECTORS if len(shape) == 1 else IMAGES


def validate_inputs(estimator, X, *, reset, min_samples=1, check_finite=True):
    """Check X and return it as an array of shape (n_samples, ...).

    Accepts anything that scikit-learn accepts as a 2-D array, images as arrays of shape
    (n_samples, height, width) or (n_samples, channels, height, width), torch tensors, memory
    maps and lists of graphs. Nothing is copied that already is a numeric array.

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
    X : ndarray, LazySamples or PackedGraphs of shape (n_samples, ...)
        uint8 (images only), float32 or float64; lazy for a torch Dataset.

    Raises
    ------
    ValueError
        If X holds NaN, infinity, complex numbers or strings, is empty, has one or more than four
        dimensions, or differs in width or shape from what was fitted.
    """
    X = _as_array_like(X)
    if isinstance(X, PackedGraphs):
        _validate_graphs(estimator, X, reset, min_samples)
        return X
    if isinstance(X, LazySamples):
        _validate_lazy(estimator, X, reset, min_samples)
        return X
    if getattr(X, "ndim", 2) > 4:
        raise ValueError(
            "X must have 2 dimensions (vectors), 3 (grey images) or 4 (images: n_samples, "
            f"channels, height, width), got an array of shape {X.shape}."
        )
    # scikit-learn looks for NaN in the sum of X, which overflows for finite values near 1e308.
    with np.errstate(over="ignore", invalid="ignore"):
        if getattr(X, "ndim", 2) in (3, 4):
            return _validate_images(estimator, X, reset, min_samples)
        return _validate_vectors(estimator, X, reset, min_samples, check_finite)


def join_pair(X, framework):
    """Return X, and where its second array begins if it is a pair of arrays.

    A pair is a tuple of two arrays with the same samples, for a framework that splits samples:
    features, or channels of images, are put side by side.

    Raises
    ------
    ValueError
        If the two are no arrays, or have different numbers of samples, or different kinds or sizes
        of them.
    """
    if framework.structure is None or not isinstance(X, tuple):
        return X, None
    if len(X) != 2:
        raise ValueError(f"X must be an array or a pair of arrays, got a tuple of {len(X)}.")
    parts = [_as_array_like(part) for part in X]
    arrays = [np.asarray(None if isinstance(part, LazySamples) else part) for part in parts]
    if not all(part.ndim for part in arrays):
        kinds = " and ".join(type(part).__name__ for part in X)
        raise ValueError(f"The pair X must hold two arrays of samples, got {kinds}.")
    first, second = (part[:, None] if part.ndim == 3 else part for part in arrays)
    if len(first) != len(second):
        raise ValueError(
            "The two arrays of the pair X must hold the same samples: the first has "
            f"{len(first)}, the second {len(second)}."
        )
    if first.ndim != second.ndim or first.ndim < 2 or first.shape[2:] != second.shape[2:]:
        raise ValueError(
            "The two arrays of the pair X must be vectors both, or images of one height and width "
            f"both, got shapes {first.shape} and {second.shape}."
        )
    return np.concatenate([first, second], axis=1), first.shape[1]


def check_border(border, fitted):
    """Raise ValueError if a pair of arrays is divided elsewhere than X was in fit."""
    if border is None or border == fitted:
        return
    if fitted is None:
        raise ValueError(
            "X is a pair of arrays, but in fit it was one, and not cut into its first and its "
            "other features or channels: pass X as in fit."
        )
    raise ValueError(
        f"The first array of the pair X has {border} features or channels, in fit it had {fitted}."
    )


def _as_array_like(X):
    """Turn what scikit-learn does not know into arrays: tensors, lists of images."""
    if X is None:
        raise ValueError("X must be an array of samples, got None.")
    if is_graphs(X):
        return pack_graphs(X)
    if isinstance(X, Dataset) or _is_cut_from_dataset(X):
        return LazySamples(X)
    if isinstance(X, (list, tuple)) and len(X) and getattr(X[0], "ndim", 0) > 1:
        shapes = {tuple(image.shape) for image in X}
        if len(shapes) > 1:
            hint = " A pair of arrays must be a tuple, and needs framework=CMC()."
            raise ValueError(
                f"The images in X must have one shape, got {len(shapes)}: {sorted(shapes)[:3]}."
                f"{hint if len(X) == 2 else ''}"
            )
        X = torch.stack(list(X)) if isinstance(X[0], torch.Tensor) else np.stack(X)
    if isinstance(X, torch.Tensor):
        X = X.detach().cpu()
        X = (X.float() if X.dtype == torch.bfloat16 else X).numpy()
    return X


def _is_cut_from_dataset(X):
    """Return whether X is a list of tuples (sample, ...), as scikit-learn cuts a Dataset."""
    is_list = isinstance(X, list) and len(X) and isinstance(X[0], tuple) and len(X[0])
    return bool(is_list and getattr(X[0][0], "ndim", 0))


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
    _validate_shape(estimator, X.shape[1:], reset)
    return X


def _validate_lazy(estimator, X, reset, min_samples):
    """Check what the first sample shows; the others are checked as they are read."""
    if not 2 <= X.ndim <= 4:
        raise ValueError(
            "The samples of a Dataset must be vectors, grey images (height, width) or images "
            f"(channels, height, width), got shape {X.shape[1:]}."
        )
    if len(X) < min_samples:
        raise ValueError(
            f"Found a Dataset with {len(X)} sample(s) while a minimum of {min_samples} is "
            "required."
        )
    _validate_shape(estimator, X.shape[1:], reset)


def _validate_graphs(estimator, X, reset, min_samples):
    if len(X) < min_samples:
        raise ValueError(
            f"Found {len(X)} graph(s) in X while a minimum of {min_samples} is required."
        )
    fitted = None if reset else estimator._sample_shape
    if fitted is not None and fitted[0] is not None:
        raise ValueError(
            f"X holds graphs, but {type(estimator).__name__} was fitted on an array of shape "
            f"(n_samples, {', '.join(map(str, fitted))})."
        )
    if fitted is not None and X.shape[2] != fitted[1]:
        raise ValueError(
            f"The graphs in X have {X.shape[2]} node attributes, but {type(estimator).__name__} "
            f"was fitted on graphs with {fitted[1]}."
        )
    if reset:
        estimator._sample_shape = X.shape[1:]
        for name in ("n_features_in_", "feature_names_in_"):
            estimator.__dict__.pop(name, None)


def _validate_shape(estimator, shape, reset):
    _check_no_graphs(estimator, reset)
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
        estimator._sample_shape = shape
        estimator.n_features_in_ = math.prod(shape)
        estimator.__dict__.pop("feature_names_in_", None)


def _check_no_graphs(estimator, reset):
    """Raise ValueError for an array where there were graphs in fit."""
    if not reset and kind_of(estimator._sample_shape) == GRAPHS:
        raise ValueError(
            f"X must be a list of graphs, as in fit: {type(estimator).__name__} was fitted on "
            "graphs."
        )


def _check_sample_ndim(estimator, ndim, *, reset):
    _check_no_graphs(estimator, reset)
    fitted = None if reset else getattr(estimator, "_sample_shape", None)
    if fitted is not None and len(fitted) != ndim:
        raise ValueError(
            f"X must be an array of shape (n_samples, {', '.join(map(str, fitted))}), as in fit: "
            f"{type(estimator).__name__} was fitted on images."
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
        if not np.array_equal(y, np.rint(y)):
            raise ValueError(f"{needed_by} needs classes as y, got numbers that are no integers.")
    if y.dtype.kind in "US" and "-1" in y.astype(str):
        raise ValueError(
            "y holds the string '-1': to mark unlabeled samples among string classes by the "
            "number -1, pass y with dtype=object."
        )
    unlabeled = y == -1 if y.dtype.kind in "iufO" else np.zeros(len(y), dtype=bool)
    labels = np.full(len(y), -1, dtype=np.int64)
    known = y[~unlabeled]
    if y.dtype.kind == "O":
        if any(value is None or value != value for value in known):
            raise ValueError("y holds None or NaN: mark unlabeled samples by -1.")
        known = known.astype(str)
    labels[~unlabeled] = np.unique(known, return_inverse=True)[1]
    return labels


def classes_or_none(y, n_samples):
    """Return y as integers if it holds classes, −1 where unknown; None if it does not.

    Targets of a regression, and labels of which none occurs twice, are no classes.
    """
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.ndim != 1 or (y.dtype.kind == "f" and not np.array_equal(y, np.rint(y))):
        return None
    labels = validate_labels(y, n_samples, needed_by="'auto'")
    _, counts = np.unique(labels[labels >= 0], return_counts=True)
    return labels if len(counts) >= 2 and 2 * len(counts) <= counts.sum() else None


def check_descriptions(descriptions, width):
    """Raise ValueError unless descriptions are as wide as the projection that they are held to."""
    if descriptions is not None and descriptions.shape[1] != width:
        raise ValueError(
            f"descriptions must have shape (n_samples, {width}), as wide as the projection "
            f"('projection_dim'), got {tuple(descriptions.shape)}."
        )


def validate_metadata(metadata, n_samples):
    """Return sample weights and descriptions, each None or a float32 array.

    Parameters
    ----------
    metadata : dict
        What was passed to fit beside X and y.
    n_samples : int
        How many rows there must be.

    Returns
    -------
    sample_weight : ndarray of shape (n_samples,) or None
    descriptions : ndarray of shape (n_samples, d) or None
    """
    unknown = sorted(set(metadata) - {"sample_weight", "descriptions"})
    if unknown:
        raise TypeError(
            f"fit takes X, y, sample_weight and descriptions; got an unexpected {unknown[0]!r}."
        )
    checked = [
        _validate_metadatum(name, metadata.get(name), n_samples, ndim)
        for name, ndim in (("sample_weight", 1), ("descriptions", 2))
    ]
    weight, descriptions = checked
    if weight is not None and (weight.min() < 0 or weight.max() == 0):
        raise ValueError("sample_weight must hold no negative numbers and not only zeros.")
    if descriptions is not None and not descriptions.any():
        raise ValueError("descriptions must not hold only zeros: no sample would be learned from.")
    return checked


def _validate_metadatum(name, value, n_samples, ndim):
    if value is None:
        return None
    if isinstance(value, torch.Tensor):
        value = value.detach().cpu().numpy()
    value = check_array(
        value, ensure_2d=False, dtype=np.float32, input_name=name, ensure_min_samples=0
    )
    if value.ndim != ndim or len(value) != n_samples:
        shape = f"({n_samples},)" if ndim == 1 else f"({n_samples}, d)"
        raise ValueError(f"{name} must have shape {shape}, got {value.shape}.")
    return value
