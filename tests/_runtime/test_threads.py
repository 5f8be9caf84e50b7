"""Threads: one for small work, and the numbers of threads are left as they were."""

import threading
import warnings

import numpy as np
import psutil
import pytest
import threadpoolctl
import torch

# private: how many threads are taken; the device by itself
from skcontrast import ContrastiveClassifier, ContrastiveEmbedder, _runtime, load, save
from skcontrast._runtime import free_bytes, resolve_device
from skcontrast.encoders import MLP
from skcontrast.estimation import project_views
from tests._fit.common import FailsAfter, Gone
from tests.common import in_a_process, small, vectors

CPU = torch.device("cpu")


class Holder:
    """A thread that is in `on_threads` within the context; `leave` lets it go."""

    def __init__(self):
        self.is_held, self.may_leave = threading.Event(), threading.Event()
        self.thread = threading.Thread(target=self.hold)

    def hold(self):
        with _runtime.on_threads():
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
    for work, expected in ((3e8, {1}), (600, {2})):  # 20 multiplications for a sample
        _runtime._WORK_OF_A_THREAD = work
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
            assert set(counted) == expected, (work, found)
            assert numbers_of_threads() == before
    found.clear()
    embedder.transform(X[:1])
    assert found == [1]


def two_fits_that_overlap():
    torch.set_num_threads(2)
    threadpoolctl.threadpool_limits(2, user_api="blas")
    with _runtime.on_threads():  # afterwards this thread is not the only one that may limit
        before = (2, 2, 2)
    with Holder() as first, Holder() as second:
        for holder in (first, second):
            assert numbers_of_threads()[::2] == (2, 1)
            holder.leave()
            holder.thread.join()
    assert numbers_of_threads()[::2] == (2, 2)
    torch.set_num_threads(2)
    with _runtime.on_threads(), _runtime.on_threads():
        assert numbers_of_threads() == (1, 1, 1)
        with _runtime.on_threads(3):
            assert torch.get_num_threads() == 2
            with _runtime.on_threads():
                assert torch.get_num_threads() == 1
            assert torch.get_num_threads() == 2
    assert numbers_of_threads() == before


def a_thread_that_begins_within_the_context_of_another():
    torch.set_num_threads(2)
    _runtime._WORK_OF_A_THREAD, found = 1, []

    def fit():
        found.append(small(max_epochs=1).fit(vectors())._model.n_threads)

    with Holder() as first:
        thread = threading.Thread(target=fit)
        thread.start()
        thread.join()
        first.leave()
        first.thread.join()
    assert found == [2] and numbers_of_threads()[:2] == (2, 2)


def the_number_that_the_caller_sets_counts_during_a_fit_of_another_thread():
    torch.set_num_threads(2)
    _runtime._WORK_OF_A_THREAD, embedder = 1, small(max_epochs=1).fit(vectors())
    with Holder():
        torch.set_num_threads(1)
        embedder.transform(vectors())
        assert torch.get_num_threads() == 1
        assert small(max_epochs=1).fit(vectors())._model.n_threads == 1


def a_fit_that_fails():
    torch.set_num_threads(2)
    threadpoolctl.threadpool_limits(2, user_api="blas")
    with pytest.raises(Gone):
        small(callbacks=[FailsAfter(0)]).fit(vectors())
    assert numbers_of_threads() == (2, 2, 2)


@pytest.mark.parametrize(
    "use",
    [
        fit_small_and_large,
        two_fits_that_overlap,
        a_thread_that_begins_within_the_context_of_another,
        the_number_that_the_caller_sets_counts_during_a_fit_of_another_thread,
        a_fit_that_fails,
    ],
)
def test_small_work_takes_one_thread_and_leaves_the_numbers_as_they_were(use):
    in_a_process(use)


@pytest.fixture
def four():
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("encoder", "shape", "batch_size", "expected"),
    [
        (None, (64,), 256, 1),
        (MLP(widths=(2048, 2048)), (384,), 256, 4),
        (None, (1, 8, 8), 256, 1),
        (None, (1, 28, 28), 32, 1),
        (None, (1, 28, 28), 128, 3),
        (None, (3, 32, 32), 256, 4),
        (None, (1, 60), 256, 1),
    ],
    ids=repr,
)
def test_each_thread_gets_enough_multiplications(encoder, shape, batch_size, expected, four):
    X = np.random.RandomState(0).normal(size=(20, *shape)).astype(np.float32)
    embedder = small(encoder=encoder, batch_size=batch_size, max_epochs=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert embedder.fit(X)._model.n_threads == expected


def test_a_loaded_or_continued_embedder_keeps_its_number_of_threads(
    tmp_path, monkeypatch, capsys, four
):
    monkeypatch.setattr(_runtime, "_WORK_OF_A_THREAD", 1.0)
    embedder = small().fit(vectors())
    save(embedder, tmp_path / "f.skc")
    monkeypatch.undo()
    assert load(tmp_path / "f.skc")._model.n_threads == 4
    assert embedder.partial_fit(vectors())._model.n_threads == 4
    assert small().fit(vectors())._model.n_threads == 1
    torch.set_num_threads(1)
    embedder.set_params(verbose=1).partial_fit(vectors())
    assert "cpu, threads: 1\n" in capsys.readouterr().err


def test_a_resumed_fit_keeps_its_number_of_threads(tmp_path, monkeypatch, four):
    monkeypatch.setattr(_runtime, "_WORK_OF_A_THREAD", 1.0)
    expected = small(max_epochs=4).fit(vectors())
    with pytest.raises(Gone):
        small(max_epochs=4, checkpoint=tmp_path, callbacks=[FailsAfter(2)]).fit(vectors())
    monkeypatch.undo()
    found = small(max_epochs=4, checkpoint=tmp_path).fit(vectors())
    assert found._model.n_threads == 4 and found.n_epochs_ == 4
    np.testing.assert_array_equal(found.transform(vectors()), expected.transform(vectors()))


# Devices


def test_auto_is_the_first_device_that_is_available(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    assert resolve_device("auto", "Embedder") == torch.device("cpu")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert resolve_device("auto", "Embedder") == torch.device("mps")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert resolve_device("auto", "Embedder") == torch.device("cuda")


def test_free_memory_is_a_part_of_all_memory():
    assert 0 < free_bytes(torch.device("cpu")) <= psutil.virtual_memory().total
