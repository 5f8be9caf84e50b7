"""Arrays in files are opened again in other processes, and are the same there."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from skcontrast._data import _memory_maps
from skcontrast._data._checksum import is_in_memory
from skcontrast._data._memory_maps import (
    dumps,
    map_of,
    opened,
    place_of,
    release,
    row_blocks,
    some_rows,
)

ARRAY = np.arange(6 * 4 * 5, dtype=np.int16).reshape(6, 4, 5)


@pytest.fixture
def mapped(tmp_path):
    np.save(tmp_path / "X.npy", ARRAY)
    return np.load(tmp_path / "X.npy", mmap_mode="r")


PARTS = {
    "whole": lambda X: X,
    "a plain array on it": np.asarray,
    "some rows": lambda X: X[2:5],
    "every other row, from behind": lambda X: X[::-2],
    "transposed": lambda X: X.transpose(0, 2, 1)[1:],
    "reshaped": lambda X: X.reshape(6, -1)[:, 3:],
    "other bytes": lambda X: X.view(np.uint16),
    "one number": lambda X: X[3, 2:3, 1],
    "through a memoryview": lambda X: np.asarray(memoryview(X)),
}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_any_view_of_a_memory_map_is_opened_again(mapped, part):
    view = part(mapped)
    again = opened(*place_of(view))
    np.testing.assert_array_equal(again, view)
    assert (again.dtype, again.strides) == (view.dtype, view.strides)
    assert not again.flags.writeable and not is_in_memory(again)
    assert str(map_of(again).filename) == str(map_of(view).filename)


def test_a_view_that_was_opened_is_opened_again(mapped):
    again = opened(*place_of(opened(*place_of(mapped[1:, 2]))[::2]))
    np.testing.assert_array_equal(again, ARRAY[1::2, 2])


def test_a_raw_file_with_an_offset(tmp_path):
    (tmp_path / "raw").write_bytes(b"header!" + ARRAY.tobytes())
    X = np.memmap(tmp_path / "raw", np.int16, "r", 7, ARRAY.shape)
    np.testing.assert_array_equal(opened(*place_of(X[3:])), ARRAY[3:])


def test_what_the_file_does_not_hold_has_no_place(mapped, tmp_path):
    copied = np.load(tmp_path / "X.npy", mmap_mode="c")
    copied[0] = 7
    empty = mapped[:0]
    for array in (ARRAY, mapped + 1, mapped[[0, 2]], copied, empty):
        assert place_of(array) is None
        np.testing.assert_array_equal(pickle.loads(dumps(array)), array)
    (tmp_path / "X.npy").unlink()
    assert place_of(mapped) is None
    np.testing.assert_array_equal(pickle.loads(dumps(mapped)), ARRAY)


def test_a_pickle_holds_places_at_any_depth(tmp_path):
    X = np.lib.format.open_memmap(tmp_path / "X.npy", "w+", np.float16, (1000, 300))
    X[5] = 3
    pickled = dumps({"parts": [X[:500], np.asarray(X[500:])], "labels": torch.arange(3)})
    assert len(pickled) < 2000 < X.nbytes
    again = pickle.loads(pickled)
    np.testing.assert_array_equal(np.concatenate(again["parts"]), X)
    assert again["labels"].tolist() == [0, 1, 2]


def resident(array):
    """Return how many kB of the file of a memory map this process holds."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    name = str(map_of(array).filename)
    (start,) = (k for k, line in enumerate(lines) if line.endswith(name))
    return next(int(line.split()[1]) for line in lines[start:] if line.startswith("Rss:"))


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux")
def test_what_was_read_of_a_memory_map_is_not_held(tmp_path, monkeypatch):
    monkeypatch.setattr(_memory_maps, "_BYTES_HELD", 2**18)
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
