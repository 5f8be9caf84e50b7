"""Ctrl-C ends a fit as an interrupt, and the epochs that are finished are kept."""

import signal
import threading
import time
from contextlib import suppress

import numpy as np
import pytest
import torch
from sklearn.model_selection import GridSearchCV
from skorch.callbacks import Callback
from torch import nn

from skcontrast.frameworks import MoCo
from tests._fit.common import assert_same_bits, left_behind
from tests.common import X_DIGITS, small

pytestmark = pytest.mark.usefixtures("interruptible")
KEEPS = "fit was interrupted; the embedder has the state after {} epochs"


def press():
    signal.raise_signal(signal.SIGINT)


class Acts(Callback):
    """Does something in one of its methods, when the history has so many rows."""

    def __init__(self, method, action=press, epoch=3):
        self.method, self.action, self.epoch = method, action, epoch
        setattr(self, method, self.act)

    def __sklearn_clone__(self):
        return self

    def act(self, net, **kwargs):
        if self.method == "on_train_begin" or len(net.history) == self.epoch:
            self.action()


def swallowed_press():
    """Press Ctrl-C in code that ignores all exceptions, as ``__del__`` does."""
    with suppress(BaseException):
        press()


def stop():
    raise KeyboardInterrupt


# Methods of callbacks, and the epochs that are finished when they run in the third
METHODS = {
    "on_epoch_begin": 2,
    "on_batch_begin": 2,
    "on_batch_end": 2,
    "on_epoch_end": 3,
    "on_train_end": 3,
}


@pytest.mark.parametrize("method, n_epochs", METHODS.items(), ids=METHODS)
def test_an_interrupt_in_a_callback_interrupts_the_fit(method, n_epochs):
    epochs = 3 if method == "on_train_end" else 9
    embedder = small(max_epochs=epochs, batch_size=50, callbacks=[Acts(method)])
    with pytest.raises(KeyboardInterrupt, match=KEEPS.format(n_epochs)):
        embedder.fit(X_DIGITS)
    assert embedder.n_epochs_ == len(embedder.history_) == n_epochs
    assert np.isfinite(embedder.transform(X_DIGITS)).all()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_that_was_ignored_counts_at_the_end_of_the_epoch():
    embedder = small(max_epochs=9, callbacks=[Acts("on_batch_end", swallowed_press)])
    with pytest.raises(KeyboardInterrupt, match=KEEPS.format(3)):
        embedder.fit(X_DIGITS)


@pytest.mark.parametrize("method", ["on_batch_end", "on_epoch_end"])
def test_a_callback_that_raises_the_exception_itself_stops_early(method):
    embedder = small(max_epochs=9, batch_size=50, callbacks=[Acts(method, stop)])
    assert embedder.fit(X_DIGITS).n_epochs_ == METHODS[method]


@pytest.mark.parametrize("method", ["on_train_begin", "on_batch_begin"])
def test_an_interrupt_before_an_epoch_is_finished_leaves_the_embedder_as_it_was(method):
    embedder = small(warm_start=True).fit(X_DIGITS)
    before = embedder.transform(X_DIGITS)
    with pytest.raises(KeyboardInterrupt):
        embedder.set_params(callbacks=[Acts(method)]).fit(X_DIGITS)
    assert embedder.n_epochs_ == len(embedder.history_) == 2
    np.testing.assert_array_equal(embedder.transform(X_DIGITS), before)
    fresh = small(callbacks=[Acts(method, epoch=1)])
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(X_DIGITS)
    assert not hasattr(fresh, "encoder_")


def test_an_interrupt_ends_a_search():
    search = GridSearchCV(small(callbacks=[Acts("on_epoch_end", epoch=1)]), {"lr": [1e-3]}, cv=2)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X_DIGITS)
    assert not hasattr(search, "best_estimator_")


def test_in_another_thread_the_fit_goes_on_and_the_main_thread_gets_the_interrupt():
    embedder = small(max_epochs=9, callbacks=[Acts("on_epoch_end")])
    thread = threading.Thread(target=embedder.fit, args=(X_DIGITS,))
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        while thread.is_alive():
            time.sleep(0.01)
    thread.join()
    assert embedder.n_epochs_ == 9


# To the bit


class StopsAfter(Callback):
    def __init__(self, n_epochs):
        self.n_epochs = n_epochs

    def on_epoch_end(self, net, **kwargs):
        if len(net.history) == self.n_epochs:
            net.stop()


class Interrupted(nn.Module):
    """A network in whose n-th training pass the user presses Ctrl-C."""

    def __init__(self, n):
        super().__init__()
        self.layer, self.norm, self.n = nn.Linear(64, 4), nn.BatchNorm1d(4), n

    def forward(self, x):
        self.n -= self.training
        if self.training and not self.n:
            press()
        return self.norm(self.layer(x))


def interrupted(n, **params):
    torch.manual_seed(0)
    return small(encoder=Interrupted(n), max_epochs=3, batch_size=30, warm_start=True, **params)


@pytest.mark.parametrize(
    "params", [{}, {"framework": MoCo(queue_size=50)}], ids=["SimCLR", "MoCo"]
)
@pytest.mark.parametrize("step", [1, 2, 3])
def test_an_interrupt_at_any_step_leaves_the_finished_epochs(step, params):
    # Three steps an epoch, in the first of which MoCo has no other pass of the network.
    X = X_DIGITS[:90]
    expected = interrupted(0, callbacks=[StopsAfter(1)], **params).fit(X)
    found = interrupted(3 + step, **params)
    with pytest.raises(KeyboardInterrupt, match="1 epochs"):
        found.fit(X)
    assert_same_bits(left_behind(found), left_behind(expected))
