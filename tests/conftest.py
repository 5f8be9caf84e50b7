"""Data that tests in several folders share. Lists and helpers for parametrising: see common.py."""

import functools
import gc
import os
import signal
from pathlib import Path

# Tensors are small here: a second thread costs more than it gives, and so in the processes that
# tests start. Libraries read this when they are imported. What depends on the number of threads
# is tested with several.
os.environ["OMP_NUM_THREADS"] = "1"

import joblib
import pytest
import torch
from sklearn.datasets import load_digits

torch.set_num_threads(1)
# Macs of CI have a GPU without memory; the tests of a GPU are in test_gpu.py. torch._dynamo reads
# an attribute of the cached function that this replaces.
torch.backends.mps.is_available = functools.cache(lambda: False)


def pytest_xdist_auto_num_workers(config):
    """Share the tests among the CPUs, but run a single file at once in this process."""
    paths = {Path(arg.partition("::")[0]) for arg in config.args}
    return 0 if len(paths) == 1 and paths.pop().is_file() else min(joblib.cpu_count(), 8)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Make the thousands of tests without looking for garbage, of which there is none."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


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
