"""Schedules: values at the ends, in between, and where they stand in other objects."""

import pickle

import pytest
from sklearn.base import clone

from skcontrast.losses import DCL, HCL
from skcontrast.schedules import CosineDecay, Linear, Schedule, Steps, at_progress
from tests.common import small

SCHEDULES = [
    Linear(2, 0),
    Linear(0, 1, n_steps=4),
    CosineDecay(1.0, 0.1, warmup=0.2),
    Steps([0.5, 0.7], [0.75]),
]


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
        (Steps([1, 2], [50]), r"'milestones' parameter of Steps .* range \[0"),
        (Steps([1, float("nan")], [0.5]), "'values' parameter of Steps must be a sequence"),
    ],
)
def test_steps_that_do_not_fit_are_refused(steps, message):
    with pytest.raises(ValueError, match=message):
        at_progress(DCL(tau_plus=steps), 0.5)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=repr)
def test_parameter_object_contract(schedule):
    for copy in (clone(schedule), pickle.loads(pickle.dumps(schedule))):
        assert copy.get_params() == schedule.get_params()
        assert copy(0.3) == schedule(0.3)


def test_a_schedule_without_a_call_is_refused():
    own = type("Own", (Schedule,), {})()
    for use in (
        lambda: at_progress(HCL(beta=own), 0.5),
        lambda: small(lr_schedule=own).fit([[1]]),
    ):
        with pytest.raises(NotImplementedError, match=r"Own must implement __call__\(progress\)"):
            use()
