"""Conversion of array-likes; anything that is no array of samples raises an error."""

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from numbers import Number
from pathlib import PurePath
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse
from torch.utils.data import DataLoader, Dataset

from .._checks._arguments import check_entries, naming
from .._warnings import warn
from ._arrays import LazySamples, as_array, refuse_nonfinite, row_blocks
from ._modalities import Modalities
from ._pictures import is_picture, pictures_in

# Advice for pairs of samples of the same kind.
PAIRS_ADVICE = (
    "with first and second as arrays, ContrastiveEmbedder(same_group='positive').fit("
    "np.concatenate([first, second]), groups=np.tile(np.arange(len(first)), 2)) learns which rows "
    "belong together"
)


def as_array_like(X: Any, *, one_shape: bool = True, size: int | None = None) -> Any:
    """Convert tensors, images, files and Datasets, which scikit-learn does not read, to arrays.

    Parameters
    ----------
    X : object
        The argument of the user.
    one_shape : bool, default=True
        If False, a sequence of arrays of unequal shapes is returned as a list.
    size : int, default=None
        The height and width of images that are paths or objects of Pillow, see `as_pixels`.

    Raises
    ------
    ValueError, TypeError
        If X is None, an iterator, a mapping or a set, or holds images of several shapes, or has
        more dimensions than images.
    """
    X = _as_list(X)
    if (pictures := pictures_in(X)) is not None:
        return LazySamples(pictures, size)
    _refuse_other(X)
    if hasattr(X, "to_pandas") and hasattr(X, "column_names"):  # pyarrow, Hugging Face
        _refuse_column_of_images(X)
        return X.to_pandas()
    if _is_dataset(X):
        X = LazySamples(X, size)
    _refuse_flat(X)
    if getattr(X, "ndim", 0) == 1 and getattr(X, "dtype", None) == np.dtype(object):
        X = list(X)  # an array of objects, or a Series of pandas
    if isinstance(X, (list, tuple)) and len(X):
        X = _as_one_array(X, one_shape)
    if isinstance(X, torch.Tensor):
        with naming("X", "a dense tensor of numbers"):
            X = as_array(X)
    if getattr(X, "ndim", 2) > 4 or (isinstance(X, LazySamples) and X.ndim < 2):
        raise ValueError(
            "X must have 2 dimensions (vectors), 3 (series or grey images) or 4 (images: "
            f"n_samples, channels, height, width), got an array of shape {X.shape}."
        )
    return X


def _as_list(X: Any) -> Any:
    """Return an array of Arrow, or a Series of polars whose cells hold lists, as a list."""
    if hasattr(X, "to_pylist") and not hasattr(X, "column_names"):
        return X.to_pylist()
    is_polars = hasattr(X, "to_list") and type(X).__module__.startswith("polars")
    return X.to_list() if is_polars and str(X.dtype).startswith(("List", "Array", "B")) else X


def _refuse_other(X: Any) -> None:
    """Raise ValueError or TypeError for anything but samples."""
    if X is None:
        raise ValueError("X must be an array of samples, got None.")
    items = X if isinstance(X, (list, tuple)) else [X]
    if any(isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x) for x in items):
        raise ValueError(
            "X has masked values. Replace them, as X.filled(0) does, or those of series by gaps, "
            "X.filled(numpy.nan)."
        )
    refuse_unordered(X)
    # Two arrays in a tuple may be samples with classes, or two modalities.
    is_pair = isinstance(X, tuple) and len(X) == 2
    _refuse_unread(X)
    if not hasattr(X, "columns"):
        check_entries(X, "X")
    if is_pair and getattr(X[0], "ndim", 0) > 1 and np.shape(X[1]) == X[0].shape[:1]:
        raise TypeError("X is a tuple of samples and their classes: pass both, fit(X, y).")
    if isinstance(X, Modalities) or (is_pair and all(getattr(x, "ndim", 0) > 1 for x in X)):
        raise ValueError(
            f"X is a {type(X).__name__} of several arrays. If they are modalities, pass "
            f"framework=CMC(); if they are pairs of one kind, {PAIRS_ADVICE}."
        )


def _refuse_flat(X: Any) -> None:
    """Raise ValueError if X is empty or one-dimensional."""
    is_row = isinstance(X, (list, tuple)) or getattr(X, "ndim", 0) == 1
    if 0 in (getattr(X, "shape", None) or ())[:1] or (is_row and not len(X)):
        raise ValueError("X is empty: fit needs at least 2 samples, other methods 1.")
    first = next(iter(X)) if is_row else None
    if not (isinstance(first, Number) or getattr(first, "ndim", None) == 0):
        return
    raise ValueError(
        f"X must have two dimensions, (n_samples, n_features), got shape ({len(X)},). Reshape "
        "your data: X[None] is one sample, X[:, None] one feature; of a table, table.iloc[[0]] is "
        "one row, table[['a']] one column."
    )


def _as_one_array(X: Any, one_shape: bool) -> Any:
    """Return a list of samples as one array, or as a list if shapes differ and may differ."""
    # Rectangular lists are vectors.
    lengths = {len(x) for x in X if isinstance(x, (list, tuple))}
    is_ragged = not one_shape and _is_nested(X) and len(lengths) > 1
    if is_ragged or (_is_nested(X) and _is_nested(X[0])):
        with naming("X", "lists of samples, each of one shape"):
            X = [np.asarray(x) for x in X]
    if not one_shape and len({getattr(x, "shape", None) for x in X}) > 1:
        return list(X)
    return _stacked(X) if getattr(X[0], "ndim", 0) > 1 else X


def _is_nested(X: Any) -> bool:
    """Return whether X is a list of lists."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], (list, tuple))


def refuse_unordered(X: Any) -> None:
    """Raise TypeError for iterators, mappings, sets and the like, which have no rows."""
    is_unordered = isinstance(X, (Iterator, Mapping, Set, DataLoader))
    # scikit-learn refuses a dok_matrix, which is a mapping too, as a sparse matrix.
    if type(X).__name__ == "LazyFrame":
        raise TypeError("X must hold samples, got a LazyFrame: pass X.collect().")
    if hasattr(X, "map_partitions") or (is_unordered and not hasattr(X, "shape")):
        raise TypeError(
            f"X must be an array, a sequence of samples or a Dataset, got a {type(X).__name__}. "
            "To read an iterator, pass list(X); a dict, pass pandas.DataFrame(X); a DataLoader, "
            "pass loader.dataset; Dask, pass X.compute()."
        )


def _refuse_unread(X: Any) -> None:
    """Raise TypeError for paths, single images, texts and other objects that are no samples."""
    if isinstance(X, (str, PurePath)):
        raise TypeError(
            f"X must hold samples, got {str(X)!r}: for a folder of images, pass "
            "skcontrast.datasets.ImageFolder(folder); read other files first."
        )
    if is_picture(X):
        raise TypeError("X must hold samples, got a single PIL image: pass a list, [image].")
    is_row = isinstance(X, (list, tuple)) or getattr(X, "ndim", 0) == 1
    first: Any = next(iter(X), None) if is_row else None
    if isinstance(first, Mapping):
        raise TypeError(
            "X is a list of dicts: pass pandas.DataFrame(X) if they are rows of a table, "
            "[networkx.node_link_graph(x) for x in X] if they are graphs."
        )
    if issparse(first):
        raise TypeError(
            "X is a list of sparse matrices. If they are adjacency matrices of graphs, pass "
            "[networkx.from_scipy_sparse_array(A) for A in X], else scipy.sparse.vstack(X)."
        )
    if isinstance(first, str):
        raise TypeError(
            f"X holds texts, such as {first[:40]!r}, not numbers. Pass molecules as graphs, see "
            "'Molecules' in the user guide, categories by skrub.TableVectorizer() or "
            "OneHotEncoder(), and other texts to ContrastiveClassifier as vectors of a language "
            "model or of TfidfVectorizer, with groups if there are any."
        )
    # Read as a Dataset, pairs of samples would lose their second sample.
    shapes = {getattr(x, "shape", None) for x in first} if isinstance(first, tuple) else set()
    if len(shapes) == 1 and len(first) > 1 and not shapes & {None, ()}:
        tuples = "pairs of samples" if len(first) == 2 else f"tuples of {len(first)} samples"
        raise TypeError(f"X is a list of {tuples}: {PAIRS_ADVICE}.")


def _refuse_column_of_images(X: Any) -> None:
    """Raise TypeError for a Hugging Face dataset with a column of images."""
    first = X[0] if X.column_names and len(X) else None
    for name, value in first.items() if isinstance(first, Mapping) else ():
        if is_picture(value):
            raise TypeError(f"X has images in a column: pass X[{name!r}], and its classes as y.")


def _stacked(images: Any) -> NDArray:
    # numpy's error would not show the shapes.
    shapes = {tuple(x.shape) if hasattr(x, "shape") else type(x).__name__ for x in images}
    if len(shapes) > 1:
        raise ValueError(
            f"The samples in X must have one shape, got {sorted(shapes, key=str)[:3]}. Bring "
            "images to one size, such as by ImageFolder(folder, size=32); series (n_channels, "
            "n_times) may differ in n_times; modalities are a tuple for framework=CMC()."
        )
    return np.stack([as_array(x) if isinstance(x, torch.Tensor) else x for x in images])


def _is_dataset(X: Any) -> bool:
    """Return whether X is a Dataset, or a list of items that scikit-learn selected from one."""
    if isinstance(X, list):  # of tuples (sample, ...)
        has_tuples = len(X) and isinstance(X[0], tuple) and len(X[0])
        return bool(has_tuples and getattr(X[0][0], "ndim", 0))
    is_array = isinstance(X, Sequence) or hasattr(X, "shape") or hasattr(X, "__array__")
    return isinstance(X, Dataset) or (hasattr(type(X), "__getitem__") and not is_array)


def warn_of_panel(X: Any) -> None:
    """Warn of a table of pandas whose index ends with times, as panels of series have."""
    index: Any = getattr(X, "index", None)
    levels: Any = getattr(index, "levels", ())
    if len(levels) < 2:
        return
    name = str(index.names[-1]).lower()
    if levels[-1].dtype.kind in "mM" or name in ("time", "times", "timepoint", "timepoints"):
        level = 0 if len(levels) == 2 else list(range(len(levels) - 1))
        warn(
            f"X has an index that ends with times, but its {len(X)} rows are read as vectors. For "
            f"one series per item, pass [part.to_numpy().T for _, part in X.groupby({level=})]; "
            "kind='vectors' silences this."
        )


def checked_numbers(
    X: Any, expected: str, convert: Callable[..., Any], *, check_finite: bool = True
) -> Any:
    """Return X as an array of finite numbers.

    A copy of X in float64 may not fit into memory, while its batches do. So only dtypes that torch
    lacks, such as long doubles and objects, are converted, and NaN and infinity are searched for
    in a few rows at a time. Lazy samples are validated when they are read.

    Parameters
    ----------
    X : object
        Returned by `as_array_like`.
    expected : str
        A description of valid values.
    convert : callable
        ``sklearn.utils.check_array``, or a function of the same arguments.
    check_finite : bool, default=True
        Whether NaN and infinity raise an error.
    """
    if not isinstance(X, LazySamples):
        check_entries(X, "X")
        original = getattr(X, "dtype", None)
        is_number = (
            isinstance(original, np.dtype) and original.kind in "biufc" and original.itemsize <= 8
        )
        dtype: Any = "numeric" if is_number or hasattr(X, "columns") else np.float64
        if issparse(X):
            dtype = [np.float64, np.float32]
        with naming("X", expected, X):
            X = convert(X, dtype=dtype, ensure_all_finite=False)
            for rows in ([X.data] if issparse(X) else row_blocks(X)) if check_finite else ():
                refuse_nonfinite(rows)
    if 0 in X.shape[1:]:
        raise ValueError(
            f"Found samples of shape {X.shape[1:]} in X: every dimension must be at least 1."
        )
    return X
