"""Ctrl-C at any moment of a fit ends it as an interrupt, and finished epochs are kept."""

import multiprocessing
import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from skorch.callbacks import Callback
from torch.utils.data import Dataset

from skcontrast import ContrastiveEmbedder
from skcontrast._fit import _fit
from skcontrast._fit._watch import ProgressBar
from tests.common import X_DIGITS, small

pytestmark = pytest.mark.usefixtures("interruptible")
KEEPS = "fit was interrupted; the embedder keeps what it learned in {} epochs"


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


# Methods of callbacks, and the epochs that are finished when they run in the third
METHODS = {
    "on_epoch_begin": 2,
    "on_batch_begin": 2,
    "on_batch_end": 2,
    "on_epoch_end": 3,
    "on_train_end": 3,
}


@pytest.mark.parametrize("action", [press, swallowed_press])
@pytest.mark.parametrize("method, n_epochs", METHODS.items(), ids=METHODS)
def test_an_interrupt_in_a_callback_interrupts_the_fit(method, n_epochs, action):
    epochs = 3 if method == "on_train_end" else 9
    embedder = small(max_epochs=epochs, batch_size=50, callbacks=[Acts(method, action)])
    with pytest.raises(KeyboardInterrupt, match=KEEPS.format(n_epochs)):
        embedder.fit(X_DIGITS)
    assert embedder.n_epochs_ == len(embedder.history_) == n_epochs
    assert np.isfinite(embedder.transform(X_DIGITS)).all()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("action", [press, swallowed_press])
def test_an_interrupt_before_the_first_epoch_leaves_the_embedder_as_it_was(action):
    embedder = small(warm_start=True).fit(X_DIGITS)
    before = embedder.transform(X_DIGITS)
    with pytest.raises(KeyboardInterrupt):
        embedder.set_params(callbacks=[Acts("on_train_begin", action)]).fit(X_DIGITS)
    assert embedder.n_epochs_ == 2
    np.testing.assert_array_equal(embedder.transform(X_DIGITS), before)


def test_all_callbacks_hear_of_the_end_if_one_is_interrupted():
    heard = []
    after = Acts("on_train_end", lambda: heard.append("end"))
    embedder = small(max_epochs=3, callbacks=[Acts("on_train_end"), after])
    with pytest.raises(KeyboardInterrupt, match=KEEPS.format(3)):
        embedder.fit(X_DIGITS)
    assert heard == ["end"]


def stop():
    raise KeyboardInterrupt


@pytest.mark.parametrize("method, n_epochs", METHODS.items(), ids=METHODS)
def test_a_callback_that_raises_the_exception_itself_stops_early(method, n_epochs):
    epochs = 3 if method == "on_train_end" else 9
    embedder = small(max_epochs=epochs, batch_size=50, callbacks=[Acts(method, stop)])
    assert embedder.fit(X_DIGITS).n_epochs_ == n_epochs


def test_an_interrupt_counts_more_than_a_stop():
    def both():
        swallowed_press()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt, match=KEEPS.format(3)):
        small(max_epochs=9, callbacks=[Acts("on_epoch_end", both)]).fit(X_DIGITS)


def test_an_interrupt_of_the_progress_bar(monkeypatch):
    monkeypatch.setattr(ProgressBar, "on_epoch_end", lambda *args, **kwargs: press())
    with pytest.raises(KeyboardInterrupt, match=KEEPS.format(1)):
        small(max_epochs=9, verbose=1).fit(X_DIGITS)


class Presses(Dataset):
    """Presses Ctrl-C when a row is read."""

    def __init__(self, row=None):
        self.row = row

    def __len__(self):
        return len(X_DIGITS)

    def __getitem__(self, row):
        if row == self.row:
            press()
        return X_DIGITS[row]


def test_an_interrupt_while_x_is_checked_is_that_of_python():
    embedder = small().fit(X_DIGITS)
    with pytest.raises(KeyboardInterrupt) as raised:
        embedder.fit(Presses(0))
    assert not str(raised.value) and embedder.n_epochs_ == 2
    fresh = small()
    with pytest.raises(KeyboardInterrupt):
        fresh.fit(Presses(0))
    assert not hasattr(fresh, "encoder_")


@pytest.mark.parametrize("name", ["train", "check_embeddings"])
def test_an_interrupt_after_the_training_keeps_all_epochs(monkeypatch, name):
    def presses_after(*args):
        result = function(*args)
        press()
        return result

    function = getattr(_fit, name)
    monkeypatch.setattr(_fit, name, presses_after)
    embedder = small()
    with pytest.raises(KeyboardInterrupt, match=KEEPS.format(2)):
        embedder.fit(X_DIGITS)
    assert embedder.n_epochs_ == 2


def test_an_interrupt_while_results_are_taken_over_comes_after_that(monkeypatch):
    embedder = small().fit(X_DIGITS)
    schema = type(embedder._fitted.setup.schema)
    monkeypatch.setattr(schema, "assign_names", lambda _, owner: owner is embedder and press())
    embedder.set_params(max_epochs=3)
    with pytest.raises(KeyboardInterrupt, match=KEEPS.format(3)):
        embedder.fit(X_DIGITS)
    assert embedder.n_epochs_ == embedder._fitted.n_epochs == 3


def test_an_interrupt_ends_a_search():
    search = GridSearchCV(small(callbacks=[Acts("on_epoch_end", epoch=1)]), {"lr": [1e-3]}, cv=2)
    with pytest.raises(KeyboardInterrupt):
        search.fit(X_DIGITS)
    assert not hasattr(search, "best_estimator_")


@pytest.mark.parametrize("error, n_epochs", [(None, 9), (KeyboardInterrupt, 3)])
def test_a_handler_of_the_users_own_is_called(error, n_epochs):
    def handler(number, frame):
        calls.append(number)
        if error is not None:
            raise error

    calls = []
    signal.signal(signal.SIGINT, handler)
    embedder = small(max_epochs=9, callbacks=[Acts("on_epoch_end")])
    if error is None:
        embedder.fit(X_DIGITS)
    else:
        with pytest.raises(KeyboardInterrupt, match=KEEPS.format(n_epochs)):
            embedder.fit(X_DIGITS)
    assert calls == [signal.SIGINT] and embedder.n_epochs_ == n_epochs
    assert signal.getsignal(signal.SIGINT) is handler


def test_in_another_thread_the_fit_goes_on_and_the_main_thread_gets_the_interrupt():
    embedder = small(max_epochs=9, callbacks=[Acts("on_epoch_end")])
    thread = threading.Thread(target=embedder.fit, args=(X_DIGITS,))
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        while thread.is_alive():
            time.sleep(0.01)
    thread.join()
    assert embedder.n_epochs_ == 9


def test_an_interrupted_partial_fit_changes_nothing():
    embedder = small(batch_size=50).partial_fit(X_DIGITS)
    history = [dict(row) for row in embedder.history_]
    with pytest.raises(KeyboardInterrupt, match=KEEPS.format(1)):
        embedder.set_params(callbacks=[Acts("on_batch_begin", epoch=2)]).partial_fit(X_DIGITS)
    assert list(embedder.history_) == history


class Blocks(Presses):
    """Presses Ctrl-C in a thread that reads ahead, which then waits."""

    def __init__(self):
        self.released = threading.Event()

    def __getitem__(self, row):
        if row == 7 and threading.current_thread() is not threading.main_thread():
            os.kill(os.getpid(), signal.SIGINT)
            self.released.wait(SECONDS)
        return X_DIGITS[row]


@pytest.mark.skipif(os.name != "posix", reason="needs SIGINT")
def test_an_interrupt_waits_for_no_thread_that_reads():
    embedder, X = small(n_workers=2), Blocks()
    start = time.perf_counter()
    with pytest.raises(KeyboardInterrupt):
        embedder.fit(X)
    assert time.perf_counter() - start < SECONDS / 2
    assert not hasattr(embedder, "encoder_")
    X.released.set()


# Ctrl-C at random moments

SECONDS = 60
QUICK = {"threads", "short fits", "slow callbacks"}


class Slow(Callback):
    """Sleeps nearly all the time."""

    def sleep(self, net, **kwargs):
        time.sleep(0.05)

    on_train_begin = on_epoch_begin = on_epoch_end = on_batch_end = on_train_end = sleep


def endless(kind):
    """Return an embedder that trains without end, and samples."""
    if kind == "slow callbacks":
        return small(max_epochs=10**6, callbacks=[Slow()], verbose=1), X_DIGITS
    if kind == "short fits":
        return small(max_epochs=2, callbacks=[Slow()], n_workers=2, batch_size=50), Presses()
    if kind == "search":
        grid = {"contrastiveembedder__lr": [1e-3, 1e-2]}
        pipe = make_pipeline(small(max_epochs=10**6), LogisticRegression())
        return GridSearchCV(pipe, grid, n_jobs=2, cv=2), X_DIGITS
    return small(max_epochs=10**6, n_workers=2, batch_size=50), Presses()


def children():
    """Return the processes that this one has started and not ended."""
    path = Path("/proc/self/task")
    if not path.exists():
        return [child.pid for child in multiprocessing.active_children()]
    return [pid for task in path.iterdir() for pid in (task / "children").read_text().split()]


def serve(kind, pipe, errors):
    """Fit again and again; say when a fit begins and how it ended."""
    os.setpgid(0, 0)
    os.dup2(os.open(errors, os.O_WRONLY | os.O_APPEND), 2)
    warnings.simplefilter("error")
    torch.set_num_threads(1)
    embedder, X = endless(kind)
    before = children()
    while pipe.recv():
        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            while True:
                pipe.send("begins")
                embedder.fit(X, np.arange(len(X)) % 2)
                if kind != "short fits":
                    pipe.send("finished")
        except KeyboardInterrupt:
            pass
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if isinstance(embedder, ContrastiveEmbedder) and hasattr(embedder, "history_"):
            assert embedder.n_epochs_ == len(embedder.history_) == embedder._fitted.n_epochs
            assert np.isfinite(embedder.transform(X)).all()
        left = children() if kind != "search" else before
        pipe.send("interrupted" if left == before else f"left {left} instead of {before}")


def outcome_of_interrupt(process, pipe, seconds):
    """Interrupt a fit, as a terminal does; return how it ended and how long that took."""
    pipe.send(True)
    if not pipe.poll(5 * SECONDS):  # the first fit waits for imports
        return "never began", 5 * SECONDS
    time.sleep(seconds)
    while pipe.poll():
        pipe.recv()
    start = time.perf_counter()
    os.killpg(process.pid, signal.SIGINT)
    while pipe.poll(SECONDS):
        if (answer := pipe.recv()) != "begins":
            return answer, time.perf_counter() - start
    return "hangs or lost", SECONDS


def outcomes(kind, n, longest):
    """Interrupt fits at n random moments; return how they ended, and what they printed."""
    rng = random.Random(0)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    with tempfile.NamedTemporaryFile() as errors:
        process = context.Process(target=serve, args=(kind, theirs, errors.name))
        process.start()
        try:
            found = []
            while len(found) < n and "never began" not in dict(found):
                found.append(outcome_of_interrupt(process, ours, rng.uniform(0, longest)))
            ours.send(False)
            process.join(SECONDS)
        finally:
            process.kill()
            process.join()
        print(kind, n, "slowest", max(t for _, t in found), file=sys.stderr)
        return [answer for answer, _ in found], Path(errors.name).read_text().splitlines()


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "killpg"), reason="needs groups of processes")
@pytest.mark.parametrize(
    "kind, n",
    [
        ("threads", 60),
        ("short fits", 40),
        ("slow callbacks", 40),
        ("search", 5),
    ],
)
def test_no_interrupt_is_lost(kind, n):
    found, printed = outcomes(kind, n, longest=2.0 if kind in QUICK else 8.0)
    assert found == ["interrupted"] * n, printed
    if "callbacks" not in kind and kind != "search":  # a progress bar, messages of joblib
        assert [line for line in printed if not line.startswith("about ")] == []
