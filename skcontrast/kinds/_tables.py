"""Tables: columns of numbers, categories and times, with gaps."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from torch import Tensor, nn

from .._checks import POSITIVE_INT, learned, parameter, validate_parameters
from .._data._array_like import refuse_unordered
from .._data._arrays import mean_and_std
from .._data._columns import ColumnType, Table, Values, mixed_table
from .._warnings import warn
from ._base import Kind, Request, Schema
from ._scaling import AffineScaler, ArrayKind, rows_for
from ._table_input import TableInput, feature_names, n_features

_DAY = 86400.0
_PERIODS = (_DAY, 7 * _DAY, 365.2425 * _DAY)
# A date as a string, with or without a time.
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?\b|\d\d?([./])\d\d?\1\d{2,4}\b")
# The name of rare categories in views that are shown.
_RARE = "<rare>"
# Of a column; less frequent ones are rare.
_MOST_CATEGORIES = 1000


@dataclass(frozen=True)
class Column:
    """A column as `fit` saw it.

    Attributes
    ----------
    label : str
        Its name in messages.
    type : {"number", "duration", "time", "category"}
        The type of its values. A column without any value counts as one of numbers.
    categories : tuple of str
        Its categories that are not rare: the code of a category is its place.
    has_rare, has_gaps : bool
        Whether it has rare categories, and gaps.
    periods : tuple of float
        Lengths in seconds of the cycles that its times go through.
    zone : str
        The time zone of its times; "" where they have none, or several.
    """

    label: str
    type: ColumnType
    categories: tuple[str, ...] = ()
    has_rare: bool = False
    has_gaps: bool = False
    periods: tuple[float, ...] = ()
    zone: str = field(default="", compare=False)

    def encode(self, values: Values) -> NDArray[np.float64]:
        """Return a column as numbers: codes for categories, NaN for gaps."""
        if values.type == "gaps":
            return values.numbers
        values = self._as_in_fit(values)
        if values.type != self.type:
            raise ValueError(
                f"Column {self.label} of X held values of the type {self.type!r} in fit, now of "
                f"the type {values.type!r}."
            )
        if self.type == "category":
            codes = {name: float(code) for code, name in enumerate(self.categories)}
            rare = float(len(codes))  # of categories that fit has not seen
            labels = values.labels
            return np.array([np.nan if name is None else codes.get(name, rare) for name in labels])
        if np.isinf(values.numbers).any():
            raise ValueError(f"Column {self.label} of X contains infinity.")
        if self.zone and values.zone and self.zone != values.zone:
            warn(
                f"Column {self.label} of X held times of the zone {self.zone} in fit, now of "
                f"{values.zone}: times count as clocks showed them. Convert them if they were "
                "taken in one place."
            )
        return values.numbers

    def _as_in_fit(self, values: Values) -> Values:
        """Return values in the type of `fit` where they mean the same."""
        if values.type == self.type:
            return values
        if self.type == "category":
            of_flags = self.categories and set(self.categories) <= {"False", "True"}
            if of_flags and np.isin(values.numbers[~np.isnan(values.numbers)], [0, 1]).all():
                return values.as_flags()
            has_numbers = not self.categories or any(map(_is_number, self.categories))
            return values.as_categories() if has_numbers else values
        if values.type == "category" and set(values.labels) <= {"False", "True", None}:
            flags = {"False": 0.0, "True": 1.0, None: np.nan}
            return Values("number", np.array([flags[name] for name in values.labels]))
        return values

    def decode(self, codes: NDArray[np.float64]) -> NDArray[np.object_]:
        """Return encoded values as numbers, names of categories or times; gaps are None."""
        found = np.empty(len(codes), dtype=object)
        if self.type == "category":
            names = [*self.categories, _RARE]
            found[:] = [None if code != code else names[round(code)] for code in codes.tolist()]
            return found
        known = ~np.isnan(codes)
        values = codes[known]
        if self.type == "time":  # float32 does not resolve fractions of a second
            values = np.rint(values).astype("datetime64[s]")
        elif self.type == "duration":
            values = np.rint(values * 1e6).astype("timedelta64[us]")
        found[known] = values.tolist()
        return found


def _is_number(name: str) -> bool:
    try:
        float(name)
    except ValueError:
        return False
    return True


def _learned(values: Values, label: str, min_frequency: int) -> Column:
    """Return what there is to know about a column of training samples."""
    if values.type != "category":
        gaps = np.isnan(values.numbers)
        type_: ColumnType = "number" if values.type == "gaps" else values.type
        periods = _periods(values.numbers[~gaps]) if type_ == "time" else ()
        has_gaps = bool(gaps.any())
        return Column(label, type_, has_gaps=has_gaps, periods=periods, zone=values.zone)
    counts = Counter(values.labels)
    n_gaps = counts.pop(None, 0)
    frequent = [item for item in counts.items() if item[1] >= min_frequency]
    kept = sorted(frequent, key=lambda item: (-item[1], item[0]))[:_MOST_CATEGORIES]
    names = tuple(sorted(str(name) for name, _ in kept))
    return Column(label, "category", names, len(names) < len(counts), n_gaps > 0)


def _periods(seconds: NDArray[np.float64]) -> tuple[float, ...]:
    """Return the periods that times go through, in which not all are at one point."""
    if not len(seconds) or np.isinf(seconds).any():
        return ()
    span = np.ptp(seconds)
    return tuple(T for T in _PERIODS if span >= T and np.ptp(seconds % T) > 0)


class Tables(ArrayKind):
    """Tables, (n_samples, n_columns): numbers, categories, booleans and times, with gaps.

    A DataFrame of pandas or polars is a table if one of its columns is not of numbers or has
    gaps. Other data is read as a table only where it is declared, ``kind="tables"``. Strings,
    booleans and the categorical types of pandas and polars are categories; times are numbers, and
    the network also sees the time of day, the day of the week and the season, as clocks showed
    them where the table was made. None, NaN, NA and NaT are gaps.

    Each column stays one column in batches, so that augmentations swap whole values. The first
    layer of the network turns columns into features: standardised numbers, 0 for a gap, and a
    second feature that is 1 for gaps where there were any in `fit`; one-hot vectors of up to 256
    categories, learned embeddings of more of them [1]_, of width ``round(1.6 n ** 0.56)`` for n
    categories [2]_. The encoder gets these features as a vector, so that encoders of vectors
    suit tables.

    In `transform`, columns are found by their names, in any order. A category that `fit` did not
    see counts as a rare one.

    Parameters
    ----------
    categorical : list of str or int, default=None
        Names or positions of columns of numbers that are categories, such as codes.
    min_frequency : int, default=2
        Categories that occur less often in `fit` are rare, and so are all but the 1,000 most
        frequent ones; all rare categories of a column are one. So the names of persons, for
        example, are all the same, and do no harm.
    standardize : bool, default=True
        Whether to scale columns of numbers to zero mean and unit variance.

    Attributes
    ----------
    columns_ : tuple of Column
        The columns of `fit`; only on the copy of the kind in a fitted embedder.

    See Also
    --------
    Vectors : For numbers without gaps.
    skcontrast.augmentation.MarginalCorruption : The default augmentation of tables.

    References
    ----------
    .. [1] C. Guo, F. Berkhahn, "Entity Embeddings of Categorical Variables", 2016.
    .. [2] J. Howard, S. Gugger, "fastai: A Layered API for Deep Learning", Information 11(2),
       2020.

    Examples
    --------
    >>> import pandas as pd
    >>> from skcontrast import ContrastiveEmbedder
    >>> X = pd.DataFrame(
    ...     {
    ...         "age": [22, 38, None, 35, 54] * 8,
    ...         "port": ["Southampton", "Cherbourg", None, "Queenstown", "Southampton"] * 8,
    ...         "born": pd.date_range("1870-01-01", periods=40, freq="100D"),
    ...     }
    ... )
    >>> embedder = ContrastiveEmbedder(max_epochs=1, random_state=0).fit(X)
    >>> embedder.transform(X[["port", "born", "age"]]).shape
    (40, 27)

    Codes that are categories, in an array:

    >>> from skcontrast.kinds import Tables
    >>> kind = Tables(categorical=[1])
    >>> embedder = ContrastiveEmbedder(kind=kind, max_epochs=1, random_state=0)
    >>> embedder.fit_transform([[22.0, 3], [None, 1], [35.0, 1], [54.0, 3]]).shape
    (4, 20)
    """

    name = "tables"
    _expected = "tables, X as a DataFrame"
    _augmentation_advice = (
        "; choose an augmentation of tables such as MarginalCorruption, or encode the columns as "
        "numbers before it"
    )
    _holds_arrays = False

    categorical: Sequence[str | int] | None = parameter(["array-like", None], default=None)
    min_frequency: int = parameter(POSITIVE_INT, default=2)
    standardize: bool = parameter(["boolean"], default=True)

    columns_: tuple[Column, ...] = learned()

    def _recognise(self, X: Any, *, is_declared: bool = False) -> Any | None:
        """Return a `Table` if X is a DataFrame with gaps or a column that is not of numbers."""
        return Table(X) if is_declared else mixed_table(X)

    def _read(self, X: Any, request: Request) -> tuple[Any, Schema]:
        if not isinstance(X, Table):
            request.refuse_graphs(X, self)
            refuse_unordered(X)
        table, seen = X if isinstance(X, Table) else Table(X), request.seen
        request.check_length(table.X)
        if not table.shape[1]:
            raise ValueError(
                f"Found array with 0 feature(s) (shape={table.shape}) while a minimum of 1 is "
                f"required by {request.name}."
            )
        # Columns are found by name, in whatever order, and coded as in fit.
        if seen is not None:
            places = _places(table, seen, request.name)
            columns = zip(seen.kind.columns_, places, strict=True)
            coded = [column.encode(table.values(place)) for column, place in columns]
            return np.column_stack(coded), seen
        kind, coded = self._with_columns(table)
        n = table.shape[1]
        return np.column_stack(coded), Schema(kind, (n,), n, table.names)

    def _with_columns(self, table: Table) -> tuple[Tables, list[NDArray[np.float64]]]:
        """Return a copy of the kind that knows the columns of a table, and the coded columns."""
        validate_parameters(self)
        categorical = _positions(self.categorical, table)
        found = [table.values(j) for j in range(table.shape[1])]
        found = [v.as_categories() if j in categorical else v for j, v in enumerate(found)]
        kind = clone(self)
        kind.columns_ = tuple(
            _learned(values, table.label(j), self.min_frequency) for j, values in enumerate(found)
        )
        return kind, [c.encode(values) for c, values in zip(kind.columns_, found, strict=True)]

    def _check_unusual(self, X: Any, *, is_declared: bool) -> None:
        """Warn about columns of categories that are rare, or that are dates."""
        # Names and keys: a column of which every category is rare tells nothing.
        useless = [c.label for c in self.columns_ if c.has_rare and not c.categories]
        if useless:
            warn(
                f"In column {_listed(useless)} of X, no "
                f"category occurs {self.min_frequency} times: all count as one. Drop names and "
                "keys, and convert what strings say: numbers, times by pandas.to_datetime, texts "
                "to vectors."
            )
        declared = () if self.categorical is None else map(repr, self.categorical)
        texts = (c for c in self.columns_ if c.categories and c.label not in declared)
        dates = [column.label for column in texts if all(map(_DATE.match, column.categories))]
        if dates:
            warn(
                f"Column {_listed(dates)} of X holds dates "
                "as strings, which are read as categories without an order: pass them through "
                "pandas.to_datetime, or declare them, kind=Tables(categorical=[...])."
            )

    def _reads_like(self, other: Kind) -> bool:
        """Return whether another kind gives the same codes to the same table."""
        return isinstance(other, Tables) and self.columns_ == other.columns_

    def _numeric(self, n_features: int) -> NDArray[np.bool_]:
        """Return which columns hold numbers or times."""
        return np.array([column.type != "category" for column in self.columns_])

    def scaler(self) -> TableScaler:
        """Return the map from coded columns to batches, unfitted; see `Kind.scaler`."""
        return TableScaler(self.columns_, self.standardize)

    def _encoded_shape(self, sample_shape: tuple) -> tuple:
        """Return ``(n_features,)``, of the features that the first layer makes of a row."""
        return (n_features(self.columns_),)

    def _encoded_names(self, names: Sequence[str]) -> list[str]:
        """Return names of the features, such as ``port_Cherbourg`` and ``age_missing``."""
        return feature_names(self.columns_, names)

    def _first_layer(self, subset: Tensor, scaler: Any, *, channels_last: bool) -> nn.Module:
        """Return a `TableInput`."""
        moments = map(torch.from_numpy, (scaler.center_, scaler.scale_))
        return TableInput(self.columns_, *moments)

    def _rows_per_call(self, X: Any) -> int:
        """Return the number of rows that have about a million features."""
        return rows_for(n_features(self.columns_))


def _listed(labels: list[str]) -> str:
    return f"{', '.join(labels[:5])}{' ...' if len(labels) > 5 else ''}"


def _positions(categorical: Any, table: Table) -> set[int]:
    """Return the positions of the columns that are declared categorical."""
    names = [] if table.names is None else table.names.tolist()
    found = set()
    categorical = () if categorical is None else categorical
    if not hasattr(type(categorical), "__iter__") or getattr(categorical, "ndim", 1) != 1:
        raise ValueError(
            "The 'categorical' parameter of Tables must be a list of columns of X, got "
            f"{categorical!r}."
        )
    for column in categorical:
        if (place := place_of(column, names, table.shape[1])) is None:
            raise ValueError(
                f"The 'categorical' parameter of Tables must name columns of X, got {column!r}."
            )
        found.add(place)
    return found


def place_of(column: Any, names: Sequence[str], n: int) -> int | None:
    """Return which of n columns a name or a number means, None for neither; a mask has none."""
    if isinstance(column, str):
        return names.index(column) if column in names else None
    is_number = isinstance(column, (int, np.integer)) and not isinstance(column, bool)
    return int(column) if is_number and 0 <= column < n else None


def _places(table: Table, seen: Schema, owner: str) -> list[int]:
    """Return where the columns of `fit` are in a table: by name, or in the same order."""
    n = len(seen.kind.columns_)
    # Both have names: columns may have changed places.
    if table.names is not None and seen.feature_names_in is not None:
        given = {name: place for place, name in enumerate(table.names)}
        fitted = list(seen.feature_names_in)
        missing = [name for name in fitted if name not in given]
        unseen = [name for name in given if name not in set(fitted)]
        if missing or unseen:
            parts = {"missing": missing, "not seen in fit": unseen}
            found = "; ".join(f"{what}: {names[:5]}" for what, names in parts.items() if names)
            raise ValueError(
                f"The feature names of X should match those that {owner} was fitted on. {found}."
            )
        return [given[name] for name in fitted]
    # Else the order is all that is known.
    if table.shape[1] != n:
        raise ValueError(
            f"X has {table.shape[1]} features, but {owner} is expecting {n} features as input."
        )
    if (table.names is None) != (seen.feature_names_in is None):
        warn(
            f"X has {'no' if table.names is None else 'valid'} feature names, but {owner} was "
            f"fitted {'with' if table.names is None else 'without'} feature names: columns are "
            "taken in their order."
        )
    return list(range(n))


class TableScaler(AffineScaler):
    """The map from coded rows to the float32 tensors that augmentations and networks work on.

    Numbers are standardised, in float64; codes of categories and gaps stay.

    Parameters
    ----------
    columns : tuple of Column
        The columns of `fit`.
    standardize : bool, default=True
        If False, numbers stay too; times are standardised all the same.
    """

    only_casts_ = False

    def __init__(self, columns: tuple[Column, ...], standardize: bool = True):
        super().__init__(standardize)
        self.columns = columns

    def fit(self, X: NDArray) -> TableScaler:
        """Learn mean and standard deviation of the columns, without their gaps."""
        self.center_, self.scale_ = np.zeros(X.shape[1]), np.ones(X.shape[1])
        for j, column in enumerate(self.columns):
            known = X[~np.isnan(X[:, j]), j : j + 1]
            is_scaled = column.type == "time" or (self.standardize and column.type != "category")
            if is_scaled and len(known):
                mean, std = mean_and_std(known)
                self.center_[j], self.scale_[j] = mean[0], std[0]
        return self

    def from_tensor(self, batch: Tensor, X: NDArray) -> NDArray[np.object_]:
        """Return views as an array of numbers, names of categories and times; gaps are None."""
        coded = batch.double().numpy() * self.scale_ + self.center_
        decoded = [column.decode(coded[:, j]) for j, column in enumerate(self.columns)]
        return np.stack(decoded, axis=1)
