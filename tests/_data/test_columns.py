"""Columns of tables: one value is the same value in every library and dtype."""

import datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import torch
from scipy.sparse import csr_matrix

from skcontrast._data._columns import Table, Values, mixed_table

DAY = datetime.datetime(2024, 2, 29, 12, 30)
SECONDS = 1709209800.0
NAN = float("nan")


def of(column):
    """Return the values of the only column of a table."""
    return Table(column.to_frame("a")).values(0)


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1.0, None, 3.0]),
        pd.Series([1, None, 3], dtype="Int64"),
        pd.Series([1, None, 3], dtype="UInt8"),
        pd.Series([1, None, 3], dtype="Float32"),
        pd.Series([1, None, 3], dtype="int64[pyarrow]"),
        pd.Series([1.0, None, 3.0], dtype="double[pyarrow]"),
        pd.Series([1, pd.NA, 3.0], dtype=object),
        pd.Series([Decimal(1), None, Decimal(3)], dtype=object),
        pd.Series(pd.arrays.SparseArray([1.0, np.nan, 3.0])),
        pl.Series([1, None, 3]),
        pl.Series([1.0, NAN, 3.0]),
        pl.Series([Decimal(1), None, Decimal(3)]),
    ],
    ids=lambda column: f"{type(column).__module__.split('.')[0]} {column.dtype}",
)
def test_numbers_of_every_dtype_are_floats_and_their_gaps_nan(column):
    values = of(column)
    assert values.type == "number" and values.numbers.dtype == np.float64
    np.testing.assert_array_equal(values.numbers, [1, NAN, 3])


@pytest.mark.parametrize(
    "column",
    [
        pd.Series(["x", None, "y"]),
        pd.Series(["x", np.nan, "y"], dtype=object),
        pd.Series(["x", None, "y"], dtype="string[python]"),
        pd.Series(["x", None, "y"], dtype="string[pyarrow]"),
        pd.Series(["x", None, "y"], dtype="category"),
        pd.Series(pd.Categorical(["x", None, "y"], ["unused", "y", "x"], ordered=True)),
        pl.Series(["x", None, "y"]),
        pl.Series(["x", None, "y"], dtype=pl.Categorical),
        pl.Series(["x", None, "y"], dtype=pl.Enum(["y", "x", "unused"])),
    ],
    ids=lambda column: f"{type(column).__module__.split('.')[0]} {column.dtype}"[:40],
)
def test_categories_of_every_dtype_are_their_names_and_gaps_none(column):
    values = of(column)
    assert values.type == "category" and list(values.labels) == ["x", None, "y"]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([True, None, False], dtype="boolean"),
        pd.Series([True, None, False], dtype="bool[pyarrow]"),
        pd.Series([True, None, False], dtype=object),
        pl.Series([True, None, False]),
    ],
    ids=lambda column: f"{type(column).__module__.split('.')[0]} {column.dtype}",
)
def test_booleans_are_categories(column):
    assert list(of(column).labels) == ["True", None, "False"]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([DAY, None]),
        pd.Series([DAY, None]).astype("datetime64[s]"),
        pd.Series([DAY, None]).dt.tz_localize("Asia/Tokyo"),
        pd.Series([DAY, None], dtype=object),
        pd.Series([pd.Timestamp(DAY, tz="Asia/Tokyo"), None], dtype=object),
        pd.Series([DAY, None], dtype=pd.ArrowDtype(pa.timestamp("ms"))),
        pd.Series([pd.Period(DAY, "min"), None], dtype="period[min]"),
        pl.Series([DAY, None]),
        pl.Series([DAY, None]).dt.cast_time_unit("ms"),
        pl.Series([DAY, None]).dt.replace_time_zone("Asia/Tokyo"),
    ],
    ids=lambda column: f"{type(column).__module__.split('.')[0]} {column.dtype}",
)
def test_times_of_every_dtype_are_seconds_as_clocks_showed_them(column):
    values = of(column)
    assert values.type == "time"
    np.testing.assert_array_equal(values.numbers, [SECONDS, NAN])


def test_dates_are_times_and_differences_of_times_are_durations():
    date, day = DAY.date(), datetime.timedelta(days=1)
    days = pd.Series([date, None], dtype=object)
    arrow = [days.astype(pd.ArrowDtype(type_())) for type_ in (pa.date32, pa.date64)]
    for column in (days, *arrow, pl.Series([date, None])):
        np.testing.assert_array_equal(of(column).numbers, [SECONDS - 12.5 * 3600, NAN])
    for column in (
        pd.Series([day, None]),
        pd.Series([day, None], dtype=object),
        pl.Series([day, None]),
    ):
        assert of(column).type == "duration"
        np.testing.assert_array_equal(of(column).numbers, [86400, NAN])


def test_a_column_without_a_value_is_of_gaps():
    for column in (
        pd.Series([None, None], dtype=object),
        pd.Series([np.nan, pd.NaT], dtype=object),
        pl.Series([None, None]),
    ):
        assert of(column).type == "gaps" and np.isnan(of(column).numbers).all()


@pytest.mark.parametrize(
    "column, found",
    [
        (pd.Series([1, "x"], dtype=object), "several types .*int, str"),
        (pd.Series([True, 1.5], dtype=object), "several types .*bool, float"),
        (pd.Series([[1], [2]], dtype=object), "a type .*list"),
        (pd.Series([1j, 2j], dtype=object), "complex"),
        (pl.Series([[1], [2]]), "a type .*list"),
        (pl.Series([{"a": 1}, {"a": 2}]), "dict"),
    ],
)
def test_a_column_of_several_types_is_refused_by_name(column, found):
    with pytest.raises(ValueError, match=f"Column 'a' of X holds .*{found}"):
        of(column)


def test_arrays_are_tables_without_names():
    for X in ([[1.0, "x"], [None, "y"]], np.array([[1.0, "x"], [np.nan, "y"]], dtype=object)):
        table = Table(X)
        assert table.names is None and table.shape == (2, 2)
        np.testing.assert_array_equal(table.values(0).numbers, [1, NAN])
        assert table.values(1).labels == ["x", "y"]
    assert list(Table(np.array([[True], [False]])).values(0).labels) == ["True", "False"]
    assert Table(torch.eye(3, dtype=torch.bfloat16)).values(0).numbers.tolist() == [1, 0, 0]
    times = np.array([["2024-02-29T12:30"], ["NaT"]], dtype="datetime64[m]")
    np.testing.assert_array_equal(Table(times).values(0).numbers, [SECONDS, NAN])
    np.testing.assert_array_equal(Table(times - times[0]).values(0).numbers, [0, NAN])


def test_a_table_of_arrow_is_read_too():
    table = Table(pa.table({"a": [1.5, None], "b": ["x", None]}))
    assert table.names.tolist() == ["a", "b"] and table.values(0).type == "number"


def test_numbers_as_categories_are_named_as_they_are_written():
    values = Values("number", np.array([3.0, NAN, -0.5, -0.0])).as_categories()
    assert values.labels == ["3", None, "-0.5", "0"]
    codes = pd.Series(pd.Categorical([3, None, 4]))
    assert list(of(codes).labels) == ["3", None, "4"]


@pytest.mark.parametrize(
    "X, error, message",
    [
        (np.ones(3), ValueError, r"shape \(n_samples, n_columns\), got a ndarray of shape \(3,\)"),
        (np.ones((2, 2, 2)), ValueError, "must hold a table"),
        (np.ones((2, 2), dtype=complex), ValueError, "Complex data not supported"),
        (csr_matrix(np.eye(2)), TypeError, "sparse matrix, not a table"),
        (pd.DataFrame([[1, 2]], columns=["a", 1]), TypeError, "all strings, or none, got both"),
        (
            pd.DataFrame([[1, 2]], columns=["a", "a"]),
            ValueError,
            "several columns of the name 'a'",
        ),
    ],
)
def test_what_is_not_a_table_is_refused(X, error, message):
    with pytest.raises(error, match=message):
        Table(X).names  # noqa: B018


def test_mixed_are_dataframes_with_gaps_or_with_columns_that_are_not_of_numbers():
    plain = pd.DataFrame({"a": [1.0, 2.0], "b": [True, False]})
    for X in (plain, plain.astype(object), pl.from_pandas(plain), plain.astype("Int64")):
        assert not mixed_table(X)
    for values in (["x", "y"], [1.0, None], [None, None], [DAY, DAY], [True, None]):
        assert mixed_table(plain.assign(c=pd.Series(values, dtype=object)))
        assert mixed_table(pl.DataFrame({"a": [1, 2], "c": values}))
    assert not mixed_table(np.array([[1.0, np.nan]])) and not mixed_table(["x", "y"])
