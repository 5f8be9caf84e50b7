"""Numbers, what stands in their place, and schedules."""

import numpy as np
import pytest

from skcontrast.losses import BCL, DCL, HCL
from skcontrast.schedules import Auto, CosineDecay, Linear, Schedule, Steps, at_progress, interval

# private: which hyperparameters are estimated, without a fit
from skcontrast.schedules._numbers import check_hyperparameters, estimable_parameters, is_auto
from tests.common import small


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


# Schedules


def test_linear_runs_from_start_to_stop():
    assert [Linear(2, 0)(p) for p in (0, 0.25, 1)] == [2, 1.5, 0]


def test_the_schedules_of_the_papers():
    epochs = range(400)
    beta, alpha, warm = Linear(2, 0, n_steps=20), Linear(0.5, 0.85), Steps([0.5, 0.7], [0.75])
    for epoch in epochs:
        progress = epoch / 399
        assert beta(progress) == pytest.approx(2 - 0.005 * (epoch - epoch % 20))
        assert alpha(progress) == pytest.approx(0.5 + 0.35 / 400 * epoch, abs=1e-3)
        assert warm(progress) == (0.5 if epoch < 300 else 0.7)


def test_cosine_decay_starts_flat_and_ends_flat():
    decay = CosineDecay(2.0, 1.0)
    assert decay(0) == 2 and decay(0.5) == pytest.approx(1.5) and decay(1) == 1
    assert decay(0.01) == pytest.approx(2, abs=1e-3) and decay(0.99) == pytest.approx(1, abs=1e-3)


def test_warmup_is_linear_from_zero_and_continuous():
    decay = CosineDecay(2.0, 0.0, warmup=0.5)
    assert decay(0) == 0 and decay(0.25) == 1 and decay(0.5) == 2
    assert CosineDecay(2.0, warmup=1.0)(1.0) == 2


def test_steps_hold_until_their_milestone():
    steps = Steps([1, 2, 3], milestones=[0.5, 0.8])
    assert [steps(p) for p in (0, 0.49, 0.5, 0.79, 0.8, 1)] == [1, 1, 2, 2, 3, 3]


@pytest.mark.parametrize(
    "steps, message",
    [
        (Steps([1, 2], [0.1, 0.2]), "one value more than milestones"),
        (Steps([1, 2, 3], [0.8, 0.5]), "increasing milestones"),
    ],
)
def test_steps_that_do_not_fit_are_refused(steps, message):
    with pytest.raises(ValueError, match=message):
        at_progress(DCL(tau_plus=steps), 0.5)


def test_a_schedule_without_a_call_is_refused():
    own = type("Own", (Schedule,), {})()
    for use in (
        lambda: at_progress(HCL(beta=own), 0.5),
        lambda: small(lr_schedule=own).fit([[1]]),
    ):
        with pytest.raises(NotImplementedError, match=r"Own must implement __call__\(progress\)"):
            use()
