"""Ranges of numbers, and of sequences of them."""

from numbers import Integral

import numpy as np
import pytest

# private: the constraints that every class declares with
from skcontrast._checks import POSITIVE_INT, Interval, Numbers, validate_parameters
from skcontrast._checks._constraints import brief  # private: how a value is shortened in messages
from skcontrast.encoders import MLP, ConvNet
from skcontrast.losses import DCL
from tests.common import X_DIGITS, small


@pytest.mark.parametrize("value", [True, np.bool_(True), float("nan"), float("inf"), "1"])
def test_an_open_range_of_ints_holds_ints_and_no_bools(value):
    (interval,) = POSITIVE_INT
    assert not interval.is_satisfied_by(value)
    assert interval.is_satisfied_by(2**31 - 1)


def test_a_sequence_of_numbers_is_checked_item_by_item():
    numbers_in = Numbers(Interval(Integral, 0, 5, closed="both"))
    assert numbers_in.is_satisfied_by([0, 5]) and numbers_in.is_satisfied_by(np.arange(3))
    assert not any(map(numbers_in.is_satisfied_by, ([6], [True], "12", 3, np.eye(2))))


def test_a_sequence_may_have_a_least_length():
    widths = Numbers(*POSITIVE_INT, min_length=2)
    for good in ([3, 4, 5], (np.int64(3), 1), range(1, 3)):
        assert widths.is_satisfied_by(good)
    assert not any(map(widths.is_satisfied_by, ((1,), (1, 0), (1, 2.5), 3, "ab")))
    assert str(widths).startswith("a sequence of length 2 or more, each item an int in the range")


@pytest.mark.parametrize("encoder, shape", [(MLP, (4,)), (ConvNet, (1, 8, 8))])
def test_widths_may_be_an_array(encoder, shape):
    built, same = (encoder(widths=w).build(shape, 3) for w in (np.array([5, 6]), (5, 6)))
    assert str(built) == str(same)


def test_messages_show_neither_private_modules_nor_long_values():
    with pytest.raises(ValueError, match=r"an instance of 'Schedule' or .* Got 1.5 instead"):
        validate_parameters(DCL(tau_plus=1.5))
    with pytest.raises(ValueError, match=r"Got ndarray of shape \(50, 50\) instead"):
        validate_parameters(DCL(tau_plus=np.zeros((50, 50))))
    assert brief("a" * 500) == "a str" and brief(np.float64(2)) == "np.float64(2.0)"


def test_a_device_may_be_a_number_or_in_capitals():
    assert small(device="CPU").fit(X_DIGITS).transform(X_DIGITS).shape[0] == len(X_DIGITS)
    with pytest.raises(ValueError, match="got 99"):
        small(device=99).fit(X_DIGITS)
