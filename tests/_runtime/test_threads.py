"""Threads: one for small work, and the numbers of threads are left as they were."""

import contextlib
import threading
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import threadpoolctl
import torch

from skcontrast import ContrastiveClassifier, ContrastiveEmbedder, _runtime
from skcontrast.encoders import MLP, PatchNet, ResNet
from skcontrast.estimation import project_views
from skcontrast.kinds import Images, Vectors
from tests.common import in_a_process, vectors

CPU = torch.device("cpu")


class Holder:
    """A thread that holds locks within the context; `leave` lets go of them."""

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

    def leave(self):
        self.may_leave.set()

    def __exit__(self, *error):
        self.leave()
        self.thread.join()


def others_may_draw():
    """Return whether a different thread could draw now."""
    found = []

    def note():
        may = _runtime._GENERATORS.acquire(blocking=False)
        if may:
            _runtime._GENERATORS.release()
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


def test_no_other_thread_draws_within_a_step_that_draws():
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
        _runtime._LARGE = largest
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
            assert numbers_of_threads() == before


def two_fits_that_overlap():
    torch.set_num_threads(2)
    before = numbers_of_threads()[:2]
    with Holder(_runtime.one_thread()) as first, Holder(_runtime.one_thread()) as second:
        for holder in (first, second):
            assert torch.get_num_threads() == 2
            holder.leave()
            holder.thread.join()
    assert torch.get_num_threads() == 2
    torch.set_num_threads(2)
    with _runtime.one_thread(), _runtime.one_thread():
        assert numbers_of_threads() == (1, 1, 1)
        _runtime.use_threads_for(torch.nn.Linear(10_000, 3_001), (Vectors(), (10_000,)))
        assert numbers_of_threads()[:2] == before
        with _runtime.one_thread():
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
    _runtime._ENTERED.entered = [alone]
    _runtime.use_threads_for(module, (kind, shape))
    _runtime._ENTERED.entered.clear()
    assert bool(given_back) == is_large
