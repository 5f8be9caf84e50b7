"""A forked process fits although it has lost the threads of its parent."""

import contextlib
import multiprocessing
import os
import signal
import sys
import threading

import joblib
import numpy as np
import pytest
import torch

from skcontrast import ContrastiveEmbedder
from skcontrast._runtime import _modes, _random
from skcontrast._runtime._modes import settle_threads
from skcontrast._runtime._random import seeded_rng
from tests.common import in_a_process, vectors

CPU = torch.device("cpu")


def fit_in_a_forked_process():
    """Fit in two threads, fork, and compare what the other process computes."""
    X = np.random.default_rng(0).normal(size=(600, 200))
    torch.set_num_threads(2)
    embedder = ContrastiveEmbedder(max_epochs=1, device="cpu", random_state=0).fit(X)
    h, score = embedder.transform(X), embedder.score(X)
    assert torch.get_num_threads() == 2

    def work(queue):
        queue.put((embedder.score(X), embedder.transform(X), embedder.fit(X).transform(X)))

    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=work, args=(queue,), daemon=True)
    process.start()
    other_score, other_h, other_fit = queue.get(timeout=240)
    process.join()
    assert abs(other_score - score) < 0.01
    np.testing.assert_allclose(other_h, h, atol=1e-4)
    np.testing.assert_allclose(other_fit, h, atol=0.05)


@pytest.mark.skipif(sys.platform != "linux", reason="forks, and waits for GNU's OpenMP")
def test_a_forked_process_does_not_wait_for_threads_that_it_does_not_have():
    in_a_process(fit_in_a_forked_process)


class Holder:
    """A thread that holds locks within the context; `leave` lets go of them, later if asked to."""

    def __init__(self, *locks):
        self.locks, self.is_held, self.may_leave = locks, threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.hold)

    def hold(self):
        with contextlib.ExitStack() as stack:
            for lock in self.locks:
                stack.enter_context(lock)
            self.is_held.set()
            self.may_leave.wait()

    def __enter__(self):
        self.thread.start()
        self.is_held.wait()
        return self

    def leave(self, after=0.0):
        threading.Timer(after, self.may_leave.set).start()

    def __exit__(self, *error):
        self.leave()
        self.thread.join()


def end_of(process):
    return os.waitpid(process, 0)[1]


def fit_in_a_process_that_is_forked_while_a_thread_fits():
    with Holder(seeded_rng(0, CPU, is_long=True), _modes._LOCK):
        process = os.fork()
        if not process:
            signal.alarm(60)  # ends this process if it waits
            with seeded_rng(0, CPU), _modes._float32_by_default():
                os._exit(0)
        assert end_of(process) == 0


def fork_while_a_thread_draws():
    with Holder(seeded_rng(0, CPU)) as holder:
        holder.leave(after=0.3)
        process = os.fork()
        if not process:
            signal.alarm(60)
            with seeded_rng(0, CPU):
                os._exit(0)
        assert holder.may_leave.is_set() and end_of(process) == 0


class MayFork(torch.nn.Dropout):
    """Notes whether a different thread could fork the process now."""

    def forward(self, x):
        thread = threading.Thread(target=self.note)
        thread.start()
        thread.join()
        return super().forward(x)

    def note(self):
        may_fork = _random._DRAWING.acquire(blocking=False)
        if may_fork:
            _random._DRAWING.release()
        if self.training:
            found.append(may_fork)


found: list[bool] = []


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
@pytest.mark.parametrize(
    "use", [fit_in_a_process_that_is_forked_while_a_thread_fits, fork_while_a_thread_draws]
)
def test_a_forked_process_does_not_wait_for_a_fit_that_it_does_not_have(use):
    in_a_process(use)


def test_no_process_is_forked_within_a_step_that_draws():
    found.clear()
    encoder = torch.nn.Sequential(torch.nn.Linear(5, 8), MayFork(0.5))
    ContrastiveEmbedder(encoder, max_epochs=1, batch_size=20).fit(vectors())
    assert len(found) > 2 and not any(found)
    assert _random._DRAWING.acquire(blocking=False)
    _random._DRAWING.release()


@pytest.mark.parametrize(
    "process, threads, left",
    [(None, 2, 2), (os.getpid(), 2, 2), (os.getpid() + 1, 2, 1), (os.getpid() + 1, 1, 1)],
    ids=["first fit", "same process", "forked", "forked, one thread"],
)
def test_only_a_forked_process_goes_down_to_one_thread(monkeypatch, process, threads, left):
    found = [threads]
    monkeypatch.setattr(joblib, "cpu_count", lambda: 64)
    monkeypatch.setattr(_modes, "_threaded_process", process)
    monkeypatch.setattr(torch, "get_num_threads", lambda: found[-1])
    monkeypatch.setattr(torch, "set_num_threads", found.append)
    settle_threads()
    assert found[-1] == left


@pytest.mark.parametrize("limit, left", [(3, 3), (100, 64)])
def test_a_process_in_a_container_computes_in_no_more_threads_than_it_may(
    monkeypatch, limit, left
):
    found = [64]
    monkeypatch.setattr(_modes, "_threaded_process", None)
    monkeypatch.setattr(joblib, "cpu_count", lambda: limit)
    monkeypatch.setattr(torch, "get_num_threads", lambda: found[-1])
    monkeypatch.setattr(torch, "set_num_threads", found.append)
    settle_threads()
    assert found[-1] == left
    found.append(8)  # what the user sets later stays
    settle_threads()
    assert found[-1] == 8
