"""GIN, GCN and the sums that they are made of; modules of PyTorch Geometric as encoders."""

from __future__ import annotations

import copy
import pickle

import networkx as nx
import pytest
import torch
from sklearn.base import clone
from torch import nn

from skcontrast._fit._defaults import default_encoder
from skcontrast._parameters import InvalidParameterError
from skcontrast.encoders import GCN, GIN, MLP, ConvNet
from skcontrast.encoders._build import build_encoder
from skcontrast.encoders._message_passing import GCNLayer, GINLayer
from skcontrast.graphs import GraphBatch, pack_graphs
from skcontrast.graphs._networks import ForeignNetwork
from skcontrast.graphs._sums import graph_sum, neighbour_sum
from skcontrast.graphs._topology import Topology
from skcontrast.kinds import Graphs

WIDTH = 3
KINDS = ["undirected", "directed", "edgeless", "loops", "parallel"]


def graphs_of(kind):
    """Return graphs, some of whose nodes are isolated."""
    directed = kind == "directed"
    graphs = [nx.gnp_random_graph(n, 0.3, seed=n, directed=directed) for n in (4, 9, 6)]
    if kind == "edgeless":
        graphs = [nx.empty_graph(n) for n in (1, 3)]
    if kind == "loops":
        graphs[1].add_edges_from([(0, 0), (3, 3)])
    if kind == "parallel":
        graphs.append(nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 2), (2, 2)]))
    return [*graphs, nx.empty_graph(2, type(graphs[0]))]


def as_batch(graphs, seed=0, dtype=torch.float64):
    """Return graphs with random features as a batch."""
    topology = pack_graphs(graphs).topology
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(topology.n_nodes, WIDTH, generator=generator, dtype=dtype)
    return GraphBatch(topology, x)


@pytest.fixture(params=KINDS)
def batch(request):
    return as_batch(graphs_of(request.param))


def adjacency(topology):
    """Return A, with A[v, u] the number of edges from u to v."""
    matrix = torch.zeros(topology.n_nodes, topology.n_nodes, dtype=torch.float64)
    ones = torch.ones(len(topology.sources), dtype=torch.float64)
    return matrix.index_put_((topology.targets, topology.sources), ones, accumulate=True)


def membership(topology):
    """Return M, with M[g, v] whether node v belongs to graph g."""
    return (torch.arange(topology.n_graphs)[:, None] == topology.graph_of_node).double()


def seeded(build, seed=0):
    """Return a new module with all parameters drawn anew, so that none is zero."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = build().double()
        for parameter in module.parameters():
            nn.init.normal_(parameter, std=0.5)
    return module


@pytest.fixture
def geometric():
    return pytest.importorskip("torch_geometric.nn", reason="needs PyTorch Geometric")


# Sums


def test_sum_over_neighbours_is_the_product_with_the_adjacency_matrix(batch):
    expected = adjacency(batch.topology) @ batch.x
    torch.testing.assert_close(neighbour_sum(batch.x, batch.topology), expected)


def test_sum_over_graphs_is_the_product_with_the_membership_matrix(batch):
    expected = membership(batch.topology) @ batch.x
    torch.testing.assert_close(graph_sum(batch.x, batch.topology), expected)


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


# Layers


@pytest.mark.parametrize("n_dense", [0, 2])
@pytest.mark.parametrize("n_codes", [0, 1, 4])
def test_features_are_projected_without_being_written_out(n_dense, n_codes):
    topology = pack_graphs(graphs_of("undirected")).topology
    generator = torch.Generator().manual_seed(0)
    dense = torch.randn(topology.n_nodes, n_dense, generator=generator, dtype=torch.float64)
    codes = torch.randint(-1, n_codes, (topology.n_nodes,), generator=generator)
    batch = GraphBatch(topology, dense, codes if n_codes else None, n_codes)
    weight = torch.randn(5, n_dense + n_codes, generator=generator, dtype=torch.float64)
    weight.requires_grad_()
    results = []
    for projected in (batch.project(weight), batch.x @ weight.T):
        results.append((projected, *torch.autograd.grad(projected.sin().sum(), weight)))
    torch.testing.assert_close(*results)


def test_gin_layer_is_ginconv(batch, geometric):
    own = seeded(lambda: GINLayer(WIDTH, 5))
    first = nn.Linear(WIDTH, 5).double()
    first.weight, first.bias = own.linear.weight, own.bias
    conv = geometric.GINConv(nn.Sequential(first, nn.ReLU(), own.second, nn.ReLU()))
    torch.testing.assert_close(own(batch.x, batch.topology), conv(batch.x, batch.edge_index))


def test_gcn_layer_is_gcnconv(batch, geometric):
    own = seeded(lambda: GCNLayer(WIDTH, 5))
    conv = geometric.GCNConv(WIDTH, 5, add_self_loops=False).double()
    conv.lin.weight, conv.bias = own.linear.weight, own.bias
    nodes = torch.arange(batch.n_nodes)
    # Every node gets a loop beside its own ones; by itself, GCNConv adds it only where none is.
    edge_index = torch.cat([batch.edge_index, torch.stack([nodes, nodes])], 1)
    expected = conv(batch.x, edge_index).relu()
    torch.testing.assert_close(own(batch.x, batch.topology), expected)


@pytest.mark.parametrize("kind", ["undirected", "directed", "edgeless"])
def test_gcn_layer_is_gcnconv_by_default_where_there_are_no_loops(kind, geometric):
    batch, own = as_batch(graphs_of(kind)), seeded(lambda: GCNLayer(WIDTH, 5))
    conv = geometric.GCNConv(WIDTH, 5).double()
    conv.lin.weight, conv.bias = own.linear.weight, own.bias
    expected = conv(batch.x, batch.edge_index).relu()
    torch.testing.assert_close(own(batch.x, batch.topology), expected)


def test_gin_layer_equals_its_formula(batch):
    layer = seeded(lambda: GINLayer(WIDTH, 5))
    summed = batch.x + adjacency(batch.topology) @ batch.x
    hidden = (summed @ layer.linear.weight.T + layer.bias).relu()
    expected = (hidden @ layer.second.weight.T + layer.second.bias).relu()
    torch.testing.assert_close(layer(batch.x, batch.topology), expected)


def test_gcn_layer_equals_its_formula(batch):
    layer = seeded(lambda: GCNLayer(WIDTH, 5))
    matrix = adjacency(batch.topology) + torch.eye(batch.n_nodes)
    scale = matrix.sum(1).rsqrt()
    expected = scale[:, None] * matrix * scale @ batch.x @ layer.linear.weight.T + layer.bias
    torch.testing.assert_close(layer(batch.x, batch.topology), expected.relu())


@pytest.mark.parametrize("layer", [GINLayer, GCNLayer])
def test_gradients_of_the_layers(batch, layer):
    layer, x = seeded(lambda: layer(WIDTH, 2)), batch.x.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x: layer(x, batch.topology), x)


def test_gin_tells_what_the_mean_does_not():
    """A node with one and a node with two equal neighbours are the same to GCN, which averages."""
    graphs = as_batch([nx.path_graph(2), nx.cycle_graph(3)])
    x = torch.ones(5, WIDTH, dtype=torch.float64)
    out = seeded(lambda: GINLayer(WIDTH, 5))(x, graphs.topology)
    assert not torch.allclose(out[0], out[2])
    out = seeded(lambda: GCNLayer(WIDTH, 5))(x, graphs.topology)
    torch.testing.assert_close(out[0], out[2])


# Networks

ENCODERS = [GIN(), GIN(n_layers=5, width=4, pooling="mean"), GCN(), GCN(2, 4, batch_norm=False)]


def built(encoder, n_components=None):
    return seeded(lambda: build_encoder(encoder, (None, WIDTH), n_components)[0]).eval()


@pytest.mark.parametrize("layer", [GIN, GCN])
@pytest.mark.parametrize("pooling", ["sum", "mean"])
@pytest.mark.parametrize("jumping_knowledge", [True, False])
@pytest.mark.parametrize("n_components", [None, 1, 7])
def test_widths(layer, pooling, jumping_knowledge, n_components):
    encoder = layer(4, 6, pooling=pooling, jumping_knowledge=jumping_knowledge)
    module, width = build_encoder(encoder, (None, WIDTH), n_components)
    assert width == (n_components or (24 if jumping_knowledge else 6))
    batch = as_batch(graphs_of("undirected"), dtype=torch.float32)
    assert module.nodes(batch).shape == (batch.n_nodes, width)
    assert module(batch).shape == (len(batch), width)


@pytest.mark.parametrize("encoder", ENCODERS, ids=repr)
@pytest.mark.parametrize("n_components", [None, 5])
def test_a_graph_is_the_sum_or_the_mean_of_its_nodes(encoder, n_components):
    module, batch = built(encoder, n_components), as_batch(graphs_of("directed"))
    nodes = module.nodes(batch)
    expected = membership(batch.topology) @ nodes
    if encoder.pooling == "mean":
        expected /= batch.topology.sizes[:, None]
    torch.testing.assert_close(module(batch), expected)
    torch.testing.assert_close(module.pool(nodes, batch), expected)


def test_jumping_knowledge_is_all_layers_side_by_side():
    batch, every = as_batch(graphs_of("undirected")), built(GIN(3, 4))
    last = built(GIN(3, 4, jumping_knowledge=False))
    last.load_state_dict(every.state_dict())
    torch.testing.assert_close(every.nodes(batch)[:, 8:], last.nodes(batch))


def test_a_node_sees_as_far_as_there_are_layers():
    path = as_batch([nx.path_graph(8)])
    other = GraphBatch(path.topology, path.x.clone().index_fill_(0, torch.tensor([0]), 9.0))
    for n_layers in (1, 2, 4):
        module = built(GIN(n_layers, 8))
        changed = (module.nodes(path) != module.nodes(other)).any(1)
        assert changed.nonzero().max() == n_layers


@pytest.mark.parametrize("encoder", ENCODERS, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_nodes_and_edges_does_not_matter(encoder, kind):
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


@pytest.mark.parametrize("encoder", ENCODERS, ids=repr)
@pytest.mark.parametrize("kind", KINDS)
def test_a_graph_does_not_depend_on_the_batch_in_inference(encoder, kind):
    batch, module = as_batch(graphs_of(kind)), built(encoder)
    alone = torch.cat([module(batch[[k]]) for k in range(len(batch))])
    torch.testing.assert_close(alone, module(batch))


def test_batch_norm_is_over_the_nodes_of_the_batch():
    batch = as_batch(graphs_of("undirected"), dtype=torch.float32)
    module, _ = build_encoder(GIN(2, 4), (None, WIDTH))
    nodes = module.train().nodes(batch)
    torch.testing.assert_close(nodes.mean(0), torch.zeros(8), atol=1e-5, rtol=0)
    plain, _ = build_encoder(GIN(2, 4, batch_norm=False), (None, WIDTH))
    assert not any(isinstance(part, nn.BatchNorm1d) for part in plain.modules())


@pytest.mark.parametrize("encoder", ENCODERS, ids=repr)
@pytest.mark.parametrize("kind", ["directed", "edgeless"])
def test_all_weights_get_a_finite_gradient(encoder, kind):
    batch = as_batch(graphs_of(kind), dtype=torch.float32)
    module, _ = build_encoder(encoder, (None, WIDTH), 5)
    module.train()(batch).square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in module.parameters())


@pytest.mark.parametrize("encoder", ENCODERS, ids=repr)
def test_modules_survive_pickle_and_deepcopy(encoder):
    module, batch = built(encoder), as_batch(graphs_of("loops"))
    for again in (pickle.loads(pickle.dumps(module)), copy.deepcopy(module)):
        torch.testing.assert_close(again(batch), module(batch), rtol=0, atol=0)


@pytest.mark.parametrize("encoder", ENCODERS, ids=repr)
def test_encoders_are_parameter_objects(encoder):
    again = clone(encoder)
    assert again is not encoder and again.get_params() == encoder.get_params()
    assert set(encoder.get_params()) == {
        "n_layers",
        "width",
        "pooling",
        "batch_norm",
        "jumping_knowledge",
    }


@pytest.mark.parametrize(
    "encoder, message",
    [
        (GIN(n_layers=0), "'n_layers' parameter of GIN .* range \\[1, inf\\)"),
        (GIN(width=2.5), "'width' parameter of GIN"),
        (GCN(pooling="max"), "'pooling' parameter of GCN .*{'mean', 'sum'}|{'sum', 'mean'}"),
        (GCN(batch_norm=None), "'batch_norm' parameter of GCN"),
        (GIN(jumping_knowledge="cat"), "'jumping_knowledge' parameter of GIN"),
    ],
    ids=repr,
)
def test_hyperparameters_out_of_range_are_named_with_their_range(encoder, message):
    with pytest.raises(InvalidParameterError, match=message):
        build_encoder(encoder, (None, WIDTH))


@pytest.mark.parametrize("shape", [(4,), (1, 8, 8)])
@pytest.mark.parametrize("encoder", [GIN(), GCN()], ids=repr)
def test_graph_encoders_refuse_what_is_no_graph(encoder, shape):
    with pytest.raises(ValueError, match="expects graphs, got samples of shape"):
        build_encoder(encoder, shape)


@pytest.mark.parametrize("encoder", [MLP(), ConvNet()], ids=repr)
def test_other_encoders_refuse_graphs(encoder):
    with pytest.raises(ValueError, match=f"{type(encoder).__name__} expects .* got"):
        build_encoder(encoder, (None, WIDTH))


def test_gin_is_the_default():
    module, width = build_encoder(default_encoder(Graphs(), (None, WIDTH)), (None, WIDTH))
    assert width == 96 and isinstance(module.message_passing.layers[0], GINLayer)


# Modules of others


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
def test_rows_of_nodes_are_summed_and_rows_of_graphs_are_taken(pooled):
    module, width = build_encoder(Linear(pooled=pooled), (None, WIDTH))
    assert width == 4 and isinstance(module, ForeignNetwork)
    batch = as_batch(graphs_of("directed"), dtype=torch.float32)
    layer = module.message_passing.layer
    torch.testing.assert_close(module(batch), graph_sum(layer(batch.x), batch.topology))


def test_rows_of_nodes_are_needed_where_nodes_are_anchors():
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
        (lambda h: h[:1], "a row per graph or per node, 2 or 5, got 1"),
        (lambda h: h[None], r"two dimensions, got one of shape \(1, 5, 4\)"),
        (lambda h: (h, h), "two dimensions, got a tuple"),
        (lambda h: h.long(), "floating tensor, got torch.int64"),
        (lambda h: h[:2].long(), "floating tensor, got torch.int64"),
        (lambda h: h[:, :0], r"shape \(2, width\), got a tensor of shape \(2, 0\)"),
    ],
)
def test_wrong_outputs_are_refused(output, message):
    with pytest.raises(ValueError, match=f"The encoder Linear .*{message}"):
        build_encoder(Linear(output=output), (None, WIDTH))


def test_a_width_other_than_n_components_is_refused_with_both():
    with pytest.raises(ValueError, match="n_components=5, but the encoder Linear returns 4"):
        build_encoder(Linear(), (None, WIDTH), 5)


def test_a_module_for_other_samples_is_refused():
    message = (
        "The encoder Linear failed on graphs with 3 node features, as \\(x, edge_index, batch\\): "
    )
    with pytest.raises(ValueError, match=message):
        build_encoder(nn.Linear(WIDTH, 4), (None, WIDTH))
    with pytest.raises(ValueError, match="failed on graphs with 7 node features"):
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
