"""Sums over neighbours and over the nodes of graphs."""

from __future__ import annotations

import networkx as nx
import pytest
import torch

from skcontrast.graphs import pack_graphs
from skcontrast.graphs._sums import (
    edge_sum,
    graph_sum,
    message_sum,
    neighbour_sum,
)
from skcontrast.graphs._topology import Topology
from tests.encoders.graphs_common import KINDS, WIDTH, adjacency, as_batch, graphs_of, membership


@pytest.fixture(params=KINDS)
def batch(request):
    return as_batch(graphs_of(request.param))


def test_sum_over_neighbours_is_the_product_with_the_adjacency_matrix(batch):
    expected = adjacency(batch.topology) @ batch.x
    torch.testing.assert_close(neighbour_sum(batch.x, batch.topology), expected)


def test_sum_over_graphs_is_the_product_with_the_membership_matrix(batch):
    expected = membership(batch.topology) @ batch.x
    torch.testing.assert_close(graph_sum(batch.x, batch.topology), expected)


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
    torch.testing.assert_close(edge_sum(edges, topology), expected)


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
