"""Arguments of functions: one decorator checks them, and errors name them."""

from numbers import Integral

import numpy as np
import pytest
import torch

from skcontrast._arguments import (
    Interval,
    checked,
    generator_of,
    naming,
    numbers,
    odd_item,
    refuse_masked,
)
from skcontrast._parameters import Numbers
from skcontrast.losses import DCL, Loss


@checked(n=[Interval(Integral, 1, None, closed="left")], loss=Loss)
def function(n, loss=None, *, other=0):
    return n, loss, other


def test_arguments_are_checked_by_position_and_by_name():
    loss = DCL()
    assert function(2, loss, other=3) == (2, loss, 3)
    for call in (lambda: function(0), lambda: function(n=0)):
        with pytest.raises(ValueError, match="'n' parameter of function must be an int"):
            call()
    with pytest.raises(TypeError, match=r"must be an instance, got the class DCL\. Write loss="):
        function(1, DCL)


def test_arguments_that_do_not_exist_are_left_to_python():
    with pytest.raises(TypeError, match=r"function\(\) got an unexpected keyword argument 'm'"):
        function(1, m=2)
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'n'"):
        function()


@pytest.mark.parametrize("value", [True, np.bool_(True), 2**31, 2**70, float("nan"), "1"])
def test_an_open_range_of_ints_holds_ints_that_fit_and_no_bools(value):
    interval = Interval(Integral, 1, None, closed="left")
    assert not interval.is_satisfied_by(value)
    assert interval.is_satisfied_by(2**31 - 1)


def test_a_sequence_of_numbers_is_checked_item_by_item():
    numbers_in = Numbers(Interval(Integral, 0, 5, closed="both"))
    assert numbers_in.is_satisfied_by([0, 5]) and numbers_in.is_satisfied_by(np.arange(3))
    assert not any(map(numbers_in.is_satisfied_by, ([6], [True], "12", 3, np.eye(2))))


def test_errors_of_libraries_are_raised_again_by_name_and_others_as_they_are():
    unnamed = pytest.raises(ValueError, match=r"z must be numbers, but item 1 is 'a': could not")
    with unnamed, naming("z", "numbers", [1, "a"]):
        np.asarray([1, "a"], dtype=float)
    named = pytest.raises(ValueError, match=r"^weights must be positive$")
    with named, naming("weights", "numbers"):
        raise ValueError("weights must be positive")
    with pytest.raises(KeyboardInterrupt), naming("z", "numbers"):
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("values", "place"),
    [
        ([1, 2], ""),
        ([[1, 2], [3, 4]], ""),
        ("ab", ""),
        ([[1, 2], [3]], ", but item 1 has shape (1,), item 0 (2,)"),
        ([1, None, "a"], ", but item 2 is 'a'"),
        ([torch.zeros(2), np.zeros(2)], ", but item 1 is a ndarray, item 0 a Tensor"),
        ([1, 2j], ", but item 1 is 2j"),
    ],
)
def test_the_first_item_that_does_not_fit_is_found(values, place):
    assert odd_item(values) == place


def test_tensors_are_numbers_and_masked_entries_are_not():
    array = numbers(torch.eye(2, requires_grad=True), "z")
    np.testing.assert_array_equal(array, np.eye(2))
    refuse_masked(np.ma.array([1, 2]), "z")
    with pytest.raises(ValueError, match="z has masked entries"):
        numbers(np.ma.array([[1, 2]], mask=[[0, 1]]), "z")


def test_a_generator_is_made_of_ints_and_generators_only():
    rng = np.random.default_rng(0)
    assert generator_of(rng, "f") is rng
    assert generator_of(3, "f").random() == np.random.default_rng(3).random()
    for bad in ("a", True, -1, 0.5):
        with pytest.raises(ValueError, match="'random_state' parameter of f must be an int"):
            generator_of(bad, "f")
