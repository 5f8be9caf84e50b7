"""Vectors."""

import numpy as np
import pytest


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(20, 4))
