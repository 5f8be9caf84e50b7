"""``verbose=1`` prints what is trained, a bar and how it ended; a long fit is announced."""

import itertools
import re
import time

import pytest
import torch

from skcontrast import ContrastiveEmbedder
from tests.common import X_DIGITS, images, small, vectors


def test_silent_unless_asked(capfd):
    small().fit(X_DIGITS)
    out, err = capfd.readouterr()
    assert out == err == ""


@pytest.mark.parametrize(
    ("X", "encoder", "said"),
    [
        (images(20), None, "20 images of shape (3, 6, 6); ConvNet, {} parameters, 128 comp"),
        (vectors(), None, "60 vectors of shape (5,); MLP, {} parameters, 128 components; cpu"),
        (vectors(), torch.nn.Linear(5, 3), "60 vectors of shape (5,); Linear, 18 parameters, 3 c"),
    ],
)
def test_one_line_says_what_is_trained_and_one_how_it_ended(X, encoder, said, capfd):
    embedder = ContrastiveEmbedder(encoder, max_epochs=2, verbose=1, device="cpu").fit(X)
    first, last = [
        one for one in capfd.readouterr().err.splitlines() if "; " in one or " of " in one
    ]
    n_parameters = sum(one.numel() for one in embedder.encoder_.parameters())
    assert said.format(f"{n_parameters:,}") in first
    loss = embedder.history_[-1, "train_loss"]
    assert re.search(rf"2 of 2 epochs in \d\d:\d\d\. loss={loss:.4f}", last)


@pytest.mark.parametrize(
    ("verbose", "step", "said"),
    [
        (1, 2.0, "about 03:20 for 2 epochs of 50 steps"),
        (1, 0.05, ""),
        (0, 2.0, ""),
        (1, 10.0, "about 16:40 for 2 epochs of 50 steps, 10 s each"),
        (0, 10.0, ""),
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


@pytest.mark.parametrize("n_slow", [1, 7])
def test_the_time_of_a_fit_is_not_estimated_from_a_few_slow_steps(n_slow, capfd, monkeypatch):
    """A machine may be busy for a while; with a clock that is slow at first, nothing is said."""
    ticks = itertools.accumulate(200.0 if k < n_slow else 0.05 for k in itertools.count())
    monkeypatch.setattr(time, "perf_counter", lambda: next(ticks))
    small(verbose=1, batch_size=4).fit(X_DIGITS)
    assert "steps" not in capfd.readouterr().err


@pytest.mark.parametrize(("n_steps", "is_said"), [(12, False), (13, True)])
def test_an_estimate_needs_ten_steps_after_the_first_three(n_steps, is_said, capfd, monkeypatch):
    clock = itertools.count(0, 100.0)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    small(batch_size=4, max_epochs=1, verbose=1).fit(X_DIGITS[: 4 * n_steps])
    assert ("steps" in capfd.readouterr().err) == is_said


def test_a_fit_that_will_exceed_an_hour_is_warned_about(monkeypatch):
    clock = itertools.count(0, 200.0)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    with pytest.warns(UserWarning, match="about 1:06:40 for 1 epochs of 20 steps.* smaller"):
        small(batch_size=4, max_epochs=1).fit(X_DIGITS[:80])
