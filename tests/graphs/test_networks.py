"""Networks of graphs: pooling, and modules that are called as in PyTorch Geometric."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from skcontrast.encoders._build import build_encoder
from tests.encoders.graphs_common import WIDTH, as_batch, graphs_of


@pytest.fixture
def geometric():
    return pytest.importorskip("torch_geometric.nn", reason="needs PyTorch Geometric")


class _ThirdIsTheGraph(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(WIDTH, 3)

    def forward(self, x, edge_index, graph_of_node):
        sums = torch.zeros(int(graph_of_node.max()) + 1, 3, dtype=x.dtype)
        return sums.index_add(0, graph_of_node, self.linear(x))


def test_a_module_without_an_argument_named_batch_gets_it_as_the_third():
    module, width = build_encoder(_ThirdIsTheGraph(), (None, WIDTH))
    assert width == 3
    batch = as_batch(graphs_of("loops"), dtype=torch.float32)
    assert module(batch).shape == (len(batch), 3)


def test_a_module_without_a_place_for_the_batch_is_called_without(geometric):
    layer = geometric.GCNConv(WIDTH, 6)
    module, width = build_encoder(layer, (None, WIDTH))
    assert width == 6
    batch = as_batch(graphs_of("loops"), dtype=torch.float32)
    expected = geometric.global_add_pool(layer(batch.x, batch.edge_index), batch.batch)
    torch.testing.assert_close(module(batch), expected)
