"""Only who asks for it sees a progress bar; a long fit says so in any case."""

import itertools
import time

import pytest

from skcontrast._fit._watch import duration
from tests.common import X_DIGITS, small


def test_silent_unless_asked(capfd):
    small().fit(X_DIGITS)
    out, err = capfd.readouterr()
    assert out == err == ""
    small(verbose=1).fit(X_DIGITS)
    out, err = capfd.readouterr()
    assert "2/2" in err and "loss" in err


@pytest.mark.parametrize(
    ("verbose", "step", "said"),
    [
        (1, 2.0, "about 3.3 min for 2 epochs of 50 steps"),
        (1, 0.05, ""),
        (0, 2.0, ""),
        (0, 10.0, "about 17 min for 2 epochs of 50 steps, 10 s each"),
    ],
)
def test_a_long_fit_is_announced_once_after_its_first_steps(
    verbose, step, said, capfd, monkeypatch
):
    clock = itertools.count(0, step)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    small(verbose=verbose, batch_size=4).fit(X_DIGITS)
    err = capfd.readouterr().err
    assert err.count("steps") == bool(said) and said in err


def test_a_duration_has_a_unit_that_suits_it():
    times = (40, 200, 9_000, 260_000)
    assert [duration(s) for s in times] == ["40 s", "3.3 min", "2.5 hours", "3 days"]
