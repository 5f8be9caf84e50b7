"""GIN: widths, pooling, invariances."""

import networkx as nx
import pytest
import torch
from torch import nn

from skcontrast.encoders import GIN
from skcontrast.encoders._base import build_encoder  # private: the encoder as a fit builds it
from skcontrast.graphs import GraphBatch
from skcontrast.graphs._packed import Topology  # private: edges in another order
from tests.encoders.graphs_common import KINDS, WIDTH, as_batch, graphs_of, membership, seeded

ENCODERS = [
    GIN(),
    GIN(n_layers=5, width=4, pooling="mean"),
    GIN(readout_input=False),
    GIN(2, 4, "sum", batch_norm=False),
]
POOLINGS = ["log-sum", "sum", "mean"]


def built(encoder, n_components=None):
    return seeded(lambda: build_encoder(encoder, (None, WIDTH), n_components)[0]).eval()


@pytest.mark.parametrize("pooling", POOLINGS)
def test_widths(pooling):
    for n_components in [None, 1, 7]:
        for readout_input in [True, False]:
            encoder = GIN(4, 6, pooling, readout_input=readout_input)
            module, width = build_encoder(encoder, (None, WIDTH), n_components)
            expected = 24 + (WIDTH if readout_input else 0)
            assert width == (n_components or expected)
            batch = as_batch(graphs_of("undirected"), dtype=torch.float32)
            assert module.nodes(batch).shape == (batch.n_nodes, width)
            assert module(batch).shape == (len(batch), width)


@pytest.mark.parametrize("encoder", ENCODERS, ids=repr)
def test_a_graph_is_the_sum_or_the_mean_of_its_nodes(encoder):
    for n_components in [None, 5]:
        module, batch = built(encoder, n_components), as_batch(graphs_of("directed"))
        nodes = module.nodes(batch)
        expected = membership(batch.topology) @ nodes
        if encoder.pooling == "mean":
            expected /= batch.topology.sizes[:, None]
        if encoder.pooling == "log-sum":
            expected = expected.sign() * expected.abs().log1p()
        torch.testing.assert_close(module(batch), expected)
        torch.testing.assert_close(module.pool(nodes, batch), expected)


@pytest.mark.parametrize("kind", KINDS)
def test_the_input_is_read_out_and_changes_nothing_else(kind):
    batch, module = as_batch(graphs_of(kind)), built(GIN(2, 4))
    without = built(GIN(2, 4, readout_input=False))
    without.load_state_dict(module.state_dict())
    h = module(batch)
    torch.testing.assert_close(h[:, WIDTH:], without(batch))
    sums = h[:, :WIDTH].sign() * h[:, :WIDTH].abs().expm1()
    torch.testing.assert_close(sums, membership(batch.topology) @ batch.x)


def test_outputs_of_layers_are_read_out_before_they_are_normalised():
    batch, module = as_batch(graphs_of("undirected")), built(GIN(3, 4))
    assert (module.nodes(batch)[:, WIDTH:] >= 0).all()
    assert len(module.message_passing.norms) == 2


def test_a_node_sees_as_far_as_there_are_layers():
    path = as_batch([nx.path_graph(8)])
    other = GraphBatch(path.topology, path.x.clone().index_fill_(0, torch.tensor([0]), 9.0))
    for n_layers in (1, 2, 4):
        module = built(GIN(n_layers, 8))
        changed = (module.nodes(path) != module.nodes(other)).any(1)
        assert changed.nonzero().max() == n_layers


@pytest.mark.parametrize("encoder", ENCODERS, ids=repr)
def test_the_order_of_nodes_and_edges_does_not_matter(encoder):
    for kind in KINDS:
        batch, module = as_batch(graphs_of(kind)), built(encoder)
        generator = torch.Generator().manual_seed(1)
        # Nodes are shuffled within their graphs.
        keys = torch.rand(batch.n_nodes, generator=generator) + batch.batch
        order = keys.argsort()
        place = order.argsort()
        edges = place[batch.edge_index]
        edges = edges[:, torch.randperm(edges.shape[1], generator=generator)]
        topology = Topology.from_edges(edges, batch.topology.node_ptr, batch.topology.symmetric)
        shuffled = GraphBatch(topology, batch.x[order])
        torch.testing.assert_close(module(shuffled), module(batch))
        torch.testing.assert_close(module.nodes(shuffled), module.nodes(batch)[order])


def test_batch_norm_is_over_the_nodes_of_the_batch():
    batch = as_batch(graphs_of("undirected"), dtype=torch.float32)
    module, _ = build_encoder(GIN(2, 4), (None, WIDTH))
    passed = []
    (norm,) = module.message_passing.norms
    norm.register_forward_hook(lambda norm, inputs, output: passed.append(output))
    module.train().nodes(batch)
    torch.testing.assert_close(passed[0].mean(0), torch.zeros(4), atol=1e-5, rtol=0)
    plain, _ = build_encoder(GIN(2, 4, batch_norm=False), (None, WIDTH))
    assert not any(isinstance(part, nn.BatchNorm1d) for part in plain.modules())
