"""Blocks of rows; moments of columns neither overflow nor vanish."""

import numpy as np
import pytest
import torch

from skcontrast._data._arrays import fingerprint, moments, row_blocks

ARRAY = np.arange(6 * 4 * 5, dtype=np.int16).reshape(6, 4, 5)


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
