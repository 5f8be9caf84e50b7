"""Networks that represent graphs and their nodes, and the sums that they compute."""

import networkx as nx
import pytest
import torch
from torch import nn

from skcontrast.encoders._base import build_encoder  # private: the encoder as a fit builds it
from skcontrast.graphs import pack_graphs

# private: sums against naive code
from skcontrast.graphs._networks import (
    ForeignNetwork,
    graph_sum,
    message_sum,
    neighbour_sum,
    run_sum,
)
from skcontrast.graphs._packed import Topology  # private: edges in another order
from tests.encoders.graphs_common import KINDS, WIDTH, adjacency, as_batch, graphs_of


@pytest.fixture(params=KINDS)
def batch(request):
    return as_batch(graphs_of(request.param))


def test_sum_over_neighbours_is_the_product_with_the_adjacency_matrix(batch):
    expected = adjacency(batch.topology) @ batch.x
    torch.testing.assert_close(neighbour_sum(batch.x, batch.topology), expected)


def edges_of(batch):
    generator = torch.Generator().manual_seed(1)
    n_edges = len(batch.topology.sources)
    return torch.randn(n_edges, WIDTH, generator=generator, dtype=torch.float64)


def test_sums_of_messages_are_those_of_each_edge(batch):
    topology, edges = batch.topology, edges_of(batch)
    messages = (batch.x[topology.sources] + edges).relu()
    expected = torch.zeros_like(batch.x).index_add_(0, topology.targets, messages)
    torch.testing.assert_close(message_sum(batch.x, edges, topology), expected)
    expected = torch.zeros_like(batch.x).index_add_(0, topology.targets, edges)
    torch.testing.assert_close(run_sum(edges, topology.edge_ptr), expected)


def test_gradients_of_sums_along_edges_with_features(batch):
    x, edges = batch.x.clone().requires_grad_(), edges_of(batch).requires_grad_()
    assert torch.autograd.gradcheck(lambda *some: message_sum(*some, batch.topology), (x, edges))


@pytest.mark.parametrize("total", [neighbour_sum, graph_sum])
def test_gradients_of_the_sums(batch, total):
    x = batch.x.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: total(x, batch.topology).sin(), x)
    assert torch.autograd.gradgradcheck(lambda x: total(x, batch.topology).sin(), x)


@pytest.mark.parametrize("total, rows", [(neighbour_sum, 3), (graph_sum, 2)])
def test_sums_over_nothing_are_zero(total, rows):
    node_ptr = torch.tensor([0, 0, 3]) if total is graph_sum else torch.tensor([0, 1, 3])
    topology = Topology.from_edges(torch.empty(2, 0, dtype=torch.int64), node_ptr, True)
    x = torch.ones(3, WIDTH, requires_grad=True)
    value = total(x, topology)
    value.sum().backward()
    if total is neighbour_sum:
        assert not value.any() and not x.grad.any()
    else:
        assert value.tolist() == [[0.0] * WIDTH, [3.0] * WIDTH]
    none = Topology.from_edges(torch.empty(2, 0, dtype=torch.int64), torch.tensor([0, 0, 0]), True)
    assert not total(torch.ones(0, WIDTH), none).any()
    assert total(torch.ones(0, WIDTH), none).shape == ((0 if rows == 3 else 2), WIDTH)


@pytest.mark.parametrize("total", [neighbour_sum, graph_sum])
def test_half_precision_is_summed_in_float32(total):
    topology = pack_graphs([nx.star_graph(1000)]).topology
    x = torch.ones(1001, 1, dtype=torch.bfloat16, requires_grad=True)
    value = total(x, topology)
    assert value.dtype == torch.float32 and value.max() >= 1000
    value.sum().backward()
    assert x.grad.dtype == torch.bfloat16


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


def test_features_of_edges_are_not_mistaken_for_the_graph_of_each_node():
    class ThirdAreEdges(_ThirdIsTheGraph):
        def forward(self, x, edge_index, edge_weight):
            return super().forward(x, edge_index, edge_weight)

    with pytest.raises(ValueError, match=r"ThirdAreEdges failed on graphs .*'edge_weight'"):
        build_encoder(ThirdAreEdges(), (None, WIDTH))


def test_a_module_without_a_place_for_the_batch_is_called_without(geometric):
    layer = geometric.GCNConv(WIDTH, 6)
    module, width = build_encoder(layer, (None, WIDTH))
    assert width == 6
    batch = as_batch(graphs_of("loops"), dtype=torch.float32)
    expected = geometric.global_add_pool(layer(batch.x, batch.edge_index), batch.batch)
    torch.testing.assert_close(module(batch), expected)


def test_a_foreign_module_is_asked_by_the_name_of_its_argument():
    class Keywords(nn.Module):
        def forward(self, x, edge_index, **kwargs):
            self.names = set(kwargs)
            return x

    batch, module = as_batch(graphs_of("loops")), Keywords()
    assert ForeignNetwork(module).nodes(batch).equal(batch.x)
    assert module.names == {"batch"}
