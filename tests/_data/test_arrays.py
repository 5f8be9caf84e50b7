"""Of memory maps no more is held than is used; moments of columns neither overflow nor vanish."""

from pathlib import Path

import numpy as np
import pytest
import torch

from skcontrast._data import _arrays
from skcontrast._data._arrays import fingerprint, map_of, moments, release, row_blocks, some_rows

ARRAY = np.arange(6 * 4 * 5, dtype=np.int16).reshape(6, 4, 5)


@pytest.fixture
def mapped(tmp_path):
    np.save(tmp_path / "X.npy", ARRAY)
    return np.load(tmp_path / "X.npy", mmap_mode="r")


def resident(array):
    """Return how many kB of the file of a memory map this process holds."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    name = str(map_of(array).filename)
    (start,) = (k for k, line in enumerate(lines) if line.endswith(name))
    return next(int(line.split()[1]) for line in lines[start:] if line.startswith("Rss:"))


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux")
def test_what_was_read_of_a_memory_map_is_not_held(tmp_path, monkeypatch):
    monkeypatch.setattr(_arrays, "_BYTES_HELD", 2**18)
    np.save(tmp_path / "X.npy", np.ones((2**14, 2**9), np.float32))
    X = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert sum(float(rows.sum()) for rows in row_blocks(X, 64)) == X.size
    assert resident(X) < X.nbytes / 2**12  # kB: a quarter, since pages come in large folios
    assert float(X.sum()) == X.size and resident(X) >= X.nbytes / 2**10
    release(X[5:])
    assert resident(X) == 0
    assert float(X.sum()) == X.size


def test_some_rows_are_those_rows(mapped):
    big = np.arange(500)[:, None]
    for X in (big, mapped):
        rows = np.random.default_rng(0).integers(0, len(X), 300)
        np.testing.assert_array_equal(some_rows(X, rows), np.asarray(X)[rows])


def test_a_release_keeps_what_was_written(tmp_path):
    np.save(tmp_path / "X.npy", ARRAY)
    for mode in ("r+", "c"):
        X = np.load(tmp_path / "X.npy", mmap_mode=mode)
        X[2] = 7
        release(X)
        assert (X[2] == 7).all()


def test_blocks_of_anything_are_its_rows():
    for X in (ARRAY, torch.from_numpy(ARRAY), ARRAY[:0]):
        blocks = list(row_blocks(X, 4))
        assert sum(map(len, blocks)) == len(X) and all(len(block) <= 4 for block in blocks)


def test_moments_are_mean_and_standard_deviation():
    X = np.random.default_rng(0).normal(3, 2, size=(5000, 4))
    mean, std = moments(X)
    np.testing.assert_allclose(mean, X.mean(0), rtol=1e-12)
    np.testing.assert_allclose(std, X.std(0), rtol=1e-12)


@pytest.mark.parametrize("scale", [1e-300, 1e-30, 1.0, 1e30, 1e300])
def test_moments_scale_with_the_data(scale):
    X = np.random.default_rng(0).normal(size=(100, 3))
    for scaled, plain in zip(moments(X * scale), moments(X), strict=True):
        np.testing.assert_allclose(scaled / scale, plain, rtol=1e-10)


def test_a_fingerprint_has_shape_dtype_and_some_rows():
    rows = np.arange(3000.0).reshape(1000, 3)
    before = fingerprint([rows, np.arange(7)])
    assert before == fingerprint([np.asfortranarray(rows), np.arange(7)])
    changed = rows.copy()
    changed[4] = 0  # every fourth row is compared
    others = [changed, rows[:999], rows.reshape(3000), rows.astype(np.float32)]
    assert len({before, *(fingerprint([other, np.arange(7)]) for other in others)}) == 5
    assert fingerprint([np.zeros((0, 3))]) != fingerprint([np.zeros((0, 2))])
    assert fingerprint([np.array(1)]) != fingerprint([np.array(2)])
