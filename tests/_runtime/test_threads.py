"""A forked process fits although it has lost the threads of its parent."""

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
from skcontrast._data._sources import Streamed
from skcontrast._runtime import _modes, _random
from skcontrast._runtime._modes import settle_threads
from skcontrast._runtime._random import seeded_rng
from tests.common import in_a_process

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


def hold(locks, is_held, may_leave):
    with locks[0], locks[1]:
        is_held.set()
        may_leave.wait()


def fit_in_a_process_that_is_forked_while_a_thread_fits():
    is_held, may_leave = threading.Event(), threading.Event()
    locks = seeded_rng(0, CPU), _modes._LOCK
    thread = threading.Thread(target=hold, args=(locks, is_held, may_leave))
    thread.start()
    is_held.wait()
    process = os.fork()
    if not process:
        signal.alarm(60)  # ends this process if it waits
        with seeded_rng(0, CPU), _modes._float32_by_default():
            os._exit(0)
    may_leave.set()
    thread.join()
    assert os.waitpid(process, 0)[1] == 0


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_forked_process_does_not_wait_for_a_fit_that_it_does_not_have():
    in_a_process(fit_in_a_process_that_is_forked_while_a_thread_fits)


@pytest.mark.skipif(sys.platform != "linux", reason="workers are forked")
def test_workers_are_not_forked_while_the_fit_of_a_thread_may_draw(monkeypatch):
    monkeypatch.setattr(multiprocessing, "get_start_method", lambda **kwargs: "fork")
    is_held, may_leave = threading.Event(), threading.Event()
    locks = seeded_rng(0, CPU), _random.generators_at_rest()
    thread = threading.Thread(target=hold, args=(locks, is_held, may_leave))
    thread.start()
    is_held.wait()
    threading.Timer(0.3, may_leave.set).start()
    data = Streamed(np.ones((4, 2)), lambda x, device: torch.from_numpy(x), CPU, n_workers=1)
    for _ in data.batches([torch.arange(4)], seed=0):
        assert may_leave.is_set()
    thread.join()


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
