"""Which hyperparameters may be estimated, and which are to be."""

import numpy as np

from skcontrast.losses import BCL
from skcontrast.schedules import Auto, Linear
from skcontrast.schedules._auto import estimable_parameters, is_auto
from skcontrast.schedules._numbers import check_numbers


def test_an_option_of_the_name_auto_is_no_estimate():
    assert set(estimable_parameters(BCL())) == {"alpha", "tau_plus"}
    check_numbers(BCL())


def test_only_auto_by_name_or_object_is_an_estimate():
    assert is_auto("auto") and is_auto(Auto(every=3))
    assert not any(map(is_auto, ("Auto", 0.1, None, Linear(0, 1), np.array(["auto"]))))
