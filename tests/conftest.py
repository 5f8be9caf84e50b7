"""Data that tests in several folders share. Lists and helpers for parametrising: see common.py."""

import signal

import pytest
import torch
from sklearn.datasets import load_digits

# Tensors are small here: a second thread costs more than it gives. What depends on the number
# of threads is tested with several.
torch.set_num_threads(1)


@pytest.fixture(scope="session")
def digits():
    """The first 300 digits, as vectors of 64 intensities, and their classes."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:300], y[:300]
    for array in (X, y):
        array.flags.writeable = False
    return X, y


@pytest.fixture
def interruptible():
    """Let Ctrl-C interrupt, also where the tests run as a background job, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
