"""The sets of series of the benchmarks, from a folder of files."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks import _series_sets
from benchmarks._series_sets import load_series


@pytest.mark.parametrize("folder", [".", "series"])
def test_both_parts_of_a_set_are_pooled_and_padded_to_the_longer(tmp_path, folder):
    (tmp_path / "series").mkdir()
    stored = {"X_train": np.ones((2, 3, 4)), "y_train": ["b", "a"]}
    stored |= {"X_test": np.full((1, 3, 6), 2.0), "y_test": ["b"]}
    np.savez(tmp_path / folder / "set.npz", **stored)
    X, y, n_train = load_series("set", tmp_path)
    assert n_train == 2
    assert X.shape == (3, 3, 6) and X.dtype == np.float32
    assert (X[:2, :, :4] == 1).all() and np.isnan(X[:2, :, 4:]).all() and (X[2] == 2).all()
    assert y.tolist() == [1, 0, 1]


def test_a_set_may_have_one_part_in_the_folder_of_the_environment(tmp_path, monkeypatch):
    np.savez(tmp_path / "set.npz", X=np.ones((5, 1, 4), np.float16), y=np.arange(5))
    monkeypatch.setenv(_series_sets.FOLDER, str(tmp_path))
    X, y, n_train = load_series("set")
    assert n_train == 5 and X.shape == (5, 1, 4) and y.tolist() == [0, 1, 2, 3, 4]


def test_without_a_folder_the_option_is_named(monkeypatch):
    monkeypatch.delenv(_series_sets.FOLDER, raising=False)
    with pytest.raises(SystemExit, match="--data-home"):
        load_series("set")
