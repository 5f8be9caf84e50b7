"""Sets of digits are what they are called."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.studies._digit_fits import N_FEW_CLASSES, split


@pytest.mark.parametrize("n_classes", [2, 3, 5, 10])
def test_digits_of_few_classes_are_as_many_whatever_their_number(n_classes):
    for seed in range(5):
        _, y_train, _, y_test = split(seed, n_classes)
        counts = np.unique(y_train, return_counts=True)[1]
        assert set(counts) == {N_FEW_CLASSES // n_classes} and len(counts) == n_classes
        assert set(y_test) == set(y_train)
