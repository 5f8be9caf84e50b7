"""Two fits are the same if their parameters and all bytes of their data are."""

import numpy as np
import pytest
import torch
from torch.utils.data import Dataset, TensorDataset

from skcontrast._data._sources import LazySamples
from skcontrast._fit._identity import Identity, checksum

ROWS = np.arange(3000.0).reshape(600, 5)


def test_each_byte_of_an_array_in_memory_counts():
    before = checksum(None, [ROWS])
    for row in (0, 1, 313, 599):
        other = ROWS.copy()
        other[row, 3] += 1e-9
        assert checksum(None, [other]) != before
    assert checksum(None, [ROWS.copy()]) == checksum(None, [np.asfortranarray(ROWS)]) == before


@pytest.mark.parametrize(
    "other", [ROWS.reshape(300, 10), ROWS.astype(np.int64), ROWS[:599]], ids=str
)
def test_shape_and_dtype_count(other):
    assert checksum(None, [other]) != checksum(None, [ROWS])


@pytest.mark.parametrize("array", [np.empty((0, 3)), np.array(5.0), np.empty((3, 0))], ids=str)
def test_arrays_without_rows_have_a_checksum(array):
    assert checksum(None, [array]) == checksum(None, [array.copy()])


def test_many_chunks_are_as_good_as_one(monkeypatch):
    whole = checksum(None, [ROWS])
    monkeypatch.setattr("skcontrast._fit._identity._CHUNK_BYTES", 100)
    assert checksum(None, [ROWS]) == whole


def test_some_rows_of_a_memory_map_count(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    mapped = np.load(tmp_path / "rows.npy", mmap_mode="r+")
    before = checksum(None, [mapped])
    assert checksum(None, [np.asarray(mapped)]) == before  # still not in memory
    mapped[1] = 0  # every third row is read
    assert checksum(None, [mapped]) == before
    mapped[3] = 0
    assert checksum(None, [mapped]) != before


def test_some_rows_of_a_dataset_count():
    def of(rows):
        lazy = LazySamples(TensorDataset(torch.as_tensor(rows)))
        return checksum(lazy, [lazy])

    other = ROWS.copy()
    other[3] = 0
    assert of(ROWS) == of(ROWS.copy()) != of(other)


class Noisy(Dataset):
    """Returns another sample each time."""

    def __len__(self):
        return 50

    def __getitem__(self, row):
        return np.random.default_rng().normal(size=3)


def test_of_a_dataset_that_draws_its_samples_the_shape_counts():
    first, second = LazySamples(Noisy()), LazySamples(Noisy())
    assert checksum(first, [first]) == checksum(second, [second])


def test_a_difference_names_the_first_parameter_that_differs():
    one = Identity({"a": "1", "b": "2"}, {"X": "x"}, "")
    assert one.difference(vars(one)) is None
    other = Identity({"a": "1", "b": "3", "c": "4"}, {"X": "y"}, "")
    assert other.difference(vars(one)) == "its parameter 'b' was 2 and is 3 now"
    other = Identity({"a": "1", "b": "2", "c": "4"}, {"X": "y"}, "")
    assert other.difference(vars(one)) == "its parameter 'c' was not there and is 4 now"
    other = Identity(one.parameters, {"X": "x", "y": "z"}, "")
    assert other.difference(vars(one)) == "it was passed a different y"
    other = Identity(one.parameters, one.data, "network")
    assert other.difference(vars(one)) == "it continued from a different embedder"
    assert other.code == one.code and len(one.code) == 16
