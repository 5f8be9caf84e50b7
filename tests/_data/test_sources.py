"""Where the samples come from changes nothing: memory, memory maps, Datasets, workers."""

import multiprocessing
import os
import signal
import sys
import threading
import time

import joblib
import numpy as np
import pytest
import torch
from scipy.sparse import coo_array, csc_array, csr_array, csr_matrix
from scipy.sparse import random as sparse_random
from sklearn.datasets import load_digits
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

from skcontrast._data import _arrays, _batches  # private: sizes of the parts
from skcontrast._data._arrays import SparseSamples  # private: samples as the fit reads them

# private: the batches of a fit, one by one
from skcontrast._data._batches import Source, is_streamed, read_ahead
from skcontrast.augmentation import GaussianNoise, MarginalCorruption, RandomAffine
from skcontrast.encoders import ConvNet
from skcontrast.kinds import Images
from skcontrast.losses import SupCon
from tests.common import Items, in_a_process, small

CPU = torch.device("cpu")
X = load_digits().data[:120]
y = load_digits().target[:120]
rng = np.random.default_rng(0)
INPUTS = {
    "vectors float64": X,
    "vectors float32": X.astype(np.float32),
    "vectors far from zero": X + 1e9,
    "images uint8": rng.integers(0, 256, (60, 3, 6, 6), dtype=np.uint8),
    "grey images float": X.reshape(-1, 8, 8),
}


def samples(X):
    """Return a Dataset of the rows of an array, with labels alongside."""
    return Items(torch.as_tensor(X), 0)


def embedder(X, **kwargs):
    encoder = None if X.ndim == 2 else ConvNet(widths=(8,))
    return small(encoder=encoder, **kwargs)


@pytest.mark.parametrize("n_workers", [0, 3])
@pytest.mark.parametrize("X", INPUTS.values(), ids=INPUTS)
def test_streamed_gives_what_memory_gives(X, n_workers):
    in_memory = embedder(X).fit(X)
    streamed = embedder(X, memory_budget=0, n_workers=n_workers).fit(X)
    np.testing.assert_array_equal(streamed.transform(X), in_memory.transform(X))


@pytest.mark.parametrize("X", INPUTS.values(), ids=INPUTS)
def test_a_dataset_gives_what_its_array_gives(X):
    plain = embedder(X).fit(X)
    from_dataset = embedder(X).fit(samples(X))
    expected = plain.transform(X)
    np.testing.assert_array_equal(from_dataset.transform(X), expected)
    np.testing.assert_array_equal(from_dataset.transform(samples(X)), expected)
    assert from_dataset.score(samples(X)) == plain.score(X)
    assert from_dataset.n_features_in_ == plain.n_features_in_


def test_data_that_fit_are_held_in_memory_and_others_are_streamed(monkeypatch):
    def streams(X, budget=None):
        return is_streamed(X, Images().nbytes(X), CPU, budget)

    megabyte = np.zeros((1000, 250))  # as float32
    assert not streams(megabyte)
    assert not streams(megabyte, 0.001)
    assert streams(megabyte, 0.0009)
    assert not streams(megabyte.astype(np.uint8), 0.0003)
    monkeypatch.setattr(_batches, "free_bytes", lambda device: 1.9e6)
    assert streams(megabyte)
    assert not is_streamed(megabyte, 0, CPU, 0.0)


def test_labels_and_weights_go_with_streamed_samples():
    kwargs = {"loss": SupCon(), "batch_size": 32}
    weight = np.linspace(0, 1, 120)
    expected = embedder(X, **kwargs).fit(X, y, sample_weight=weight).transform(X)
    streamed = embedder(X, **kwargs, memory_budget=0).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(streamed.transform(X), expected)


def test_global_generators_are_untouched_by_threads_that_read():
    before = torch.get_rng_state()
    embedder(X, memory_budget=0, n_workers=1).fit(X)
    assert torch.equal(torch.get_rng_state(), before)


def test_partial_fit_and_warm_start_with_a_dataset():
    data = samples(X)
    pieces, whole = embedder(X), embedder(X, lr_schedule="constant")
    pieces.partial_fit(data).partial_fit(data)
    np.testing.assert_array_equal(pieces.transform(data), whole.fit(X).transform(X))


@pytest.mark.parametrize("step", [GaussianNoise(), MarginalCorruption(), RandomAffine()], ids=repr)
def test_a_dataset_through_a_pipeline(step):
    data = X.reshape(-1, 1, 8, 8) if isinstance(step, RandomAffine) else X
    pipe = make_pipeline(step, embedder(data), LogisticRegression(max_iter=1000))
    expected = pipe.fit(data, y).predict_proba(data)
    np.testing.assert_array_equal(pipe.fit(samples(data), y).predict_proba(data), expected)


def test_cross_validation_cuts_a_dataset():
    pipe = make_pipeline(embedder(X), LogisticRegression(max_iter=1000))
    scores = cross_val_score(pipe, TensorDataset(torch.as_tensor(X)), y, cv=2)
    np.testing.assert_array_equal(scores, cross_val_score(pipe, X, y, cv=2))


class Endless(IterableDataset):
    def __iter__(self):
        yield from X


@pytest.mark.parametrize(
    "data, error, message",
    [
        (samples(np.where(np.arange(120)[:, None] == 5, np.nan, X)), ValueError, "contains NaN"),
        (Endless(), TypeError, "X must be a Dataset with __len__"),
        (samples(X[:1]), ValueError, "1 sample.* minimum of 2"),
        (samples(np.zeros((5, 2, 2, 2, 2))), ValueError, "X must have 2 dimensions"),
    ],
    ids=["NaN", "iterable", "single", "dimensions"],
)
def test_a_dataset_that_cannot_be_used_is_refused(data, error, message):
    with pytest.raises(error, match=message):
        embedder(X).fit(data)


# Threads that read ahead


@pytest.mark.parametrize("n_workers", [0, 1, 2])
def test_an_error_of_a_dataset_is_its_own_wherever_it_is_read(n_workers):
    with pytest.raises(ValueError, match=r"sample 7 has \(3,\), sample 0 has \(64,\)"):
        embedder(X, memory_budget=0, n_workers=n_workers).fit(Items([*X[:7], X[7, :3], *X[8:]]))


@pytest.mark.parametrize("n_threads", [1, 3])
def test_parts_come_in_order_and_no_more_than_two_a_thread_are_ahead(n_threads):
    begun = []

    def read(part):
        begun.append(part)
        time.sleep(0.002 * (part % 3))
        return part

    for place, part in enumerate(read_ahead(read, range(30), n_threads)):
        time.sleep(0.001)
        assert part == place and len(begun) <= place + 2 * n_threads
    assert sorted(begun) == list(range(30))


def test_threads_read_at_the_same_time():
    both = threading.Barrier(2, timeout=30)
    assert sorted(read_ahead(lambda part: both.wait(), range(4), 2)) == [0, 0, 1, 1]


def test_nothing_is_read_or_waited_for_once_the_caller_stops():
    released, begun = threading.Event(), []

    def read(part):
        begun.append(part)
        assert part == 0 or released.wait(30)
        return part

    parts = read_ahead(read, range(100), 2)
    assert next(parts) == 0
    parts.close()
    released.set()
    assert len(begun) <= 3


def test_a_dataset_of_a_different_shape_is_refused_in_transform():
    with pytest.raises(ValueError, match=r"samples of shape \(3,\).*fitted on"):
        embedder(X).fit(X).transform(samples(X[:, :3]))


# Dtypes


DTYPES = ["int8", "int16", "uint16", "int64", "uint64", "float16", ">i2", ">f4", "longdouble"]


@pytest.fixture(scope="module")
def of_float32():
    """What an embedder of the samples in float32 returns."""
    return embedder(X).fit_transform(X.astype(np.float32))


@pytest.mark.parametrize("dtype", DTYPES)
def test_batches_of_any_numbers_are_those_numbers_in_float32(tmp_path, dtype, of_float32):
    typed = X.astype(dtype)
    X.astype(dtype).tofile(tmp_path / "X")
    mapped = np.memmap(tmp_path / "X", dtype, "r", shape=X.shape)
    fitted = embedder(X, memory_budget=0).fit(mapped)
    np.testing.assert_array_equal(fitted.transform(mapped), of_float32)
    np.testing.assert_array_equal(embedder(X).fit(typed).transform(Items(typed)), of_float32)
    np.testing.assert_array_equal(embedder(X).fit(Items(typed)).transform(typed), of_float32)
    read = fitted._model.read(mapped, fitted)
    stream = Source(read, CPU, fitted._model.scaler.to_tensor)
    rows = torch.tensor([5, 3, 110])
    assert torch.equal(stream.take(rows), torch.as_tensor(X.astype(np.float32))[rows])
    assert dtype == "longdouble" or (read.dtype == dtype and np.shares_memory(read, mapped))


@pytest.mark.parametrize("dtype", ["int16", "float16", ">u2", "bool"])
def test_images_of_any_numbers_are_images(dtype):
    images = (X > 7 if dtype == "bool" else X).reshape(-1, 8, 8)
    expected = embedder(images).fit_transform(images.astype(np.float32))
    np.testing.assert_array_equal(embedder(images).fit_transform(images.astype(dtype)), expected)
    transposed = np.asfortranarray(images.astype(dtype))
    np.testing.assert_array_equal(embedder(images).fit_transform(transposed), expected)


@pytest.mark.parametrize("dtype", ["int16", "float16", ">f4"])
def test_views_of_any_numbers_are_floats_in_the_units_of_X(dtype):
    views = embedder(X, augmentation=[]).views(X.astype(dtype), random_state=0)
    assert views[0].dtype == np.float32
    np.testing.assert_array_equal(views[0], X)


def test_what_is_not_finite_is_found_in_any_floats(tmp_path):
    for value in [np.nan, np.inf]:
        for dtype in ["float16", ">f8", "float32"]:
            for shape in [(-1, 64), (-1, 8, 8)]:
                bad = X.astype(dtype)
                bad[77, 3] = value
                np.save(tmp_path / "X.npy", bad.reshape(shape))
                good = X.reshape(shape)
                for X_bad in (bad.reshape(shape), np.load(tmp_path / "X.npy", mmap_mode="r")):
                    message = r"X (of shape .* )?contains (NaN|infinity)"
                    with pytest.raises(ValueError, match=message):
                        embedder(good).fit(X_bad)
                with pytest.raises(ValueError, match=r"X (of shape .* )?contains (NaN|infinity)"):
                    embedder(good).fit(good).transform(bad.reshape(shape))


def test_large_float16_numbers_are_finite():
    assert np.isfinite(embedder(X).fit_transform(np.float16(X * 4000))).all()


# Memory maps


@pytest.mark.slow
def test_a_search_over_a_memory_map_in_several_processes(tmp_path):
    np.save(tmp_path / "X.npy", X.astype(np.int16))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    pipe = make_pipeline(embedder(X, memory_budget=0), LogisticRegression(max_iter=1000))
    scores = cross_val_score(pipe, mapped, y, cv=2, n_jobs=2)
    np.testing.assert_array_equal(scores, cross_val_score(pipe, X.astype(np.int16), y, cv=2))


def read_by_a_worker():
    source = Source(X, CPU, lambda x, device: torch.from_numpy(x), n_workers=1)
    return torch.cat(list(source.batches([torch.arange(3), torch.arange(3, 6)])))


def read_in_a_copy_of_a_process_that_has_read():
    multiprocessing.set_start_method("fork", force=True)
    before, process = read_by_a_worker(), os.fork()
    if not process:
        signal.alarm(60)  # ends this process if it waits
        try:
            os._exit(not torch.equal(read_by_a_worker(), before))
        finally:
            os._exit(2)
    return os.waitpid(process, 0)[1]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_process_forked_after_workers_have_read_has_workers_too():
    assert in_a_process(read_in_a_copy_of_a_process_that_has_read) == 0


# Sparse matrices


def sparse_counts(n=120, d=30):
    counts = np.random.default_rng(0).poisson(0.2, (n, d)).astype(float)
    counts[:, 0] = 0
    return counts


@pytest.mark.parametrize("form", [csr_matrix, csc_array, coo_array, csr_array])
def test_a_sparse_matrix_gives_what_its_array_gives(form):
    counts = sparse_counts()
    dense, sparse = small().fit(counts), small().fit(form(counts))
    np.testing.assert_allclose(sparse.transform(form(counts)), dense.transform(counts), atol=1e-4)
    np.testing.assert_array_equal(sparse.transform(counts), sparse.transform(form(counts)))
    assert sparse.n_features_in_ == 30


def test_of_a_sparse_matrix_only_some_rows_are_dense_at_a_time(monkeypatch):
    largest = []

    def counted(self, rows):
        dense = SPARSE_ROWS(self, rows)
        largest.append(dense.size)
        return dense

    SPARSE_ROWS = SparseSamples.__getitem__
    monkeypatch.setattr(SparseSamples, "__getitem__", counted)
    monkeypatch.setattr(_arrays, "_ENOUGH_NUMBERS", 2**20)
    X = sparse_random(500, 4000, density=0.001, format="csr", random_state=0)
    pipe = make_pipeline(MarginalCorruption(0.3), small(max_epochs=1)).fit(X)
    assert pipe.transform(X).shape == (500, 128)
    assert max(largest) <= 2**20 < 500 * 4000


def test_rows_of_a_sparse_matrix_are_arrays():
    counts = sparse_counts()
    samples = SparseSamples(csr_matrix(counts))
    assert (len(samples), samples.shape, samples.ndim) == (120, (120, 30), 2)
    for rows in (slice(3, 9), np.array([5, 1]), np.arange(120) < 4):
        np.testing.assert_array_equal(samples[rows], counts[rows])


def test_gaps_in_a_sparse_matrix_are_refused():
    counts = sparse_counts()
    counts[3, 4] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        small().fit(csr_matrix(counts))
    with pytest.raises(ValueError, match="contains NaN"):
        small().fit(sparse_counts()).transform(csr_matrix(counts))


def test_texts_are_embedded_in_a_pipeline():
    texts = [f"{a} {b}" for a in ("red", "blue") for b in ("car", "house", "tree")] * 10
    pipe = make_pipeline(TfidfVectorizer(), small(), LogisticRegression())
    assert len(cross_val_score(pipe, texts, [0, 0, 0, 1, 1, 1] * 10, cv=2)) == 2


class Nested(Items):
    """A Dataset whose items are embeddings of a fit that asks for workers of its own."""

    def __getitem__(self, row):
        return streamed_embedding(2)[row], 0


def streamed_embedding(n_workers):
    return embedder(X, memory_budget=0, n_workers=n_workers).fit(X).transform(X)


@pytest.mark.parametrize(
    "backend", [pytest.param("loky", marks=pytest.mark.slow), "multiprocessing", "threading"]
)
def test_in_workers_of_joblib_the_bits_are_the_same(backend):
    with joblib.parallel_config(backend=backend):
        jobs = [joblib.delayed(streamed_embedding)(2)]
        (embedding,) = joblib.Parallel(n_jobs=2)(jobs)
    np.testing.assert_array_equal(embedding, streamed_embedding(0))


def test_in_a_worker_of_a_loader_the_bits_are_the_same():
    loader = DataLoader(Nested(X[:1]), num_workers=1)
    ((embedding, _),) = loader
    np.testing.assert_array_equal(embedding[0], streamed_embedding(0)[0])
