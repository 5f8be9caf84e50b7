"""Arrays in the forms in which users pass them; what is no array of samples is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from numbers import Number
from pathlib import PurePath
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from torch.utils.data import DataLoader, Dataset

from .._checks import check_entries, naming
from ._arrays import LazySamples, as_array, map_of, refuse_nonfinite, row_blocks
from ._parts import Parts
from ._pictures import is_picture, pictures_in

# What to do with samples that belong together in pairs.
PAIRS_ADVICE = (
    "with first and second as arrays, ContrastiveEmbedder(same_group='positive').fit("
    "np.concatenate([first, second]), groups=np.tile(np.arange(len(first)), 2)) learns which rows "
    "belong together"
)
# Dtypes of numbers that stay as they are; what scikit-learn reads of others gets the first.
_NUMBERS = [
    np.float64, np.float32, np.float16, np.bool_, np.int8, np.int16, np.int32, np.int64,
    np.uint8, np.uint16, np.uint32, np.uint64,
]  # fmt: skip
_SPARSE_NUMBERS = [np.float64, np.float32]
# Dtypes whose finiteness scikit-learn looks at without a copy.
_CHECKED_IN_PLACE = (np.dtype(np.float32), np.dtype(np.float64))


def as_array_like(X: Any, *, one_shape: bool = True, size: int | None = None) -> Any:
    """Convert what scikit-learn does not read to arrays: tensors, images, files, Datasets.

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
    if (pictures := pictures_in(X)) is not None:
        return LazySamples(pictures, size)
    _refuse_other(X)
    if hasattr(X, "to_pandas") and hasattr(X, "column_names"):  # pyarrow, Hugging Face
        _refuse_column_of_images(X)
        return X.to_pandas()
    if isinstance(X, Dataset) or _acts_like_dataset(X) or _is_cut_from_dataset(X):
        X = LazySamples(X, size)
    _refuse_flat(X)
    if getattr(X, "ndim", 0) == 1 and getattr(X, "dtype", None) == np.dtype(object):
        X = list(X)  # an array of objects, or a Series of pandas
    if isinstance(X, (list, tuple)) and len(X):
        X = _joined(X, one_shape)
    if isinstance(X, torch.Tensor):
        with naming("X", "a dense tensor of numbers"):
            X = as_array(X)
    check_dimensions(X)
    return X


def _refuse_other(X: Any) -> None:
    """Raise ValueError or TypeError for what is no samples, or more than them."""
    if X is None:
        raise ValueError("X must be an array of samples, got None.")
    refuse_unordered(X)
    # Two arrays in a tuple may be samples with classes, or two parts of samples.
    is_pair = isinstance(X, tuple) and len(X) == 2
    for one in (X, *X) if is_pair else (X,):
        refuse_lazy(one)
    _refuse_unread(X)
    if not hasattr(X, "columns"):
        check_entries(X, "X")
    if is_pair and getattr(X[0], "ndim", 0) > 1 and np.shape(X[1]) == X[0].shape[:1]:
        raise TypeError("X is a tuple of samples and their classes: pass both, fit(X, y).")
    if isinstance(X, Parts) or (is_pair and all(getattr(x, "ndim", 0) > 1 for x in X)):
        raise ValueError(
            f"X is a {type(X).__name__} of several arrays. If they are parts of each sample, pass "
            f"framework=CMC(); if they are pairs of one kind, {PAIRS_ADVICE}."
        )
    _refuse_pairs(X)


def _refuse_flat(X: Any) -> None:
    """Raise ValueError if X holds nothing, or numbers in one dimension."""
    is_row = isinstance(X, (list, tuple)) or getattr(X, "ndim", 0) == 1
    if getattr(X, "shape", None) == (0, 0) or (is_row and not len(X)):
        raise ValueError("X is empty: fit needs at least 2 samples, other methods 1.")
    first = next(iter(X)) if is_row else None
    if not (isinstance(first, Number) or getattr(first, "ndim", None) == 0):
        return
    if hasattr(X, "to_frame"):
        got, advice = "a Series", "table.iloc[[0]] is one row of a table, table[['a']] one column"
    else:
        got, advice = f"shape ({len(X)},)", "X[None] is one sample, X[:, None] one feature"
    raise ValueError(
        f"X must have two dimensions, (n_samples, n_features), got {got}. Reshape your data: "
        f"{advice}."
    )


def _joined(X: Any, one_shape: bool) -> Any:
    """Return a list of samples as one array, as a list where shapes may and do differ."""
    if _is_nested(X) and _is_nested(X[0]):
        with naming("X", "lists of samples, each of one shape"):
            X = [np.asarray(x) for x in X]
    if not one_shape and len({getattr(x, "shape", None) for x in X}) > 1:
        return list(X)
    return _stacked(X) if getattr(X[0], "ndim", 0) > 1 else X


def _is_nested(X: Any) -> bool:
    """Return whether X is a list of lists."""
    return isinstance(X, (list, tuple)) and len(X) > 0 and isinstance(X[0], (list, tuple))


def _acts_like_dataset(X: Any) -> bool:
    """Return whether X has a length and items only, as what torch's DataLoader takes."""
    is_array = any(hasattr(X, name) for name in ("shape", "__array__", "__array_interface__"))
    has_items = hasattr(X, "__len__") and hasattr(X, "__getitem__")
    is_other = is_array or isinstance(X, (Sequence, type)) or hasattr(X, "__iter__")
    return has_items and not is_other


def refuse_unordered(X: Any) -> None:
    """Raise TypeError for an iterator, a mapping or a set, which have no length or no order."""
    if isinstance(X, DataLoader):
        raise TypeError(
            "X must be an array, a sequence of samples or a Dataset, got a DataLoader: pass its "
            "Dataset, loader.dataset."
        )
    # scikit-learn refuses a dok_matrix, which is a mapping too, as a sparse matrix.
    if isinstance(X, (Iterator, Mapping, Set)) and not hasattr(X, "shape"):
        advice = ": pass list(X)" if isinstance(X, Iterator) else ""
        if isinstance(X, Mapping):
            advice = ": if it holds columns, pass pandas.DataFrame(X)"
        raise TypeError(
            f"X must be an array or a sequence of samples, got a {type(X).__name__}{advice}."
        )


def refuse_lazy(X: Any) -> None:
    """Raise TypeError for a DataFrame of dask or a LazyFrame of polars, which hold no values."""
    name, module = type(X).__name__, type(X).__module__.partition(".")[0]
    if name == "LazyFrame":
        raise TypeError("X is a LazyFrame: pass X.collect().")
    if module == "dask" and hasattr(X, "columns"):
        raise TypeError("X is a DataFrame of dask: pass X.compute().")


def _refuse_unread(X: Any) -> None:
    """Raise TypeError for files, pictures, texts and others that are read by something else."""
    if isinstance(X, (str, PurePath)):
        raise TypeError(
            f"X must hold samples, got {str(X)!r}: for a folder of images, pass "
            "skcontrast.datasets.ImageFolder(folder); read other files first."
        )
    if is_picture(X):
        raise TypeError("X must hold samples, got one image of Pillow: pass a list, [image].")
    is_column = getattr(X, "ndim", 0) > 0 and tuple(X.shape[1:]) in ((), (1,))
    is_column = is_column and not hasattr(X, "columns")
    items: Any = X if is_column or isinstance(X, (list, tuple)) else ()
    first: Any = next(iter(items), None)
    if isinstance(first, np.ndarray) and first.shape == (1,):
        first = first[0]
    for is_one, message in _UNREAD.items():
        if is_one(first):
            raise TypeError(message.format(str(first)[:40]))


def _refuse_column_of_images(X: Any) -> None:
    """Raise TypeError for a Dataset of Hugging Face with images, which are no table."""
    first = X[0] if X.column_names and len(X) else None
    for name, value in first.items() if isinstance(first, Mapping) else ():
        if is_picture(value):
            raise TypeError(f"X has images in a column: pass X[{name!r}], and its classes as y.")


_NOT_NUMBERS = (
    ", not numbers. Molecules become graphs, see 'Molecules' on the page 'Graphs' of the user "
    "guide; other texts become vectors first, by TfidfVectorizer or a language model; categories, "
    "by skrub.TableVectorizer() or OneHotEncoder()."
)
# Samples that something else has to read first, and what a message says of a list of them.
_UNREAD: dict[Callable[[Any], bool], str] = {
    lambda x: isinstance(x, Mapping): "X is a list of dicts: pass pandas.DataFrame(X) if "
    "they are rows of a table, [networkx.node_link_graph(x) for x in X] if they are graphs.",
    lambda x: isinstance(x, str): f"X holds texts, such as {{!r}}{_NOT_NUMBERS}",
    lambda x: hasattr(x, "columns") and hasattr(x, "to_numpy"): "X is a list of DataFrames: if "
    "their rows are steps of series, pass [x.to_numpy().T for x in X]; if they are batches of one "
    "table, pandas.concat(X).",
}


def _refuse_pairs(X: Any) -> None:
    """Raise TypeError for pairs of samples, of which a Dataset's items would be the first."""
    first = X[0] if isinstance(X, list) and X else None
    if not (isinstance(first, tuple) and len(first) > 1):
        return
    shapes = {getattr(x, "shape", None) for x in first}
    if len(shapes) == 1 and shapes != {None} and shapes != {()}:
        found = "pairs of samples" if len(first) == 2 else f"tuples of {len(first)} samples"
        raise TypeError(f"X is a list of {found}: {PAIRS_ADVICE}.")


def _stacked(images: Any) -> Any:
    is_torch = isinstance(images[0], torch.Tensor)
    for place, image in enumerate(images):
        if not hasattr(image, "shape") or isinstance(image, torch.Tensor) != is_torch:
            raise TypeError(
                f"X must hold samples of one type: item {place} is a {type(image).__name__}, "
                f"item 0 a {type(images[0]).__name__}."
            )
    # numpy and torch would say only that they cannot be stacked.
    shapes = {tuple(image.shape) for image in images}
    if len(shapes) > 1:
        hint = (
            " A pair of arrays must be a tuple and needs framework=CMC(); series, kind='series'."
        )
        raise ValueError(
            f"The samples in X must have one shape, got {len(shapes)}: {sorted(shapes)[:3]}. "
            f"{_advice_on_shapes(shapes)}{hint if len(images) == 2 else ''}"
        )
    return torch.stack(list(images)) if is_torch else np.stack(images)


def _is_cut_from_dataset(X: Any) -> bool:
    """Return whether X is a list of tuples (sample, ...), as scikit-learn cuts a Dataset."""
    is_list = isinstance(X, list) and len(X) and isinstance(X[0], tuple) and len(X[0])
    return bool(is_list and getattr(X[0][0], "ndim", 0))


def check_dimensions(X: Any) -> None:
    """Raise ValueError for arrays with more dimensions than images have."""
    if isinstance(X, LazySamples) and not 2 <= X.ndim <= 4:
        raise ValueError(
            "The samples of a Dataset must be vectors, series (channels, times), grey images "
            f"(height, width) or images (channels, height, width), got shape {X.shape[1:]}."
        )
    if getattr(X, "ndim", 2) > 4:
        raise ValueError(
            "X must have 2 dimensions (vectors), 3 (series or grey images) or 4 (images: "
            f"n_samples, channels, height, width), got an array of shape {X.shape}."
        )


def checked_numbers(
    X: Any, expected: str, convert: Callable[..., Any], min_samples: int, check_finite: bool
) -> Any:
    """Return X as numbers, finite ones, and lazy samples after a look at the first.

    A copy of X in float64 may not fit into memory, while its batches do. So only what torch has no
    numbers for is converted, such as long doubles and objects, and NaN and infinity are looked for
    in a few rows at a time where scikit-learn would copy X.

    Parameters
    ----------
    X : object
        Returned by `as_array_like`.
    expected : str
        A description of valid values.
    convert : callable
        ``sklearn.utils.check_array``, or what takes the same arguments.
    min_samples, check_finite : int, bool
        As in `Request`.
    """
    if isinstance(X, LazySamples):  # of which the first is known; others are checked when read
        if len(X) < min_samples:
            raise ValueError(
                f"X is a Dataset with {len(X)} sample(s) while a minimum of {min_samples} is "
                "required."
            )
        _refuse_empty(X)
        return X
    check_entries(X, "X")
    is_sparse, own = issparse(X), getattr(X, "dtype", None)
    is_number = isinstance(own, np.dtype) and own.kind in "biuf" and own.itemsize <= 8
    dtypes = _SPARSE_NUMBERS if is_sparse else [*_NUMBERS, *([own] if is_number else ())]
    is_simple = own in _CHECKED_IN_PLACE and map_of(X) is None
    in_place = is_sparse or is_simple or getattr(own, "kind", "") != "f"
    # scikit-learn looks for NaN in the sum of X, which overflows for finite values near 1e308.
    with np.errstate(over="ignore", invalid="ignore"), naming("X", expected, X):
        finite = check_finite and in_place
        X = convert(X, dtype=dtypes, ensure_all_finite=finite, ensure_min_samples=min_samples)
        if check_finite and not in_place:
            for rows in row_blocks(X):
                refuse_nonfinite(rows)
    _refuse_empty(X)
    return X


def _refuse_empty(X: Any) -> None:
    if 0 in X.shape[1:]:
        raise ValueError(
            f"Found samples of shape {X.shape[1:]} in X: every dimension must be at least 1."
        )


def _advice_on_shapes(shapes: set[tuple[int, ...]]) -> str:
    """Return the end of a message about arrays of several shapes."""
    if all(len(shape) == 2 and shape[0] == shape[1] for shape in shapes):
        return (
            "Adjacency matrices become graphs: pass [networkx.from_numpy_array(x) for x in X]. "
            "Images must have one size."
        )
    return (
        "Images must have one size, to which ImageFolder(folder, size=32) brings files. Series "
        "(n_channels, n_times) may differ in n_times alone."
    )
