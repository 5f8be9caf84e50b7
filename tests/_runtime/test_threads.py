"""Threads: one for small fits, and a forked process fits although it has lost its parent's."""

import contextlib
import importlib
import importlib.abc
import importlib.util
import multiprocessing
import os
import signal
import sys
import threading
import time
import warnings
from types import SimpleNamespace

import joblib
import numpy as np
import pytest
import threadpoolctl
import torch

from skcontrast import ContrastiveClassifier, ContrastiveEmbedder
from skcontrast._runtime import _modes, _random, _threads
from skcontrast._runtime._random import seeded_rng
from skcontrast.encoders import MLP, PatchNet, ResNet
from skcontrast.estimation import project_views
from skcontrast.kinds import Images, Vectors
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
    with Holder(_threads._LOCK):
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


class SlowImport(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds a module whose import by a thread goes on for some time after this has begun."""

    name = "skcontrast._slow"

    def __enter__(self):
        self.has_begun = threading.Event()
        sys.meta_path.insert(0, self)
        self.thread = threading.Thread(target=importlib.import_module, args=(self.name,))
        self.thread.start()
        self.has_begun.wait()

    def __exit__(self, *error):
        self.thread.join()
        sys.meta_path.remove(self)

    def find_spec(self, name, path, target=None):
        return importlib.util.spec_from_loader(name, self) if name == self.name else None

    def exec_module(self, module):
        self.has_begun.set()
        time.sleep(0.5)


def fork_while_a_thread_imports():
    with SlowImport():
        process = os.fork()
        if not process:
            signal.alarm(60)
            importlib.import_module(SlowImport.name)
            os._exit(0)
        assert end_of(process) == 0


def others_may_draw():
    """Return whether a different thread could draw, or fork the process, now."""
    found = []

    def note():
        may = _random._GENERATORS.acquire(blocking=False)
        if may:
            _random._GENERATORS.release()
        found.append(may)

    thread = threading.Thread(target=note)
    thread.start()
    thread.join()
    return found[0]


class Noting(torch.nn.Dropout):
    """Notes, in each step of a training, whether other threads may draw."""

    def forward(self, x):
        if self.training:
            found.append(others_may_draw())
        return super().forward(x)


class NotingDataset(torch.utils.data.TensorDataset):
    """Notes whether other threads may draw where a sample is read, as where a worker starts."""

    def __getitem__(self, i):
        found.append(others_may_draw())
        return super().__getitem__(i)


found: list[int] = []
DRAWS = torch.nn.Sequential(torch.nn.Linear(5, 8), Noting(0.5))


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
@pytest.mark.parametrize(
    "use",
    [
        fit_in_a_process_that_is_forked_while_a_thread_fits,
        fork_while_a_thread_draws,
        fork_while_a_thread_imports,
    ],
)
def test_a_forked_process_does_not_wait_for_a_fit_that_it_does_not_have(use):
    in_a_process(use)


def test_no_process_is_forked_within_a_step_that_draws():
    found.clear()
    ContrastiveEmbedder(DRAWS, max_epochs=1, batch_size=20).fit(vectors())
    assert len(found) > 2 and not any(found)
    assert others_may_draw()


def test_other_threads_draw_while_a_fit_that_draws_reads_its_samples_or_starts_workers():
    found.clear()
    dropout = MLP((8,), dropout=0.5)
    samples = NotingDataset(torch.as_tensor(vectors()))
    ContrastiveEmbedder(dropout, max_epochs=2, batch_size=20).fit(samples)
    assert len(found) > 2 * len(samples) and all(found)


@pytest.mark.parametrize(
    "process, threads, left",
    [(None, 2, 2), (os.getpid(), 2, 2), (os.getpid() + 1, 2, 1), (os.getpid() + 1, 1, 1)],
    ids=["first fit", "same process", "forked", "forked, one thread"],
)
def test_only_a_forked_process_goes_down_to_one_thread(monkeypatch, process, threads, left):
    found = [threads]
    monkeypatch.setattr(joblib, "cpu_count", lambda: 64)
    monkeypatch.setattr(_threads, "_threaded_process", process)
    monkeypatch.setattr(torch, "get_num_threads", lambda: found[-1])
    monkeypatch.setattr(torch, "set_num_threads", found.append)
    _threads.settle_threads()
    assert found[-1] == left


@pytest.mark.parametrize("limit, left", [(3, 3), (100, 64)])
def test_a_process_in_a_container_computes_in_no_more_threads_than_it_may(
    monkeypatch, limit, left
):
    found = [64]
    monkeypatch.setattr(_threads, "_threaded_process", None)
    monkeypatch.setattr(joblib, "cpu_count", lambda: limit)
    monkeypatch.setattr(torch, "get_num_threads", lambda: found[-1])
    monkeypatch.setattr(torch, "set_num_threads", found.append)
    _threads.settle_threads()
    assert found[-1] == left
    found.append(8)  # what the user sets later stays
    _threads.settle_threads()
    assert found[-1] == 8


class Counts(torch.nn.Linear):
    """Notes in how many threads it computes."""

    def forward(self, x):
        found.append(torch.get_num_threads())
        return super().forward(x)


def numbers_of_threads():
    """Return the number of torch in this thread and in a new one, and that of numpy."""
    new = []
    thread = threading.Thread(target=lambda: new.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    blas = threadpoolctl.ThreadpoolController().select(user_api="blas").info()
    return torch.get_num_threads(), new[0], max(library["num_threads"] for library in blas)


def fit_small_and_large():
    torch.set_num_threads(2)
    threadpoolctl.threadpool_limits(2, user_api="blas")
    before = numbers_of_threads()
    assert before == (2, 2, 2)
    X, y = vectors(), np.arange(60) % 2
    for largest, expected in ((3e7, {1}), (0, {2})):
        _threads._LARGE = largest
        embedder = ContrastiveEmbedder(Counts(5, 4), max_epochs=2, random_state=0, device="cpu")
        for use in (
            lambda embedder: embedder.fit(X),
            lambda embedder: embedder.partial_fit(X).set_params(warm_start=True).fit(X),
            lambda embedder: embedder.transform(X),
            lambda embedder: embedder.score(X),
            lambda embedder: project_views(embedder, X, random_state=0),
            lambda embedder: ContrastiveClassifier(embedder).fit(X, np.where(y, y, -y)),
        ):
            found.clear()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                use(embedder)
            counted = found[3:] if len(found) > 3 else found  # it is tried before it is judged
            assert set(counted) == expected, (largest, found)
            assert numbers_of_threads() == before and not _threads._LENT


def two_fits_that_overlap():
    torch.set_num_threads(2)
    before = numbers_of_threads()[:2]
    with Holder(_threads.one_thread()) as first, Holder(_threads.one_thread()) as second:
        for holder, new in ((first, 1), (second, 2)):
            assert numbers_of_threads()[:2] == (2, 1)
            holder.leave()
            holder.thread.join()
            assert numbers_of_threads()[:2] == (2, new)
    with _threads.one_thread(), _threads.one_thread():
        assert numbers_of_threads() == (1, 1, 1)
        _threads.use_threads_for(torch.nn.Linear(10_000, 3_001), (Vectors(), (10_000,)))
        assert numbers_of_threads()[:2] == before
        with _threads.one_thread():
            assert torch.get_num_threads() == 1
    assert numbers_of_threads()[:2] == before


@pytest.mark.parametrize("use", [fit_small_and_large, two_fits_that_overlap])
def test_small_work_takes_one_thread_and_leaves_the_numbers_as_they_were(use):
    in_a_process(use)


@pytest.mark.parametrize(
    ("encoder", "kind", "shape", "is_large"),
    [
        (MLP(), Vectors(), (400,), False),
        (PatchNet(), Images(), (3, 32, 32), False),
        (PatchNet(), Images(), (3, 96, 96), False),
        (PatchNet(), Images(), (3, 32, 288), False),
        (PatchNet(widths=(1024, 4096)), Images(), (3, 47, 47), True),
        (ResNet(18), Images(), (3, 48, 48), True),
        (ResNet(18, "imagenet"), Images(), (3, 96, 96), True),
    ],
    ids=repr,
)
def test_networks_of_small_images_are_small_and_residual_ones_large(
    encoder, kind, shape, is_large
):
    module, given_back = encoder.build(shape), []
    alone = SimpleNamespace(close=lambda: given_back.append(True))
    _threads._OWN.entered = [alone]
    _threads.use_threads_for(module, (kind, shape))
    _threads._OWN.entered.clear()
    assert bool(given_back) == is_large
