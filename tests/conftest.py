"""Data that tests in several folders share. Lists and helpers for parametrising: see common.py."""

import pytest
from sklearn.datasets import load_digits


@pytest.fixture(scope="session")
def digits():
    """The first 300 digits, as vectors of 64 intensities, and their classes."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    for array in (X, y):
        array.flags.writeable = False
    return X, y
