"""Global generators: seeded within a context, restored after it, also after an error."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch

# private: the generators of a fit
from skcontrast._runtime import seeded_everywhere, seeded_rng
from tests.common import global_states

CPU = torch.device("cpu")


def draws():
    return float(torch.rand(())), np.random.rand(), random.random()  # noqa: NPY002


@pytest.mark.parametrize("context", [seeded_rng, seeded_everywhere])
def test_states_are_restored_even_after_an_error(context):
    before = global_states()
    with context(3, CPU):
        torch.rand(4)
    with pytest.raises(RuntimeError), seeded_everywhere(3, CPU):
        draws()
        raise RuntimeError
    assert global_states() == before


def test_the_seed_decides_all_three_generators():
    drawn = []
    for seed in (1, 1, 2, 2**32 - 1):
        with seeded_everywhere(seed, CPU):
            drawn.append(draws())
    assert drawn[0] == drawn[1]
    assert all(a != b for a, b in zip(drawn[0], drawn[2], strict=True))


def test_the_context_can_be_nested():
    with seeded_everywhere(1, CPU):
        expected = (draws(), draws())
    with seeded_everywhere(1, CPU):
        first = draws()
        with seeded_everywhere(2, CPU):
            draws()
        assert (first, draws()) == expected
