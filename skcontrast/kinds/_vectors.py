"""Vectors: rows of a table."""

from __future__ import annotations

from decimal import Decimal
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils.validation import validate_data
from torch import Tensor, nn

from .._checks import parameter
from .._checks._constraints import brief
from .._data._array_like import checked_numbers
from .._data._arrays import SparseSamples, column_scaler
from .._warnings import warn
from ._base import Request, Schema
from ._scaling import AffineScaler, ArrayKind, Standardize

# Columns are treated as principal components if the ranks of their deviations correlate with their
# order, and if their correlations are at most this many times those of independent columns
# (benchmarks/studies/results/components.md). Fewer columns may be in this order by chance.
_LEAST_ORDER, _MOST_CORRELATED, _FEWEST_COLUMNS, _MOST_ROWS = 0.9, 3.0, 8, 2000
# Their root mean square is at most this, too: few rows are correlated by chance. With more columns
# this would take long.
_LARGEST_CORRELATION, _MOST_COLUMNS = 0.2, 4096
# The ratio of deviations from which a warning is issued. With 3.6, an embedder lost .2.
_LEAST_FALL = 2.0
_EXPECTED = "vectors of real numbers, shape (n_samples, n_features)"
# Converts a DataFrame with columns of any types, and missing values, to vectors.
_LINE = (
    "make_pipeline(skrub.TableVectorizer(), sklearn.impute.SimpleImputer(), ContrastiveEmbedder())"
)
_GAPS = (
    f"Input X contains NaN, but vectors must have no missing values: impute them, or fit {_LINE}, "
    "without TableVectorizer if all columns are numbers."
)


class Vectors(ArrayKind):
    """Vectors, shape (n_samples, n_features), as for other estimators of scikit-learn.

    Sparse matrices are vectors too. Their rows are made dense batch by batch, never all at once.
    DataFrames of numbers and booleans without missing values are vectors, too; see :ref:`tables`
    for others.

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
    Spectra whose features have the same scale:

    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.kinds import Vectors
    >>> X = np.random.default_rng(0).normal(size=(50, 24))
    >>> kind = Vectors(standardize=False)
    >>> embedder = ContrastiveEmbedder(kind=kind, max_epochs=1, random_state=0)
    >>> embedder.fit_transform(X).shape
    (50, 128)
    """

    name = "vectors"
    expected = "vectors, X of shape (n_samples, n_features)"

    standardize: bool = parameter(["boolean"], default=True)

    def recognise(self, X: Any, *, is_declared: bool = False) -> bool:
        """Return whether X has at most two dimensions."""
        return getattr(X, "ndim", 2) <= 2

    def describes(self, sample_shape: tuple) -> bool:
        """Return whether this is ``(n_features,)``."""
        return len(sample_shape) == 1 and sample_shape[0] is not None

    def _read_array(self, X: Any, request: Request) -> tuple[Any, Schema]:
        if getattr(X, "ndim", 2) > 2:
            request.check_shape(X.shape[1:])
            raise ValueError(
                f"X must hold vectors, shape (n_samples, n_features), got shape {X.shape}: pass "
                "X.reshape(len(X), -1)."
            )
        # scikit-learn sets the names of columns on a copy of the estimator.
        copy = object.__new__(type(request.estimator))
        vars(copy).update(vars(request.estimator))
        (request.seen or Schema(self, ())).assign_names(copy)
        convert = partial(validate_data, copy, accept_sparse="csr", reset=request.seen is None)
        if hasattr(X, "columns"):
            _refuse_columns(X)
            convert(X, skip_check_array=True)
        try:
            X = checked_numbers(X, _EXPECTED, convert)
        except ValueError as error:
            if "contains NaN" not in str(error):
                raise
            raise ValueError(_GAPS) from error
        request.check_shape(X.shape[1:])
        names = getattr(copy, "feature_names_in_", None)
        return SparseSamples(X) if issparse(X) else X, Schema(self, X.shape[1:], X.shape[1], names)

    def check_unusual(self, X: Any, *, is_declared: bool) -> None:
        """Warn of principal components, which are whitened if they are standardised."""
        if is_declared or not self.standardize or not isinstance(X, np.ndarray):
            return
        if _fall_of_components(X) >= _LEAST_FALL:
            warn(
                "The columns of X look like principal components, or the output of "
                "GroupWhitening: they are uncorrelated, and their deviations fall. "
                "Standardisation would whiten them. Pass X before this step, or X / X.std() with "
                "kind=Vectors(standardize=False)."
            )

    def scaler(self) -> VectorScaler:
        """Return the unfitted map from vectors to batches; see `Kind.scaler`."""
        return VectorScaler(self.standardize)

    def first_layer(self, subset: Tensor, scaler: Any, *, channels_last: bool) -> nn.Module:
        """Return a layer that standardises with the statistics of the scaler."""
        return Standardize(scaler.mean_, scaler.std_)


class VectorScaler(AffineScaler):  # numpydoc ignore=PR02
    """The map from vectors to the float32 tensors that augmentations work on.

    Values are only cast, and the network standardises them with ``mean_`` and ``std_``. If
    float32 would lose precision (means far larger than the deviation, values near its limits),
    they are standardised here, in float64, before they are cast.

    Parameters
    ----------
    standardize : bool, default=True
        If False, values are only cast.
    """

    # Offsets of at most this number of standard deviations cost less than 1e-5 of them in float32.
    _NEAR_ZERO = 100.0
    _WELL_INSIDE_FLOAT32 = (1e-30, 1e30)

    def fit(self, X: np.ndarray) -> VectorScaler:
        """Learn the map from X of shape (n_samples, n_features)."""
        self.only_casts_ = True
        self.mean_, self.std_ = np.zeros(X.shape[1]), np.ones(X.shape[1])
        if self.standardize:
            columns = column_scaler(X)
            mean, std = columns.mean_, columns.scale_
            near = (np.abs(mean) / self._NEAR_ZERO <= std).all()
            low, high = self._WELL_INSIDE_FLOAT32
            self.only_casts_ = bool(near and std.min() > low and std.max() < high)
            if self.only_casts_:
                self.mean_, self.std_ = mean, std
            else:
                self.center_, self.scale_ = mean, std
        return self


def _fall_of_components(X: np.ndarray) -> float:
    """Return the ratio of the largest and least deviation of principal components, 0 of others."""
    X = X[:: -(-len(X) // _MOST_ROWS)].astype(np.float64)
    with np.errstate(all="ignore"):  # the scaler reports numbers that are too large
        deviations = X.std(axis=0)
        X, deviations = X[:, deviations > 0], deviations[deviations > 0]
        if not _FEWEST_COLUMNS <= (d := len(deviations)) <= _MOST_COLUMNS:
            return 0.0
        if (X[:, 1:] >= 0).all():  # such as counts and one-hot columns, in order of frequency
            return 0.0
        if np.corrcoef(deviations.argsort().argsort(), np.arange(d))[0, 1] > -_LEAST_ORDER:
            return 0.0
        squares = np.square(np.corrcoef(X.T)).sum() - d
        most = min(_MOST_CORRELATED / len(X) ** 0.5, _LARGEST_CORRELATION)
        is_uncorrelated = squares <= most**2 * d * (d - 1)
        return float(deviations.max() / deviations.min()) if is_uncorrelated else 0.0


def _refuse_columns(X: Any) -> None:
    """Raise TypeError or ValueError for a DataFrame with columns that do not hold numbers."""
    if all(map(_is_numeric, set(X.dtypes))):
        return
    by_name = X.items() if hasattr(X, "items") else zip(X.columns, X.get_columns(), strict=True)
    for name, column in by_name:
        if _is_numeric(column.dtype):
            continue
        known = column.dropna() if hasattr(column, "dropna") else column.drop_nulls()
        # Categories are never missing values.
        numbers = () if hasattr(column.dtype, "categories") else (Real, Decimal, np.bool_)
        example: Any = next((value for value in known if not isinstance(value, numbers)), None)
        if example is None and len(known) < len(column):
            raise ValueError(_GAPS)
        if np.ndim(example) > 0:
            raise TypeError(
                f"Column {name!r} of X holds arrays: pass np.stack(X[{name!r}]) for vectors, "
                "[np.stack(row) for row in X.to_numpy()] for channels of series."
            )
        if example is not None:
            are_numbers = (str(v).strip("+-").replace(".", "", 1).isdigit() for v in known)
            converted = f"X[{name!r}] = pandas.to_numeric(X[{name!r}], errors='coerce')"
            raise TypeError(
                f"Column {name!r} of X must hold numbers, got {brief(example, 40)} (dtype "
                f"{column.dtype}). Pass {_LINE}"
                f"{f', or convert it, {converted}' if any(are_numbers) else ''}."
            )


def _is_numeric(dtype: Any) -> bool:
    """Return whether a dtype of pandas or polars holds numbers, booleans or nothing."""
    if hasattr(dtype, "kind"):
        return dtype.kind in "biufc"
    return dtype.is_numeric() or str(dtype) in ("Boolean", "Null")
