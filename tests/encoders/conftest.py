"""Batches of graphs of all kinds."""

import pytest

from tests.encoders.graphs_common import KINDS, as_batch, graphs_of


@pytest.fixture(params=KINDS)
def batch(request):
    return as_batch(graphs_of(request.param))


@pytest.fixture
def geometric():
    return pytest.importorskip("torch_geometric.nn", reason="needs PyTorch Geometric")
