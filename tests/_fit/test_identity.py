"""Two fits are the same if their parameters and data are, and a difference has a name."""

import numpy as np
from torch.utils.data import Dataset

from skcontrast._data._arrays import LazySamples
from skcontrast._fit._identity import Identity, samples_checksum
from skcontrast.kinds import Vectors


class Noisy(Dataset):
    """Returns another sample each time."""

    def __len__(self):
        return 50

    def __getitem__(self, row):
        return np.random.default_rng().normal(size=3)


def test_of_a_dataset_that_draws_its_samples_the_shape_counts():
    first, second = (samples_checksum(Vectors(), LazySamples(Noisy())) for _ in range(2))
    assert first == second
    rows = np.zeros((50, 3))
    assert samples_checksum(Vectors(), rows) != samples_checksum(Vectors(), rows + 1)


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


def test_a_fit_without_a_seed_takes_any():
    seeded, other = (Identity({"random_state": k}, {}, "") for k in "01")
    free = Identity({}, {}, "")
    assert free.difference(vars(seeded)) is None and seeded.difference(vars(free)) is None
    assert other.difference(vars(seeded)) == "its parameter 'random_state' was 0 and is 1 now"
    assert len({seeded.code, other.code, free.code}) == 3
