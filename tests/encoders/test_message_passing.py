"""The layers made of sums over neighbours."""

from dataclasses import replace

import pytest
import torch
from torch import nn

from skcontrast.encoders._graph import GINELayer, GINLayer  # private: one layer against naive code
from skcontrast.graphs import GraphBatch, pack_graphs
from skcontrast.graphs._batch import EdgeColumns  # private: the columns of a batch
from tests.encoders.graphs_common import WIDTH, adjacency, graphs_of, seeded
from tests.graphs.common import packed_arrays


@pytest.mark.parametrize("n_dense", [0, 2])
@pytest.mark.parametrize("n_codes", [0, 1, 4])
@pytest.mark.parametrize("ordinal", [False, True])
def test_features_are_projected_without_being_written_out(n_dense, n_codes, ordinal):
    topology = pack_graphs(graphs_of("undirected")).topology
    generator = torch.Generator().manual_seed(0)
    dense = torch.randn(topology.n_nodes, n_dense, generator=generator, dtype=torch.float64)
    codes = torch.randint(-1, n_codes, (topology.n_nodes,), generator=generator)
    batch = GraphBatch(topology, dense, codes if n_codes else None, n_codes, ordinal)
    weight = torch.randn(5, n_dense + n_codes, generator=generator, dtype=torch.float64)
    weight.requires_grad_()
    results = []
    for projected in (batch.project(weight), batch.x @ weight.T):
        results.append((projected, *torch.autograd.grad(projected.sin().sum(), weight)))
    torch.testing.assert_close(*results)


def test_gin_layer_equals_its_formula(batch):
    layer = seeded(lambda: GINLayer(WIDTH, 5))
    summed = batch.x + adjacency(batch.topology) @ batch.x
    hidden = (summed @ layer.linear.weight.T + layer.bias).relu()
    expected = (hidden @ layer.second.weight.T + layer.second.bias).relu()
    torch.testing.assert_close(layer(batch.x, batch), expected)


def with_edges(batch):
    """Return a batch whose edges have numbers, a label and positive weights."""
    generator = torch.Generator().manual_seed(2)
    n_edges = len(batch.topology.sources)
    dense = torch.randn(n_edges, 2, generator=generator, dtype=torch.float64)
    codes = torch.randint(-1, 3, (n_edges,), generator=generator)
    return replace(batch, edges=EdgeColumns(dense, codes, 3, weight=dense[:, 0].exp()))


def test_gine_layer_adds_the_sum_of_gineconv_to_that_of_gin(batch, geometric):
    batch, own = with_edges(batch), seeded(lambda: GINELayer(WIDTH, 5, 5))
    # With eps = -1, PyTorch Geometric leaves the node itself out of the sum.
    conv = geometric.GINEConv(nn.Linear(5, 5), eps=-1.0, edge_dim=5).double()
    conv.lin, conv.nn = own.edge_linear, nn.Identity()
    messages = conv(own.source_linear(batch.x), batch.edge_index, batch.edge_attr)
    summed = own.linear(batch.x + adjacency(batch.topology) @ batch.x) + own.bias + messages
    torch.testing.assert_close(own(batch.x, batch), own.second(summed.relu()).relu())


def test_gine_tells_apart_which_neighbour_is_at_the_end_of_which_edge():
    """Two neighbours and two edges, joined in two ways: sums of both do not differ."""
    topology = packed_arrays([[0, 1, 3, 4], [2, 2, 5, 5]], [0, 3, 6]).topology
    x = torch.tensor([0.0, 1, 0, 0, 1, 0], dtype=torch.float64)[:, None]
    edges = EdgeColumns(torch.tensor([0.0, 1, 1, 0], dtype=torch.float64)[:, None])
    out = seeded(lambda: GINELayer(1, 8, 1))(x, GraphBatch(topology, x, edges=edges))
    assert not torch.allclose(out[2], out[5])


def test_gradients_of_the_layer_with_edges(batch):
    batch, x = with_edges(batch), batch.x.clone().requires_grad_()
    layer = seeded(lambda: GINELayer(WIDTH, 2, 5))
    assert torch.autograd.gradcheck(lambda x: layer(x, batch), x, fast_mode=True)
    for parameter in layer.parameters():
        own = torch.autograd.grad(layer(batch.x, batch).sin().sum(), parameter, retain_graph=True)
        assert own[0].isfinite().all()
