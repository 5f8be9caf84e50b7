"""Ranges of numbers, and of sequences of them."""

import numpy as np
import pytest

# private: the constraints that every class declares with
from skcontrast._checks import validate_parameters
from skcontrast._checks._constraints import brief  # private: how a value is shortened in messages
from skcontrast.encoders import MLP, ConvNet
from skcontrast.losses import DCL
from tests.common import X_DIGITS, small


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
