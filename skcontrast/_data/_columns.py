"""Tables column by column: numbers, times and categories of DataFrames and arrays."""

from __future__ import annotations

import datetime
import decimal
import numbers
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse

from .._checks import naming
from ._array_like import refuse_lazy
from ._arrays import as_array

ColumnType = Literal["number", "duration", "time", "category", "gaps"]

_FALSE_TRUE_GAP = np.array(["False", "True", None], dtype=object)
_MICROSECONDS = 1e6


class Values(NamedTuple):
    """The values of a column.

    Attributes
    ----------
    type : {"number", "duration", "time", "category", "gaps"}
        Their type; "gaps" where all are missing.
    numbers : ndarray of shape (n,), dtype float64
        NaN for gaps; times and durations in seconds. Empty for categories.
    labels : sequence of length n of str or None
        Categories, None for gaps. Empty except for categories.
    zone : str
        The time zone of times; "" where they have none, or several.
    """

    type: ColumnType
    numbers: NDArray[np.float64] = np.empty(0)
    labels: Sequence[str | None] = ()
    zone: str = ""

    def as_categories(self) -> Values:
        """Return numbers and times as categories, whose names are the numbers."""
        if self.type in ("category", "gaps"):
            return self
        return Values("category", labels=[_name(number) for number in self.numbers.tolist()])

    def as_flags(self) -> Values:
        """Return numbers that are 0 or 1, or gaps, as booleans are."""
        codes = np.nan_to_num(self.numbers, nan=2).astype(int)
        return Values("category", labels=_FALSE_TRUE_GAP[codes])


class Table:
    """A DataFrame of pandas or polars, or an array of two dimensions, by its columns.

    Parameters
    ----------
    X : DataFrame, table that has ``to_pandas``, array-like of shape (n_samples, n_columns)
        The argument of the user.

    Attributes
    ----------
    shape : tuple of int
        Numbers of rows and columns.

    Raises
    ------
    TypeError, ValueError
        If X is not a table.
    """

    def __init__(self, X: Any):
        self.X = _as_table(X)
        self.shape = tuple(self.X.shape)
        self._values: dict[int, Values] = {}

    @cached_property
    def names(self) -> NDArray | None:
        """The names of the columns; None unless all are strings.

        Raises
        ------
        TypeError, ValueError
            If some names are strings and others are not, or two columns have one name.
        """
        columns = list(getattr(self.X, "columns", ()))
        strings = [isinstance(name, str) for name in columns]
        if any(strings) and not all(strings):
            raise TypeError(
                "The columns of X must have names that are all strings, or none, got both: pass "
                "X.set_axis(X.columns.astype(str), axis=1)."
            )
        if len(set(columns)) < len(columns):
            twice = next(name for name in columns if columns.count(name) > 1)
            raise ValueError(f"X has several columns of the name {twice!r}.")
        return np.array(columns, dtype=object) if any(strings) else None

    def values(self, column: int) -> Values:
        """Return the values of a column.

        Raises
        ------
        ValueError
            If they are of several types, or of none that a table can have.
        """
        if column not in self._values:
            name = self.label(column)
            if not hasattr(self.X, "columns"):
                found = _of_array(self.X[:, column], name)
            elif hasattr(self.X, "iloc"):
                found = _of_pandas(self.X.iloc[:, column], name)
            else:
                found = _of_polars(self.X.to_series(column), name)
            self._values[column] = found
        return self._values[column]

    def label(self, column: int) -> str:
        """Return what a column is called in messages."""
        return repr(str(self.X.columns[column])) if hasattr(self.X, "columns") else str(column)


def mixed_table(X: Any) -> Table | None:
    """Return a DataFrame with gaps or a column that is not of numbers as a table, else None."""
    if not (_is_dataframe(X) or _is_arrow(X)):
        return None
    table = Table(X)
    for column in range(table.shape[1]):
        values = table.values(column)
        are_flags = values.type == "category" and set(values.labels) <= {"False", "True"}
        if not are_flags and (values.type != "number" or np.isnan(values.numbers).any()):
            return table
    return None


def _is_dataframe(X: Any) -> bool:
    refuse_lazy(X)
    return hasattr(X, "columns") and (hasattr(X, "iloc") or hasattr(X, "to_series"))


def _is_arrow(X: Any) -> bool:
    """Return whether X is a table of pyarrow, or one that turns into pandas in the same way."""
    return hasattr(X, "to_pandas") and hasattr(X, "column_names")


def _as_table(X: Any) -> Any:
    """Return X as a DataFrame of pandas or polars, or as an ndarray of two dimensions."""
    if _is_dataframe(X):
        return X
    if _is_arrow(X):
        return X.to_pandas()
    if issparse(X):
        raise TypeError("X is a sparse matrix, not a table: pass it with kind='vectors'.")
    if isinstance(X, torch.Tensor):
        with naming("X", "a table"):
            X = as_array(X)
    # As objects, columns of a list keep their own types.
    array = X if isinstance(X, np.ndarray) else np.array(X, dtype=object)
    if array.ndim != 2 or array.dtype.names is not None:
        advice = " Reshape your data: X[:, None] is one column." if array.ndim == 1 else ""
        raise ValueError(
            "X must hold a table, a DataFrame or an array of shape (n_samples, n_columns), got "
            f"a {type(X).__name__} of shape {array.shape}.{advice}"
        )
    if array.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: X has the dtype {array.dtype}.")
    return array


def _of_array(column: NDArray, name: str) -> Values:
    if column.dtype.kind in "fiu":
        return Values("number", column.astype(np.float64))
    if column.dtype.kind == "b":
        return Values("category", labels=_FALSE_TRUE_GAP[column.astype(int)])
    if column.dtype.kind == "M":
        return Values("time", _seconds(column.astype("datetime64[us]")))
    if column.dtype.kind == "m":
        return Values("duration", _seconds(column.astype("timedelta64[us]")))
    return _of_objects([None if _is_gap(value) else value for value in column.tolist()], name)


def _of_pandas(series: Any, name: str) -> Values:
    dtype = series.dtype
    if hasattr(dtype, "categories"):
        labels = [_label(value) for value in series.cat.categories.tolist()]
        codes = series.cat.codes.to_numpy()
        return Values("category", labels=np.array([*labels, None], dtype=object)[codes])
    if str(dtype).startswith(("period", "date32", "date64")):  # dates of pyarrow have no zone
        series = series.astype("datetime64[us]") if dtype.kind == "M" else series.dt.to_timestamp()
        dtype = series.dtype
    if dtype.kind in "fiub":
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        found = Values("number", values)
        return found.as_flags() if dtype.kind == "b" else found
    if dtype.kind == "M":
        zone = "" if series.dt.tz is None else str(series.dt.tz)
        local = series.dt.tz_localize(None) if zone else series
        return Values("time", _seconds(local.astype("datetime64[us]").to_numpy()), zone=zone)
    if dtype.kind == "m":
        return Values("duration", _seconds(series.astype("timedelta64[us]").to_numpy()))
    values = series.astype(object).to_numpy(copy=True)
    values[series.isna().to_numpy()] = None
    return _of_objects(values.tolist(), name)


def _of_polars(series: Any, name: str) -> Values:
    import polars as pl

    dtype = series.dtype
    if dtype.is_numeric():
        return Values("number", series.cast(pl.Float64).to_numpy())
    if dtype in (pl.Date, pl.Datetime, pl.Duration):
        zone = getattr(dtype, "time_zone", None) or ""
        local = series.dt.replace_time_zone(None) if zone else series
        return _of_array(local.to_numpy(), name)._replace(zone=zone)
    return _of_objects(series.to_list(), name)


def _of_objects(values: list, name: str) -> Values:
    """Return the values of a column of Python objects, in which gaps are None."""
    types = {type(value) for value in values if value is not None}
    if not types:
        return Values("gaps", np.full(len(values), np.nan))

    def are(*classes: type) -> bool:
        return all(issubclass(type_, classes) for type_ in types)

    if are(str):
        return Values("category", labels=values)
    if types <= {bool, np.bool_}:
        return Values("category", labels=[None if v is None else str(bool(v)) for v in values])
    # bool is a subclass of int.
    if not types & {bool, np.bool_} and are(numbers.Real, decimal.Decimal):
        return Values("number", np.array(values, dtype=np.float64))
    if are(datetime.date, np.datetime64):
        # Without their time zones, as clocks showed them.
        local = [v.replace(tzinfo=None) if isinstance(v, datetime.datetime) else v for v in values]
        zones = {str(getattr(v, "tzinfo", None) or "") for v in values if v is not None}
        seconds = _seconds(np.array(local, dtype="datetime64[us]"))
        return Values("time", seconds, zone=zones.pop() if len(zones) == 1 else "")
    if are(datetime.timedelta, np.timedelta64):
        return Values("duration", _seconds(np.array(values, dtype="timedelta64[us]")))
    found = ", ".join(sorted(type_.__name__ for type_ in types))
    several = "values of several types" if len(types) > 1 else "values of a type"
    if all(getattr(value, "ndim", 0) == 1 for value in values):
        raise ValueError(
            f"Column {name} of X holds {found}, which a table cannot have. If these are series, "
            "pass them as a list of arrays (n_channels, n_times), of the same n_channels: "
            "[np.stack(row) for row in X.to_numpy()]."
        )
    raise ValueError(
        f"Column {name} of X holds {several} that a table cannot have ({found}): convert it to "
        "numbers, strings, booleans or times, or drop it."
    )


def _is_gap(value: Any) -> bool:
    """Return whether a Python object is a missing value."""
    is_nan = isinstance(value, (float, np.floating)) and value != value
    return value is None or is_nan or type(value).__name__ in ("NAType", "NaTType")


def _seconds(times: NDArray) -> NDArray[np.float64]:
    """Return times or durations, in microseconds, as seconds."""
    return np.where(np.isnat(times), np.nan, times.astype(np.int64) / _MICROSECONDS)


def _label(value: Any) -> str:
    """Return the name of a category."""
    is_number = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    return str(_name(float(value)) if is_number else value)


def _name(number: float) -> str | None:
    """Return the name of a number as a category: 3.0 is "3"."""
    if number != number:
        return None
    return str(int(number)) if number.is_integer() else repr(number)
