"""Samples through a network in portions."""

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast._network._inference import encode, on_cpu, rows_per_call
from skcontrast.graphs import PackedGraphs


@pytest.mark.parametrize("batch_size", [1, 3, 7, 10, 99])
def test_portions_do_not_change_the_result(batch_size):
    module = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
    X = np.random.default_rng(0).normal(size=(10, 4)).astype(np.float32)
    h = encode(module, X, batch_size, to_tensor=torch.from_numpy)
    expected = module.eval()(torch.from_numpy(X)).detach().numpy()
    assert h.dtype == np.float32
    np.testing.assert_allclose(h, expected, atol=1e-6)


def test_many_small_samples_and_few_large_ones_per_call():
    def of_shape(*shape):
        return rows_per_call(np.broadcast_to(np.float32(0), (9, *shape)))

    assert of_shape(2) == 2**14
    assert of_shape(3, 32, 32) == 341
    assert of_shape(3, 1000, 1000) == 32
    edges = np.empty((2, 0))
    assert rows_per_call(PackedGraphs.from_arrays(edges.astype(int), [0, 2**14, 2**15])) == 2


def test_on_cpu_returns_tensors_on_the_cpu_themselves():
    module = nn.Linear(2, 2)
    state = {"state": {0: {"step": torch.ones(1)}}, "groups": [{"lr": 0.1}]}
    assert on_cpu(module) is module
    assert on_cpu(state) == state
    assert on_cpu(None) is None
