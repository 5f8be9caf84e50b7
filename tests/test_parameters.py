"""Parameter objects: constraints, schedules in them, what may be estimated."""

import pytest

from skcontrast._parameters import Estimated, at_progress, check_numbers, estimable_parameters
from skcontrast.losses import BCL, DCL, HCL
from skcontrast.schedules import Linear, Steps


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


def test_an_option_of_the_name_auto_is_no_estimate():
    assert set(estimable_parameters(BCL(cdf_bins="auto"))) == {"alpha", "tau_plus"}
    check_numbers(BCL(cdf_bins="auto"))


def test_only_what_there_is_an_estimate_of_can_be_declared():
    with pytest.raises(ValueError, match=r"'sharpness', 'tau_plus'\) can be estimated"):
        Estimated("beta")
