"""Blocks of rows, and the scale of their columns."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_array

# private: samples as the fit reads them
from skcontrast._data._arrays import SparseSamples, column_scaler, fingerprint, row_blocks

ARRAY = np.arange(6 * 4 * 5, dtype=np.int16).reshape(6, 4, 5)


def test_blocks_of_anything_are_its_rows():
    for X in (ARRAY, torch.from_numpy(ARRAY), ARRAY[:0]):
        blocks = list(row_blocks(X, 4))
        assert sum(map(len, blocks)) == len(X) and all(len(block) <= 4 for block in blocks)


def test_columns_are_scaled_by_their_standard_deviation_and_constant_ones_by_1():
    X = np.random.default_rng(0).normal(3, 2, size=(5000, 4))
    X[:, 2] = 0.1
    expected = np.where(np.arange(4) == 2, 1, X.std(0))
    for given in (X, SparseSamples(csr_array(X))):
        np.testing.assert_allclose(column_scaler(given).mean_, X.mean(0), rtol=1e-12)
        np.testing.assert_allclose(column_scaler(given).scale_, expected, rtol=1e-12)
    with pytest.raises(ValueError, match="X must be numbers of finite variance"):
        column_scaler(X * 1e300)


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
