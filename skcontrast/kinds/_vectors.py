"""Vectors: rows of a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data
from torch import Tensor, nn

from .._checks import parameter
from .._checks._constraints import brief
from .._data._array_like import as_array_like, checked_numbers
from .._data._arrays import SparseSamples, mean_and_std
from ._base import Kind, Request, Schema
from ._scaling import AffineScaler, ArrayKind, Standardize

_EXPECTED = (
    "vectors of numbers, shape (n_samples, n_features), into which skrub.TableVectorizer() turns "
    "columns of other types"
)
# Turns a DataFrame with columns of any types, and gaps, into vectors.
_LINE = (
    "make_pipeline(skrub.TableVectorizer(), sklearn.impute.SimpleImputer(), ContrastiveEmbedder())"
)
_GAPS = (
    f"Input X contains NaN, and vectors must not have missing values: fit {_LINE}, without "
    "TableVectorizer if all columns are numbers."
)


class Vectors(ArrayKind):
    """Vectors of numbers, shape (n_samples, n_features): all that scikit-learn takes as X.

    Sparse matrices are vectors too. Their rows are made dense batch by batch, never all at once.
    So are DataFrames of numbers and booleans without missing values; see :ref:`tables` for others.

    Parameters
    ----------
    standardize : bool, default=True
        Whether to scale the input to zero mean and unit variance per feature. If False, vectors
        are not scaled.

    See Also
    --------
    Series, Images : For arrays of three or four dimensions.
    Kind : The base class.

    Examples
    --------
    Spectra whose features are on one scale already:

    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.kinds import Vectors
    >>> X = np.random.default_rng(0).normal(size=(50, 24))
    >>> kind = Vectors(standardize=False)
    >>> embedder = ContrastiveEmbedder(kind=kind, max_epochs=1, random_state=0)
    >>> embedder.fit_transform(X).shape
    (50, 152)
    """

    name = "vectors"
    _expected = "vectors, X of shape (n_samples, n_features)"
    _augmentation_advice = (
        "; choose an augmentation of vectors such as GaussianNoise, or, if they are flattened "
        "images, put Unflatten((channels, height, width)) before it"
    )

    standardize: bool = parameter(["boolean"], default=True)

    def _recognise(self, X: Any, *, is_declared: bool = False) -> bool:
        """Return whether X has at most two dimensions."""
        return getattr(X, "ndim", 2) <= 2

    def _describes(self, sample_shape: tuple) -> bool:
        """Return whether this is ``(n_features,)``."""
        return len(sample_shape) == 1 and sample_shape[0] is not None

    def _read(self, X: Any, request: Request) -> tuple[Any, Schema]:
        request.refuse_graphs(X, self)
        X = as_array_like(X)
        if getattr(X, "ndim", 2) > 2:
            request.check_shape(X.shape[1:])
            raise ValueError(
                f"X must hold vectors, shape (n_samples, n_features), got shape {X.shape}: pass "
                "X.reshape(len(X), -1)."
            )
        stand_in = _stand_in(request)
        convert = partial(validate_data, stand_in, accept_sparse="csr", reset=request.seen is None)
        if hasattr(X, "columns"):
            _refuse_columns(X, was_numeric=request.seen is not None)
            convert(X, skip_check_array=True)  # names, whose errors need no more words
        with _gaps_explained():
            X = checked_numbers(X, _EXPECTED, convert, request.min_samples, request.check_finite)
        request.check_shape(X.shape[1:])
        names = getattr(stand_in, "feature_names_in_", None)
        return SparseSamples(X) if issparse(X) else X, Schema(self, X.shape[1:], X.shape[1], names)

    def scaler(self) -> VectorScaler:
        """Return the map from vectors to batches, unfitted; see `Kind.scaler`."""
        return VectorScaler(self.standardize)

    def _first_layer(self, subset: Tensor, scaler: Any, *, channels_last: bool) -> nn.Module:
        """Return a layer that standardises by the statistics that the scaler has learned."""
        return Standardize(scaler.mean_, scaler.std_)


class VectorScaler(AffineScaler):  # numpydoc ignore=PR02
    """The map from vectors to the float32 tensors that augmentations work on.

    Values are only cast, and the network standardises them with ``mean_`` and ``std_``. Where
    float32 would lose precision (offsets far beyond the spread, magnitudes near its limits), they
    are standardised here, in float64, before they are cast.

    Parameters
    ----------
    standardize : bool, default=True
        If False, values are only cast.
    """

    # Offsets of at most so many standard deviations cost less than 1e-5 of them in float32.
    _NEAR_ZERO = 100.0
    _WELL_INSIDE_FLOAT32 = (1e-30, 1e30)

    def fit(self, X: np.ndarray) -> VectorScaler:
        """Learn the map from X of shape (n_samples, n_features)."""
        self.only_casts_ = True
        self.mean_, self.std_ = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if self.standardize:
            mean, std = X.mean_and_std() if isinstance(X, SparseSamples) else mean_and_std(X)
            near = (np.abs(mean) / self._NEAR_ZERO <= std).all()
            low, high = self._WELL_INSIDE_FLOAT32
            self.only_casts_ = bool(near and std.min() > low and std.max() < high)
            if self.only_casts_:
                self.mean_, self.std_ = mean, std
            else:
                self.center_, self.scale_ = mean, std
        return self

    def to_tensor(self, X: np.ndarray, device: torch.device | str) -> Tensor:
        """Return X as a float32 tensor on a device, without a copy if it is one already."""
        with _gaps_explained():
            return super().to_tensor(X, device)


@contextmanager
def _gaps_explained() -> Iterator[None]:
    """Say in the error about NaN in X how gaps are filled."""
    try:
        yield
    except ValueError as error:
        if "contains NaN" not in str(error):
            raise
        raise ValueError(_GAPS) from error


def _refuse_columns(X: Any, *, was_numeric: bool) -> None:
    """Raise TypeError or ValueError for a DataFrame with columns that are not all of numbers."""
    if all(map(_is_numeric, set(X.dtypes))):
        return
    by_name = X.items() if hasattr(X, "items") else zip(X.columns, X.get_columns(), strict=True)
    for name, column in by_name:
        known = column.dropna() if hasattr(column, "dropna") else column.drop_nulls()
        if (example := _not_a_number(known)) is None:
            if len(known) < len(column):
                raise ValueError(_GAPS)
            continue
        if np.ndim(example) > 0:
            raise TypeError(
                f"Column {name!r} of X holds arrays: pass np.stack(X[{name!r}]) if they are "
                "vectors. If columns are channels of series, pass [np.stack(row) for row in "
                "X.to_numpy()]."
            )
        converted = f"X[{name!r}] = pandas.to_numeric(X[{name!r}], errors='coerce')"
        is_likely = was_numeric or _are_mostly_numbers(known)
        first = f", or convert it, {converted}" if is_likely else ""
        raise TypeError(
            f"Column {name!r} of X must hold numbers, got {brief(example, 40)} (dtype "
            f"{column.dtype}). Pass {_LINE}{first}."
        )


def _is_numeric(dtype: Any) -> bool:
    """Return whether a dtype of pandas or polars is one of numbers, booleans or gaps alone."""
    if hasattr(dtype, "kind"):
        return dtype.kind in "biufc"
    return dtype.is_numeric() or str(dtype) in ("Boolean", "Null")


def _not_a_number(column: Any) -> Any:
    """Return the first value that is not a number, or is a category; None if there is none."""
    numbers = () if hasattr(column.dtype, "categories") else (Real, Decimal, np.bool_)
    is_numeric = _is_numeric(column.dtype)
    return next((x for x in column if not (is_numeric or isinstance(x, numbers))), None)


def _are_mostly_numbers(column: Any) -> bool:
    """Return whether at least half of the values of a column are numbers, perhaps as text."""

    def reads(value: Any) -> bool:
        try:
            return bool(float(value) == float(value))
        except (TypeError, ValueError):
            return False

    is_text = str(column.dtype) in ("object", "str", "string", "String")
    return is_text and 2 * sum(map(reads, column)) >= len(column)


def _stand_in(request: Request) -> Any:
    """Return a copy of the owner on which scikit-learn may set the names that it finds in X."""
    stand_in = object.__new__(type(request.owner))
    vars(stand_in).update(vars(request.owner))
    (request.seen or Schema(Kind(), ())).assign_names(stand_in)
    return stand_in
