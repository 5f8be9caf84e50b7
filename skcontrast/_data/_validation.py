"""What may be passed as X, checked and named, before any of it becomes a tensor."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Set

import numpy as np
import torch
from sklearn.utils.validation import check_array, validate_data
from torch.utils.data import Dataset

from ..graphs import PackedGraphs, is_graphs, pack_graphs
from ._sources import LazySamples

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
    # A sparse matrix of keys is a mapping too, which scikit-learn refuses as sparse.
    if isinstance(X, (Iterator, Mapping, Set)) and not hasattr(X, "shape"):
        advice = ": pass list(X)" if isinstance(X, Iterator) else ""
        raise TypeError(
            f"X must be an array or a sequence of samples, got a {type(X).__name__}{advice}."
        )
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
