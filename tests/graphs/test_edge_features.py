"""The features of edges: attributes, weights and labels, wherever they come from and go to."""

import networkx as nx
import numpy as np
import pytest
import torch

from skcontrast.augmentation import AttributeMask, EdgePerturb, NodeDrop, RandomWalkSubgraph
from skcontrast.graphs import pack_graphs
from skcontrast.graphs._features import NodeFeatures  # private: the columns that a network reads
from skcontrast.kinds import Graphs
from tests.graphs.common import FRAMEWORKS, packed_arrays, small


def described(graph, **names):
    """Return a copy whose edges have attributes, functions of their ends in any order."""
    graph = graph.copy()
    for (u, v), data in graph.edges.items():
        data |= {name: function(min(u, v), max(u, v)) for name, function in names.items()}
    return graph


def bonded(n=24, **more):
    """Return graphs whose edges have attributes, weights and labels."""
    names = {
        "x": lambda u, v: [u + 10.0 * v, v % 2],
        "weight": lambda u, v: 1.0 + u + v,
        "label": lambda u, v: "single" if (u + v) % 3 else "double",
    }
    graphs = [nx.gnp_random_graph(5 + k % 4, 0.5, seed=k) for k in range(n)]
    return [described(graph, **names, **more) for graph in graphs]


def directed(graphs):
    """Return directed graphs in which the two directions of an edge differ."""
    turned = [graph.to_directed() for graph in graphs]
    for graph in turned:
        for (u, v), data in graph.edges.items():
            data["x"] = [u + 10.0 * v, u % 2]
    return turned


def columns_of(packed, n=0):
    """Return what describes each edge, by graph, source and target."""
    found = {}
    attributes, weights, labels = packed.of_edges()
    owner, starts = packed.topology.graph_of_node, packed.topology.node_ptr
    for k, (u, v) in enumerate(packed.topology.edge_index.T.tolist()):
        start = int(starts[owner[u]])
        found[int(owner[u]), u - start, v - start] = (
            tuple(attributes[k].tolist()),
            float(weights[k]),
            packed.edge_categories[labels[k]],
        )
    return found


def expected_of(graphs):
    found = {}
    for g, graph in enumerate(graphs):
        for (u, v), data in graph.edges.items():
            for edge in {(u, v)} if graph.is_directed() else {(u, v), (v, u)}:
                found[g, *edge] = tuple(data["x"]), data["weight"], data["label"]
    return found


def features(graphs, edges="auto", standardize=True, fit_on=None):
    scaler = NodeFeatures("constant", standardize, edges)
    scaler.fit(pack_graphs(graphs if fit_on is None else fit_on))
    return scaler.to_tensor(pack_graphs(graphs), "cpu")


@pytest.fixture(params=[False, True], ids=["undirected", "directed"])
def graphs(request):
    return directed(bonded()) if request.param else bonded()


# Where they come from


def test_edges_of_networkx_keep_what_describes_them(graphs):
    packed = pack_graphs(graphs)
    assert columns_of(packed) == expected_of(graphs)
    assert packed.topology.symmetric == (not graphs[0].is_directed())
    assert packed.ignored == ()


def test_a_weight_that_is_missing_is_one():
    graph = nx.Graph()
    graph.add_edge(0, 1, weight=5)
    graph.add_edge(1, 2)
    packed = pack_graphs([graph, nx.path_graph(2)])
    assert sorted(packed.edge_weights.tolist()) == [1, 1, 1, 1, 5, 5]


def test_edges_without_a_description_take_no_memory():
    packed = pack_graphs([nx.path_graph(3)])
    assert packed.of_edges() == (None, None, None) and len(packed.arrays()) == 3
    assert NodeFeatures().fit(packed).to_tensor(packed, "cpu").edges is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"x": "red"}, r"Graph 1 in X: the edge attribute 'x' must be a number"),
        ({"x": np.timedelta64("NaT")}, "the edge attribute 'x' must be a number.* holds dates"),
        ({"x": [1.0]}, r"Graph 1 in X has 1 edge attributes \('x'\), graph 0 has 2"),
        ({"x": [1.0, np.nan]}, "Graph 1 in X has edge attributes that are NaN"),
        ({"x": None}, r"Graph 1 in X has 0 edge attributes \('x'\), graph 0 has 2"),
        ({"weight": "heavy"}, "Graph 1 in X: the edge attribute 'weight' must be a number"),
        ({"weight": [1.0, 2.0]}, "the edge attribute 'weight' must be a number: "),
        ({"weight": np.datetime64("NaT")}, "attribute 'weight' must be a number: .* holds dates"),
        ({"weight": np.inf}, "Graph 1 in X has edge weights that are NaN or infinite"),
        ({"label": [1]}, "Graph 1 in X: the edge attribute 'label' must be hashable"),
        ({"label": np.nan}, "Graph 1 in X: the edge attribute 'label' must be a category"),
        ({"label": None}, r"Graph 1 in X has no edge labels \('label'\), unlike others"),
    ],
    ids=repr,
)
def test_bad_edges_are_named(data, message):
    good = {"x": [1.0, 2.0], "weight": 1.0, "label": "single"}
    graphs = [nx.Graph() for _ in range(2)]
    for graph, own in zip(graphs, (good, good | data), strict=True):
        graph.add_edge(0, 1, **own)
    with pytest.raises(ValueError, match=message):
        pack_graphs(graphs)


def test_all_edges_of_a_graph_have_an_attribute_or_none_has():
    graph = nx.Graph()
    graph.add_edge("a", "b", x=1.0)
    graph.add_edge("b", "c")
    with pytest.raises(ValueError, match=r"edge \('b', 'c'\) has no attribute 'x', unlike others"):
        pack_graphs([graph])


def test_a_graph_without_edges_goes_with_any():
    packed = pack_graphs([nx.empty_graph(2), *bonded(3), nx.empty_graph(1)])
    assert columns_of(packed[1:4]) == expected_of(bonded(3))
    with_it = features([nx.empty_graph(2)], fit_on=bonded())
    assert with_it.edge_attr.shape == (0, 5) and with_it.edge_weight.shape == (0,)
    assert np.isfinite(small().fit(bonded()).transform([nx.empty_graph(2)])).all()


def test_data_of_pytorch_geometric_keeps_its_edges(graphs):
    Data = pytest.importorskip("torch_geometric.data").Data
    given = []
    for graph in graphs:
        edges = [*expected_of([graph]).items()]
        given.append(
            Data(
                x=torch.zeros(len(graph), 1),
                edge_index=torch.tensor([[u, v] for (_, u, v), _ in edges]).T,
                edge_attr=torch.tensor([x for _, (x, *_) in edges]),
                edge_weight=torch.tensor([w for _, (_, w, _) in edges]),
            )
        )
    packed, expected = pack_graphs(given), pack_graphs(graphs)
    assert packed.edge_attributes.equal(expected.edge_attributes)
    assert packed.edge_weights.equal(expected.edge_weights)
    assert packed.topology.symmetric == expected.topology.symmetric


# Of a tensor of this layout, PyTorch warns that it is new.
@pytest.mark.filterwarnings("ignore:.*[Ss]parse:UserWarning")
def test_values_of_a_transposed_adjacency_matrix_are_weights():
    Data = pytest.importorskip("torch_geometric.data").Data
    adjacency = torch.tensor([[0.0, 2.0], [3.0, 0.0]])
    packed = pack_graphs([Data(x=torch.zeros(2, 1), adj_t=adjacency.T.to_sparse())])
    weights = dict(
        zip(map(tuple, packed.topology.edge_index.T.tolist()), packed.edge_weights, strict=True)
    )
    assert weights == {(0, 1): 2.0, (1, 0): 3.0}


@pytest.mark.parametrize(
    "wrong", [{"edge_attr": torch.ones(3)}, {"edge_weight": torch.ones(2, 2)}]
)
def test_bad_edges_of_data_are_named(wrong):
    Data = pytest.importorskip("torch_geometric.data").Data
    (name,) = wrong
    with pytest.raises(ValueError, match=f"Graph 0 in X: '{name}' must"):
        pack_graphs([Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2, **wrong)])


def test_arrays_of_edges_may_come_in_any_order(graphs):
    packed = pack_graphs(graphs)
    order = np.random.default_rng(0).permutation(len(packed.topology.sources))
    again = packed_arrays(
        packed.topology.edge_index[:, order],
        packed.topology.node_ptr,
        edge_attributes=packed.edge_attributes[order],
        edge_weights=packed.edge_weights[order],
        edge_labels=packed.edge_labels[order],
        edge_categories=packed.edge_categories,
    )
    assert columns_of(again) == columns_of(packed)
    assert again.topology.symmetric == packed.topology.symmetric


def test_graphs_are_directed_where_the_directions_of_an_edge_differ():
    edges = [[0, 1, 0, 1], [1, 0, 1, 0]]
    for labels, symmetric in (([0, 0, 1, 1], True), ([0, 1, 1, 1], False)):
        packed = packed_arrays(edges, [0, 2], edge_labels=torch.tensor(labels))
        assert packed.topology.symmetric == symmetric
    # Of parallel edges, any may be the reverse.
    assert packed_arrays(edges, [0, 2], edge_labels=torch.tensor([0, 1, 1, 0])).topology.symmetric


# What the network sees


def test_numbers_are_standardised_and_labels_are_one_hot(graphs):
    batch, packed = features(graphs), pack_graphs(graphs)
    x = batch.edge_attr.double()
    assert batch.shape == (len(graphs), None, 1, 5) and x.shape[1] == 5
    assert x[:, 0].mean().abs() < 1e-5 and abs(x[:, 0].std(correction=0) - 1) < 1e-5
    assert x[:, 1].equal(packed.edge_attributes[:, 1].double())
    assert x[:, 2].mean().abs() < 1e-5 and abs(x[:, 2].std(correction=0) - 1) < 1e-5
    assert (x[:, 3:].sum(1) == 1).all()
    raw = features(graphs, standardize=False).edge_attr
    assert raw[:, :2].equal(packed.edge_attributes) and raw[:, 2].equal(packed.edge_weights)


def test_the_unit_of_weights_does_not_matter():
    kilometres = bonded()
    metres = bonded()
    for graph in metres:
        for data in graph.edges.values():
            data["weight"] *= 1000
    one, other = features(kilometres), features(metres)
    assert abs(one.edge_weight.double().mean() - 1) < 1e-6
    torch.testing.assert_close(one.edge_weight, other.edge_weight)
    torch.testing.assert_close(one.edge_attr, other.edge_attr)


def test_weights_of_one_stay_ones():
    plain = [nx.gnp_random_graph(6, 0.5, seed=k) for k in range(16)]
    ones = [described(graph, weight=lambda u, v: 1.0) for graph in plain]
    assert features(ones).edge_attr.unique().tolist() == [1]


def test_labels_that_were_not_seen_have_no_code():
    new = described(nx.path_graph(3), label=lambda u, v: ["single", "triple"][u])
    seen = [described(nx.cycle_graph(4), label=lambda u, v: ["single", "double"][u % 2])]
    x = features([new], fit_on=seen).edge_attr
    assert sorted(x.sum(1).tolist()) == [0, 0, 1, 1]


def test_edges_must_be_described_as_in_fit():
    fitted = small(max_epochs=1).fit(bonded())
    plain = [nx.path_graph(3)]
    with pytest.raises(ValueError, match=r"Edges had 2 attrib.*, weights, labels in fit, .* none"):
        fitted.transform(plain)
    fitted = small(max_epochs=1).fit([nx.path_graph(3 + k % 3) for k in range(8)])
    with pytest.raises(ValueError, match="no features in fit, but have 2 attributes"):
        fitted.transform(bonded(3))


def test_without_edge_features_edges_are_alike():
    bare = [nx.Graph(graph.edges) for graph in bonded()]
    for graph, plain in zip(bonded(), bare, strict=True):
        plain.add_nodes_from(graph)
    ordered = [nx.Graph() for _ in bare]
    for graph, own in zip(bonded(), ordered, strict=True):
        own.add_nodes_from(graph)
        own.add_edges_from(graph.edges)
    one = small(kind=Graphs(edge_features=None)).fit(bonded()).transform(bonded())
    np.testing.assert_array_equal(one, small().fit(ordered).transform(ordered))


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_edges_change_embeddings_and_train(framework, graphs):
    embedder = small(framework=framework).fit(graphs)
    h = embedder.transform(graphs)
    assert np.isfinite(h).all()
    for graph in graphs:
        for data in graph.edges.values():
            data["label"] = {"single": "double", "double": "single"}[data["label"]]
    assert abs(embedder.transform(graphs) - h).max() > 1e-3


def test_the_representation_counts_the_labels_of_edges():
    graphs = [described(nx.cycle_graph(4 + k % 3), label=lambda u, v: u % 2) for k in range(12)]
    h = small(kind=Graphs(node_features="constant")).fit(graphs).transform(graphs)
    counts = np.expm1(h[:, 1:3]).round()
    expected = [np.bincount([u % 2 for u, v in map(sorted, g.edges)], minlength=2) for g in graphs]
    np.testing.assert_array_equal(counts, 2 * np.array(expected))


# Where they go


def test_views_of_graphs_are_in_the_units_of_X(graphs):
    packed = pack_graphs(graphs)
    scaler = NodeFeatures().fit(packed)
    again = scaler.from_tensor(scaler.to_tensor(packed, "cpu"), packed)
    assert columns_of(again).keys() == columns_of(packed).keys()
    found, expected = list(columns_of(again).values()), list(columns_of(packed).values())
    numbers = [[(*x, weight) for x, weight, _ in columns] for columns in (found, expected)]
    np.testing.assert_allclose(*numbers, rtol=1e-4, atol=1e-4)
    assert [label for *_, label in found] == [label for *_, label in expected]


@pytest.mark.parametrize("rows", [[0], [3, 1], [2, 2, 0], []])
def test_taking_graphs_then_describing_them_is_the_same_the_other_way_round(graphs, rows):
    packed = pack_graphs(graphs)
    batch = features(graphs)[rows]
    assert columns_of(packed[rows]) == expected_of([graphs[row] for row in rows])
    scaler = NodeFeatures("constant").fit(packed)
    other = scaler.to_tensor(packed[rows], "cpu") if rows else batch
    assert batch.edge_attr.equal(other.edge_attr) and batch.edge_weight.equal(other.edge_weight)
    assert batch.edge_index.equal(other.edge_index)


def test_batches_are_joined_with_their_edges(graphs):
    batch = features(graphs)
    again = torch.cat([batch[:3], batch[3:4], batch[4:]])
    assert again.edge_attr.equal(batch.edge_attr) and again.edge_weight.equal(batch.edge_weight)


def test_dropping_nodes_then_packing_is_packing_then_dropping(graphs):
    packed = pack_graphs(graphs)
    nodes = torch.rand(packed.topology.n_nodes, generator=torch.Generator().manual_seed(0)) < 0.6
    nodes[packed.topology.node_ptr[:-1]] = True
    scaler = NodeFeatures("constant").fit(packed)
    batch = scaler.to_tensor(packed, "cpu").keep(nodes)
    parts = nodes.split(packed.topology.sizes.tolist())
    left = [
        nx.convert_node_labels_to_integers(graph.subgraph(np.flatnonzero(part).tolist()))
        for graph, part in zip(graphs, parts, strict=True)
    ]
    expected = scaler.to_tensor(pack_graphs(left), "cpu")

    def rows(some):
        columns = torch.cat([some.edge_index.T, some.edge_attr, some.edge_weight[:, None]], 1)
        return sorted(columns.tolist())

    assert rows(batch) == rows(expected)


@pytest.mark.parametrize(
    "augmentation", [NodeDrop(0.4), RandomWalkSubgraph(0.6), EdgePerturb(0.4, add=False)]
)
def test_views_keep_what_describes_the_edges_that_are_left(augmentation, graphs):
    packed = pack_graphs(graphs)
    # Nodes carry their number, so that they are known in the view.
    packed.attributes = torch.arange(packed.topology.n_nodes, dtype=torch.float32)[:, None]
    scaler = NodeFeatures(standardize=False).fit(packed)
    batch = scaler.to_tensor(packed, "cpu")
    view = augmentation.augment(batch, torch.Generator().manual_seed(0))

    def rows(some):
        ends = some.dense[some.edge_index, 0].T
        return {tuple(row) for row in torch.cat([ends, some.edge_attr], 1).tolist()}

    assert rows(view) < rows(batch) and len(view.edge_attr) == len(view.topology.sources)


def test_added_edges_take_the_features_of_the_removed_ones(graphs):
    batch = features([*graphs, nx.empty_graph(1), nx.empty_graph(3)], standardize=False)
    view = EdgePerturb(0.5).augment(batch, torch.Generator().manual_seed(0))
    for k in range(len(batch)):
        one, other = batch[[k]], view[[k]]
        assert sorted(one.edge_attr.tolist()) == sorted(other.edge_attr.tolist())
    assert not view.edge_index.equal(batch.edge_index)
    if view.topology.symmetric:
        forth = torch.cat([view.edge_index.T, view.edge_attr], 1).tolist()
        assert sorted(forth) == sorted([v, u, *x] for u, v, *x in forth)


def test_new_edges_need_something_like_them():
    batch = features(bonded())
    with pytest.raises(ValueError, match="pass `like`"):
        batch.with_edges(batch.edge_index)
    order = torch.randperm(len(batch.edge_attr), generator=torch.Generator().manual_seed(0))
    again = batch.with_edges(batch.edge_index[:, order], order)
    one, other = (
        torch.cat([some.edge_index.T, some.edge_attr], 1).tolist() for some in (batch, again)
    )
    assert sorted(one) == sorted(other)


def test_masked_nodes_leave_edges_as_they_are():
    batch = features(bonded())
    view = AttributeMask(1.0).augment(batch, torch.Generator().manual_seed(0))
    assert view.edge_attr.equal(batch.edge_attr) and not view.x.any()


# What is not read


def test_attributes_that_are_not_read_are_named_once_per_fit():
    graphs = bonded(colour=lambda u, v: "red")
    for graph in graphs:
        nx.set_node_attributes(graph, {0: (1.0, 2.0)}, "pos")
    embedder = small(max_epochs=1)
    with pytest.warns(UserWarning, match="the edge attribute 'colour', the node attribute 'pos'"):
        embedder.fit(graphs)
    embedder.transform(graphs)
    embedder.partial_fit(pack_graphs(graphs)[:12])
    with pytest.warns(UserWarning, match="the edge attribute 'colour'") as caught:
        embedder.fit(pack_graphs(graphs)[4:])
    assert len(caught) == 1


class Own(torch.nn.Module):
    """A module in the style of PyTorch Geometric that reads nothing of edges."""

    def __init__(self, width=1):
        super().__init__()
        self.linear = torch.nn.Linear(width, 4)

    def forward(self, x, edge_index):
        return self.linear(x)


class WithWeights(Own):
    def forward(self, x, edge_index, edge_weight=None):
        assert edge_weight.shape == edge_index.shape[1:]
        return self.linear(x) + 0 * edge_weight.mean()


class WithAttributes(Own):
    def forward(self, x, edge_index, batch, edge_attr):
        assert edge_attr.shape == (edge_index.shape[1], 5)
        return self.linear(x) + 0 * edge_attr.mean()


@pytest.mark.parametrize("module", [Own, WithWeights, WithAttributes])
def test_modules_get_what_they_take(module):
    embedder = small(encoder=module(), kind=Graphs(node_features="constant"), max_epochs=1)
    assert np.isfinite(embedder.fit(bonded()).transform(bonded())).all()


def test_models_of_pytorch_geometric_get_what_they_support():
    models = pytest.importorskip("torch_geometric.nn")
    for model in (models.GAT(1, 8, 2, 4, edge_dim=5), models.GCN(1, 8, 2)):
        embedder = small(encoder=model, kind=Graphs(node_features="constant"), max_epochs=1)
        assert np.isfinite(embedder.fit(bonded()).transform(bonded())).all()
