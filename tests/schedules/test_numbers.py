"""Numbers, and what stands in their place."""

from __future__ import annotations

import numpy as np
import pytest

from skcontrast.losses import BCL, DCL, HCL
from skcontrast.schedules import Auto, Linear, Steps, at_progress, interval

# private: which hyperparameters are estimated, without a fit
from skcontrast.schedules._numbers import check_hyperparameters, estimable_parameters, is_auto


def test_an_option_of_the_name_auto_is_no_estimate():
    assert set(estimable_parameters(BCL())) == {"alpha", "tau_plus"}
    check_hyperparameters(BCL())


def test_only_auto_by_name_or_object_is_an_estimate():
    assert is_auto("auto") and is_auto(Auto(every=3))
    assert not any(map(is_auto, ("Auto", 0.1, None, Linear(0, 1), np.array(["auto"]))))


def test_at_progress_resolves_every_schedule_and_leaves_the_original():
    loss = HCL(tau_plus=Linear(0, 0.2), beta=Steps([2, 1], [0.5]))
    now = at_progress(loss, 0.5)
    assert now.get_params() == {"tau_plus": 0.1, "beta": 1.0, "detach_weights": False}
    assert isinstance(loss.tau_plus, Linear)


def test_a_schedule_that_leaves_the_range_is_refused_by_name():
    with pytest.raises(ValueError, match=r"'tau_plus' parameter of DCL must be"):
        at_progress(DCL(tau_plus=Linear(0, 2)), 1.0)


def test_nested_parameters_of_a_schedule_can_be_set():
    loss = DCL(tau_plus=Linear(0, 0.1)).set_params(tau_plus__stop=0.3)
    assert loss.tau_plus.stop == 0.3


def test_an_interval_that_ends_before_it_begins_is_refused():
    with pytest.raises(ValueError, match="right can't be less than left"):
        interval(2, 1, "both")
