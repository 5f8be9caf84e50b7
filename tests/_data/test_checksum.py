"""Arrays have the same checksum if they have the same shape, dtype and bytes."""

import mmap

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from skcontrast._data._arrays import LazySamples
from skcontrast._data._checksum import checksum, fingerprint, is_in_memory

ROWS = np.arange(3000.0).reshape(600, 5)


def test_each_byte_of_an_array_in_memory_counts():
    before = checksum([ROWS])
    for row in (0, 1, 313, 599):
        other = ROWS.copy()
        other[row, 3] += 1e-9
        assert checksum([other]) != before
    assert checksum([ROWS.copy()]) == checksum([np.asfortranarray(ROWS)]) == before


@pytest.mark.parametrize(
    "other", [ROWS.reshape(300, 10), ROWS.astype(np.int64), ROWS[:599]], ids=str
)
def test_shape_and_dtype_count(other):
    assert checksum([other]) != checksum([ROWS])


@pytest.mark.parametrize("array", [np.empty((0, 3)), np.array(5.0), np.empty((3, 0))], ids=str)
def test_arrays_without_rows_have_a_checksum(array):
    assert checksum([array]) == checksum([array.copy()])


def test_a_single_number_counts():
    assert checksum([np.array(5.0)]) != checksum([np.array(6.0)])


def test_without_contents_the_shape_and_dtype_count():
    assert checksum([ROWS], contents=False) == checksum([ROWS + 1], contents=False)
    assert checksum([ROWS], contents=False) != checksum([ROWS[1:]], contents=False)


def test_some_rows_of_a_memory_map_count(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r+")
    before = checksum([mapped])
    assert checksum([np.asarray(mapped)]) == before  # still not in memory
    mapped[1] = 0  # every third row is read
    assert checksum([mapped]) == before
    mapped[3] = 0
    assert checksum([mapped]) != before


def test_some_rows_of_a_dataset_count():
    def of(rows):
        lazy = LazySamples(TensorDataset(torch.as_tensor(rows)))
        return checksum([lazy])

    other = ROWS.copy()
    other[3] = 0
    assert of(ROWS) == of(ROWS.copy()) != of(other)


@pytest.mark.parametrize("shape", [(3000, 4), (4, 3000), (3000,), (0, 3), (3, 0)])
def test_a_checksum_in_chunks_reads_every_byte(shape, monkeypatch):
    array = np.random.default_rng(0).normal(size=shape)
    whole = checksum([array])
    monkeypatch.setattr("skcontrast._data._arrays._NUMBERS_PER_BLOCK", 12)
    assert whole == checksum([array])
    assert whole == checksum([np.asfortranarray(array)])
    assert whole != checksum([array.astype(np.float32)])
    for place in range(0, array.size, 997):
        changed = array.copy()
        changed.flat[place] = 1e-3
        assert checksum([changed]) != whole


def test_a_fingerprint_of_some_rows_is_the_one_that_older_files_hold():
    arrays = [np.arange(3000.0).reshape(1000, 3), np.arange(7)]
    assert fingerprint(arrays) == 1180043241
    assert fingerprint([np.zeros((0, 3))]) != fingerprint([np.zeros((0, 2))])


def test_arrays_in_files_are_told_from_arrays_in_memory(tmp_path):
    np.save(tmp_path / "x.npy", ROWS)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert is_in_memory(ROWS) and is_in_memory(ROWS[::2].T)
    assert not is_in_memory(mapped) and not is_in_memory(np.asarray(mapped)[3:])
    assert not is_in_memory(torch.zeros(2))
    with (tmp_path / "x.npy").open("rb") as file:
        opened = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    assert not is_in_memory(np.frombuffer(opened, np.uint8)[8:])
    assert is_in_memory(np.frombuffer(b"bytes", np.uint8))
