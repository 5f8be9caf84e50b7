"""Measures of many samples: memory stays far below that of a matrix of all pairs."""

import tracemalloc

import numpy as np
import pytest

from skcontrast.metrics import knn_accuracy, map_at_r, neighbor_agreement, recall_at_k, uniformity

N = 6000
RNG = np.random.default_rng(0)
H, OTHER = RNG.normal(size=(2, N, 16))
Y = np.arange(N) % 60


@pytest.mark.parametrize(
    "measure",
    [
        lambda: knn_accuracy(H, Y),
        lambda: recall_at_k(H, Y, k=8),
        lambda: map_at_r(H, Y),
        lambda: neighbor_agreement(H, OTHER),
        lambda: uniformity(H),
    ],
    ids=["knn", "recall", "map", "agreement", "uniformity"],
)
def test_no_measure_holds_a_matrix_of_all_pairs(measure):
    tracemalloc.start()
    try:
        measure()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < N * N * 8 / 2
