"""Blocks of rows in threads change a matrix as one call does."""

import numpy as np
import pytest
import torch

from skcontrast._runtime._row_blocks import on_row_blocks


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("shape", [(1, 3), (2, 40_000), (301, 997), (0, 5)])
def test_rows_are_sorted_as_by_one_call(shape, n_threads):
    matrix = np.random.default_rng(0).normal(size=shape)
    expected, before = np.sort(matrix, axis=1), torch.get_num_threads()
    torch.set_num_threads(n_threads)
    try:
        on_row_blocks(lambda rows: rows.sort(axis=1), matrix)
    finally:
        torch.set_num_threads(before)
    np.testing.assert_array_equal(matrix, expected)


def test_an_error_in_a_block_is_raised():
    def fail(rows):
        raise ValueError("rows")

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        with pytest.raises(ValueError, match="rows"):
            on_row_blocks(fail, np.zeros((400, 400)))
    finally:
        torch.set_num_threads(before)
