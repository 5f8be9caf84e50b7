"""Modules of users and of PyTorch Geometric as encoders of graphs."""

import copy

import networkx as nx
import pytest
import torch
from torch import nn

from skcontrast.encoders._base import build_encoder  # private: the encoder as a fit builds it

# private: how a foreign network is wrapped
from skcontrast.graphs._networks import ForeignNetwork, graph_sum
from tests.encoders.graphs_common import WIDTH, as_batch, graphs_of


class Linear(nn.Module):
    """A module with the interface of PyTorch Geometric that looks at no edge."""

    def __init__(self, width=4, pooled=False, output=None):
        super().__init__()
        self.layer, self.pooled, self.output = nn.Linear(WIDTH, width), pooled, output

    def forward(self, x, edge_index, batch):
        assert edge_index.dtype == batch.dtype == torch.int64 and len(x) == len(batch)
        h = self.layer(x)
        if self.output is not None:
            return self.output(h)
        if not self.pooled:
            return h
        return h.new_zeros(int(batch[-1]) + 1, h.shape[1]).index_add_(0, batch, h)


@pytest.mark.parametrize("pooled", [False, True])
def test_apply_to_nodes_are_summed_and_rows_of_graphs_are_taken(pooled):
    module, width = build_encoder(Linear(pooled=pooled), (None, WIDTH))
    assert width == 4 and isinstance(module, ForeignNetwork)
    batch = as_batch(graphs_of("directed"), dtype=torch.float32)
    layer = module.message_passing.layer
    torch.testing.assert_close(module(batch), graph_sum(layer(batch.x), batch.topology))


def test_apply_to_nodes_are_needed_where_nodes_are_anchors():
    batch = as_batch(graphs_of("directed"), dtype=torch.float32)
    module, _ = build_encoder(Linear(), (None, WIDTH))
    assert module.nodes(batch).shape == (batch.n_nodes, 4)
    module, _ = build_encoder(Linear(pooled=True), (None, WIDTH))
    with pytest.raises(ValueError, match=r"InfoGraph needs .* a row per node"):
        module.nodes(batch)


@pytest.mark.parametrize("pooled", [False, True])
def test_graphs_of_single_nodes_have_as_many_rows_as_nodes(pooled):
    batch = as_batch([nx.empty_graph(1)] * 3, dtype=torch.float32)
    module, _ = build_encoder(Linear(pooled=pooled), (None, WIDTH))
    torch.testing.assert_close(module(batch), module.message_passing.layer(batch.x))


def test_a_module_of_others_is_copied_and_a_callable_is_called():
    own = Linear()
    before = copy.deepcopy(own.state_dict())
    module, _ = build_encoder(own, (None, WIDTH))
    module.message_passing.layer.weight.data.zero_()
    assert all(torch.equal(own.state_dict()[name], value) for name, value in before.items())

    def linear(sample_shape):
        assert sample_shape == (None, WIDTH)
        return Linear(width=6)

    assert build_encoder(linear, (None, WIDTH))[1] == 6


@pytest.mark.parametrize(
    "output, message",
    [
        (lambda h: h[:1], r"a row per graph or per node, 2 or 5, got a tensor of shape \(1, 4\)"),
        (lambda h: h[None], r"two dimensions, .* got a tensor of shape \(1, 5, 4\)"),
        (lambda h: (h, h), "two dimensions, .* got a tuple"),
        (lambda h: h.long(), "floating tensor .* got .* dtype torch.int64"),
        (lambda h: h[:2].long(), "floating tensor .* got .* dtype torch.int64"),
        (lambda h: h[:, :0], r"shape \(2, width\), got a tensor of shape \(2, 0\)"),
    ],
)
def test_wrong_outputs_are_refused(output, message):
    with pytest.raises(ValueError, match=f"The encoder Linear .*{message}"):
        build_encoder(Linear(output=output), (None, WIDTH))


def test_a_module_for_other_samples_is_refused():
    message = r"The encoder Linear failed on graphs of shape \(None, 3\): "
    with pytest.raises(ValueError, match=message):
        build_encoder(nn.Linear(WIDTH, 4), (None, WIDTH))
    with pytest.raises(ValueError, match=r"failed on graphs of shape \(None, 7\)"):
        build_encoder(Linear(), (None, 7))


def test_gin_of_pytorch_geometric_is_a_module_of_nodes(geometric):
    own = geometric.GIN(WIDTH, 8, num_layers=2)
    module, width = build_encoder(own, (None, WIDTH))
    batch = as_batch(graphs_of("directed"), dtype=torch.float32)
    expected = own.eval()(batch.x, batch.edge_index)
    assert width == 8
    torch.testing.assert_close(module.eval().nodes(batch), expected)
    pooled = geometric.global_add_pool(expected, batch.batch)
    torch.testing.assert_close(module(batch), pooled)


def test_a_module_may_pool_and_normalise_by_graph(geometric):
    class Pooled(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.norm = geometric.SAGEConv(WIDTH, 6), geometric.GraphNorm(6)

        def forward(self, x, edge_index, batch):
            h = self.norm(self.conv(x, edge_index), batch)
            return geometric.global_mean_pool(h, batch)

    module, width = build_encoder(Pooled(), (None, WIDTH))
    batch = as_batch(graphs_of("undirected"), dtype=torch.float32)
    module.eval()
    alone = torch.cat([module(batch[[k]]) for k in range(len(batch))])
    assert width == 6 and module(batch).shape == (len(batch), 6)
    torch.testing.assert_close(alone, module(batch), atol=1e-5, rtol=1e-5)
