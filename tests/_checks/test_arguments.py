"""Arguments of functions: one decorator checks them, and errors name them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

# private: the constraints that every class declares with
from skcontrast._checks import POSITIVE_INT
from skcontrast._checks._arguments import as_numbers, naming, validated
from skcontrast.losses import DCL, Loss


@validated(n=POSITIVE_INT, loss=Loss)
def function(n, loss=None, *, other=0):
    return n, loss, other


def test_arguments_are_checked_by_position_and_by_name():
    loss = DCL()
    assert function(2, loss, other=3) == (2, loss, 3)
    for call in (lambda: function(0), lambda: function(n=0)):
        with pytest.raises(ValueError, match="'n' parameter of function must be an int"):
            call()
    with pytest.raises(TypeError, match=r"must be an instance of 'Loss'.*'DCL'> .* Write loss="):
        function(1, DCL)


def test_errors_of_libraries_are_raised_again_by_name_and_others_as_they_are():
    unnamed = pytest.raises(ValueError, match=r"z must be numbers, but item 1 is 'a': could not")
    with unnamed, naming("z", "numbers", [1, "a"]):
        np.asarray([1, "a"], dtype=float)
    named = pytest.raises(ValueError, match=r"^weights must be positive$")
    with named, naming("weights", "numbers"):
        raise ValueError("weights must be positive")
    with pytest.raises(KeyboardInterrupt), naming("z", "numbers"):
        raise KeyboardInterrupt


DATES = np.array([["2020-01-01", "NaT"], ["2021-01-01", "2022-01-01"]], dtype="M8[s]")


@pytest.mark.parametrize("unit", ["ms", "D"])
@pytest.mark.parametrize(
    "convert",
    [
        np.array,
        lambda dates: dates.astype(">M8[ns]"),
        lambda dates: dates - dates[0, 0],
        list,
        lambda dates: [list(row) for row in dates],
        pd.DataFrame,
        pl.DataFrame,
        lambda dates: pd.DataFrame(dates).assign(number=1.0),
        lambda dates: np.array([[1.0, dates[0, 1]]], dtype=object),
        lambda dates: [[1.0, 2.0], *dates],
        lambda dates: [[1.0, 2.0], [3.0, dates[0, 0]]],
    ],
)
def test_dates_are_no_numbers(unit, convert):
    X = convert(DATES.astype(f"M8[{unit}]"))
    with pytest.raises(TypeError, match="z holds dates or durations, not numbers"):
        as_numbers(X, "z")


def test_tensors_are_numbers():
    array = as_numbers(torch.eye(2, requires_grad=True), "z")
    np.testing.assert_array_equal(array, np.eye(2))
