"""Whatever ends a fit on one rank ends it on all, with the reason and in bounded time."""

import os
import signal
import time
from datetime import timedelta

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback
from torch import nn

from skcontrast._distributed import _connection
from skcontrast._distributed._connection import time_limit
from skcontrast.augmentation import GaussianNoise
from skcontrast.encoders import MLP
from skcontrast.losses import BCL
from tests._distributed.common import SECONDS, Ranks, X, rank
from tests.common import small

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="needs torch.distributed"
)
PLACES = [
    "on_train_begin",
    "on_epoch_begin",
    "on_batch_begin",
    "on_grad_computed",
    "on_batch_end",
    "on_epoch_end",
    "on_train_end",
]


class Calls(Callback):
    """Calls something at one place, in the second epoch if it occurs in several, on one rank."""

    def __init__(self, place, action, rank=1):
        setattr(self, place, self.act)
        self.place, self.action, self.rank = place, action, rank

    def act(self, net, **kwargs):
        is_time = "train" in self.place or len(net.history) == 2
        if rank() == self.rank and is_time:
            self.action()


def full_disk():
    raise OSError(28, "No space left on device")


def stop():
    raise KeyboardInterrupt


def leave():
    raise SystemExit("enough")


def press_ctrl_c():
    os.kill(os.getpid(), signal.SIGINT)


def end_of_fit(fit, *args):
    """Return the type and message of what a fit raises, and the seconds that it took."""
    began = time.monotonic()
    try:
        fit(*args)
    except BaseException as error:
        return type(error).__name__, str(error), time.monotonic() - began
    return None, "", time.monotonic() - began


X_ALL = X


def end_of_own_fit(X=X, y=None, place=None, action=None, on=1, **params):
    """Fit, with what only one rank passes; then fit again, on all ranks with the same."""
    own = params if rank() == on else {}
    callbacks = None if place is None else [Calls(place, action, on)]
    ended = end_of_fit(small(callbacks=callbacks, **own).fit, X if rank() == on else X_ALL, y)
    after = small().fit(X_ALL).transform(X_ALL)
    return (*ended, after)


NAN = np.where(np.arange(X.size).reshape(X.shape) == 777, np.nan, X)


def assert_rank_1_failed(ends, kind, text):
    """Check that each rank says what happened on rank 1, soon, and can fit again."""
    (kind_0, message_0, seconds_0, after_0), (kind_1, message_1, seconds_1, after_1) = ends
    assert (kind_0, kind_1) == ("RuntimeError", kind)
    assert text in message_1
    assert message_0 == f"fit failed on rank 1: {kind}: {message_1}"
    assert max(seconds_0, seconds_1) < SECONDS / 2
    np.testing.assert_array_equal(after_0, after_1)


@pytest.mark.parametrize(
    "own, kind, text",
    [
        ({"lr": -1.0}, "InvalidParameterError", "'lr'"),
        ({"loss": BCL(tau_plus=2.0)}, "InvalidParameterError", "'tau_plus'"),
        ({"loss": "InfoNCE"}, "InvalidParameterError", "InfoNCE"),
        ({"X": NAN}, "ValueError", "NaN"),
        ({"X": X[0]}, "ValueError", "2D array"),
        ({"augmentation": GaussianNoise(-1.0)}, "InvalidParameterError", "'scale'"),
    ],
    ids=["parameter", "loss", "type", "NaN", "shape", "augmentation"],
)
def test_what_one_rank_refuses_ends_all_and_the_group_is_usable(ranks, own, kind, text):
    assert_rank_1_failed(ranks(end_of_own_fit, **own), kind, text)


@pytest.mark.parametrize("place", PLACES)
def test_an_error_in_a_callback_of_one_rank_ends_all(ranks, place):
    ends = ranks(end_of_own_fit, place=place, action=full_disk)
    assert_rank_1_failed(ends, "OSError", "No space left")


def test_an_exit_of_one_rank_ends_all(ranks):
    ends = ranks(end_of_own_fit, place="on_batch_end", action=leave)
    assert_rank_1_failed(ends, "SystemExit", "enough")


def test_an_error_on_rank_0_ends_all(ranks):
    ends = ranks(end_of_own_fit, place="on_batch_begin", action=full_disk, on=0)
    assert ends[0][0] == "OSError"
    assert ends[1][:2] == ("RuntimeError", f"fit failed on rank 0: OSError: {ends[0][1]}")


class BreaksOnRank1(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 8)

    def forward(self, x):
        return self.layer(x) * (float("nan") if rank() == 1 and self.training else 1.0)


def diverged():
    return end_of_fit(small(encoder=BreaksOnRank1(), projection_dim=0).fit, X)


def test_divergence_on_one_rank_is_divergence_on_all(ranks):
    for kind, message, _ in ranks(diverged):
        assert kind == "ValueError" and "diverged in epoch 1" in message


# Ctrl-C


class InterruptedOnRank1(MLP):
    """Interrupted on rank 1 while it is described, before the ranks have met."""

    def get_params(self, deep=True):
        if rank() == 1:
            raise KeyboardInterrupt
        return super().get_params(deep)


@pytest.mark.parametrize("place", ["on_train_begin", "on_batch_begin", "on_batch_end"])
def test_ctrl_c_on_one_rank_interrupts_all(ranks, place):
    ends = ranks(end_of_own_fit, place=place, action=press_ctrl_c)
    assert [end[0] for end in ends] == ["KeyboardInterrupt"] * 2


def test_ctrl_c_on_one_rank_before_the_training_interrupts_all(ranks):
    (kind_0, message_0, *_), (kind_1, *_) = ranks(end_of_own_fit, encoder=InterruptedOnRank1())
    assert kind_0 == kind_1 == "KeyboardInterrupt"
    assert message_0 == "fit was interrupted on rank 1"


def test_a_callback_cannot_stop_one_rank_within_an_epoch(ranks):
    ends = ranks(end_of_own_fit, place="on_batch_end", action=stop)
    assert_rank_1_failed(ends, "RuntimeError", "may stop the training only at the end of an epoch")


# Killed, stuck, absent


@pytest.fixture(scope="module")
def lost():
    """Return two ranks for what ends with the loss of one of them."""
    ranks = Ranks(2)
    yield ranks
    ranks.stop()


@pytest.fixture
def three():
    ranks = Ranks(3)
    yield ranks
    ranks.stop()


def kill():
    os.kill(os.getpid(), signal.SIGKILL)


def sleep():
    time.sleep(4)


def end_of_two_fits(limit, place, action, on=1):
    os.environ["SKCONTRAST_RANK_TIMEOUT"] = str(limit)
    _connection._GRACE = timedelta(seconds=1)
    embedder = small(callbacks=[Calls(place, action, on)])
    return end_of_fit(embedder.fit, X), end_of_fit(embedder.fit, X)


def loss(store, place, action):
    """Return how two fits end in a new group, of which rank 1 is lost for the others."""
    own = rank()
    torch.distributed.destroy_process_group()
    torch.distributed.init_process_group(
        "gloo", f"file://{store}", rank=own, world_size=2, timeout=timedelta(seconds=SECONDS)
    )
    if own == 1 and place is None:
        return None
    return end_of_two_fits(1, place or "on_batch_begin", action)


@pytest.mark.parametrize(
    "place, action",
    [
        (None, None),
        pytest.param("on_batch_begin", sleep, marks=pytest.mark.slow),
        pytest.param("on_epoch_end", kill, marks=pytest.mark.slow),
    ],
)
def test_a_rank_that_is_absent_hangs_or_is_killed_is_named(lost, tmp_path, place, action):
    ends, _ = lost(loss, tmp_path / "store", place, action)
    (kind, message, seconds), (again, refusal, at_once) = ends
    assert kind == again == "RuntimeError"
    assert message.startswith("fit failed: rank 1 was killed, has lost its connection or did not")
    assert "within 1 s" in message and "SKCONTRAST_RANK_TIMEOUT" in message
    assert "can no longer be used: rank 1" in refusal
    assert seconds < SECONDS / 2 and at_once < 10


@pytest.mark.slow
@pytest.mark.parametrize("action, limit", [(kill, 60), (sleep, 1)])
def test_all_that_are_left_name_a_rank_that_is_killed_or_hangs(three, action, limit):
    first, _, third = three(end_of_two_fits, limit, "on_batch_begin", action)
    for (kind, message, seconds), (again, refusal, at_once) in (first, third):
        assert kind == again == "RuntimeError"
        assert message.startswith("fit failed: rank 1 was killed")
        assert "can no longer be used: rank 1" in refusal
        assert seconds < 20 and at_once < 1


@pytest.mark.slow
def test_without_rank_0_which_holds_the_store_the_others_end_too(three):
    killed, *others = three(end_of_two_fits, 60, "on_batch_begin", kill, on=0)
    assert killed is None
    for (kind, message, seconds), (again, _, at_once) in others:
        assert kind == again == "RuntimeError"
        assert "the store of the process group does not answer. It is a part of rank 0" in message
        assert seconds < 20 and at_once < 1


# The limit


def test_the_limit_is_ten_minutes_or_the_variable(monkeypatch):
    monkeypatch.delenv("SKCONTRAST_RANK_TIMEOUT", raising=False)
    assert time_limit().total_seconds() == 600
    monkeypatch.setenv("SKCONTRAST_RANK_TIMEOUT", "2.5")
    assert time_limit().total_seconds() == 2.5


@pytest.mark.parametrize("text", ["", "ten", "0", "-1", "nan", "inf"])
def test_a_limit_that_is_no_time_is_refused(monkeypatch, text):
    monkeypatch.setenv("SKCONTRAST_RANK_TIMEOUT", text)
    with pytest.raises(ValueError, match="SKCONTRAST_RANK_TIMEOUT must be a positive number"):
        time_limit()
