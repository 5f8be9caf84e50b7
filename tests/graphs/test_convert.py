"""Graphs of NetworkX and PyTorch Geometric into arrays, and what is refused."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch

from skcontrast.graphs import pack_graphs
from skcontrast.graphs._convert import is_graphs  # private: what counts as graphs
from tests.common import small
from tests.graphs.common import check_topology, edges_of, with_attributes

# pack_graphs, from networkx


def test_networkx_graphs_are_packed(graphs):
    packed = pack_graphs(graphs)
    check_topology(packed.topology, graphs)
    assert packed.topology.symmetric == (not graphs[0].is_directed())
    assert packed.attributes is None and packed.labels is None and packed.categories == ()
    assert pack_graphs(packed) is packed
    assert pack_graphs(tuple(graphs)).topology.sources.equal(packed.topology.sources)


def test_nodes_have_any_names_in_the_order_of_the_graph():
    graph = nx.Graph()
    graph.add_nodes_from([("b", 1), "a", frozenset([2]), 7.5])
    graph.add_edges_from([("a", 7.5), (("b", 1), "a")])
    packed = pack_graphs([with_attributes(graph, x={n: k for k, n in enumerate(graph)})])
    assert packed.attributes.tolist() == [[0], [1], [2], [3]]
    expected = nx.empty_graph(4)
    expected.add_edges_from([(0, 1), (1, 3)])
    check_topology(packed.topology, [expected])


def test_one_directed_graph_makes_all_directed(undirected, directed):
    packed = pack_graphs([undirected[0], directed[0]])
    check_topology(packed.topology, [undirected[0], directed[0]])
    assert not packed.topology.symmetric


def test_weights_of_edges_leave_the_topology_as_it_is():
    graph = nx.Graph()
    graph.add_weighted_edges_from([(0, 1, 5.0), (1, 2, 0.0)])
    check_topology(pack_graphs([graph]).topology, [nx.path_graph(3)])


@pytest.mark.parametrize(
    ("x", "width"), [(2.5, 1), ([1, 2], 2), (np.arange(3), 3), (torch.ones(2), 2), (True, 1)]
)
def test_attributes_are_numbers_or_vectors(x, width):
    packed = pack_graphs([with_attributes(nx.path_graph(n), x=x) for n in (2, 3)])
    expected = np.tile(np.reshape(np.asarray(x, dtype=np.float64), (1, width)), (5, 1))
    assert packed.attributes.is_floating_point()
    np.testing.assert_array_equal(packed.attributes, expected)
    assert packed.shape == (2, None, width) and packed.dtype == np.float32 and packed.ndim == 3


def test_labels_are_any_categories():
    labels = [{0: "C", 1: ("O", 2)}, {0: ("O", 2), 1: "C", 2: 7}]
    graphs = [with_attributes(nx.path_graph(len(some)), label=some) for some in labels]
    packed = pack_graphs(graphs)
    named = [packed.categories[code] for code in packed.labels]
    assert named == [label for some in labels for label in some.values()]
    assert len(packed.categories) == 3


def test_graphs_of_equal_size_are_not_an_array_of_nodes():
    """numpy turns such lists into arrays of the names of the nodes."""
    graphs = [nx.cycle_graph(4)] * 3
    assert np.array(graphs).shape == (3, 4)
    as_objects = np.empty(3, dtype=object)
    as_objects[:] = graphs
    for X in graphs, tuple(graphs), as_objects:
        assert is_graphs(X)
        check_topology(pack_graphs(X).topology, graphs)


def test_which_objects_are_graphs():
    path = nx.path_graph(2)
    for X in path, [path], (path,), [3, path], pack_graphs([path]):
        assert is_graphs(X)
    for X in None, [], [[1.0]], np.eye(3), "graph", [None], torch.eye(2), {"a": path}:
        assert not is_graphs(X)


# pack_graphs, from PyTorch Geometric


@pytest.fixture
def Data():
    return pytest.importorskip("torch_geometric.data").Data


def test_data_of_pytorch_geometric_is_packed(Data, undirected):
    packable, start = [], 0
    for graph in undirected:
        edges = [*edges_of(graph).elements()]
        edges = torch.tensor(edges, dtype=torch.int64).reshape(-1, 2).T
        x = start + torch.arange(len(graph))[:, None] * torch.ones(2, dtype=torch.float64)
        packable.append(Data(x=x, edge_index=edges))
        start += len(graph)
    packed = pack_graphs(packable)
    check_topology(packed.topology, undirected)
    assert packed.topology.symmetric and packed.attributes.dtype == torch.float64
    assert packed.attributes[:, 1].equal(torch.arange(start).double())


@pytest.mark.parametrize(
    ("edges", "symmetric"),
    [([[0, 1], [1, 0]], True), ([[0, 1], [1, 2]], False), ([[0, 0, 1], [1, 1, 0]], False)],
)
def test_data_is_undirected_where_each_edge_has_its_reverse(Data, edges, symmetric):
    data = Data(edge_index=torch.tensor(edges), num_nodes=3, edge_attr=torch.ones(len(edges[0])))
    assert pack_graphs([data]).topology.symmetric == symmetric


def test_data_may_lack_edges_and_attributes(Data):
    lonely = pack_graphs([Data(x=torch.arange(3.0))])
    check_topology(lonely.topology, [nx.empty_graph(3)])
    assert lonely.attributes.tolist() == [[0], [1], [2]]
    bare = pack_graphs([Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=4)])
    assert bare.shape == (1, None, 0) and bare.sizes.tolist() == [4]


# Of a tensor of this layout, PyTorch warns that it is new.
@pytest.mark.filterwarnings("ignore:.*[Ss]parse:UserWarning")
@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_edges_of_data_may_be_a_transposed_adjacency_matrix(Data, layout):
    edges = torch.tensor([[0, 1, 1], [1, 2, 0]])
    adjacency = torch.zeros(3, 3).index_put(tuple(edges), torch.tensor(1.0))
    data = Data(x=torch.eye(3), adj_t=adjacency.T.to_sparse(layout=layout))
    expected = pack_graphs([Data(x=torch.eye(3), edge_index=edges)])
    for array, other in zip(pack_graphs([data]).arrays(), expected.arrays(), strict=True):
        np.testing.assert_array_equal(array, other)


@pytest.mark.parametrize("as_", [torch.Tensor.numpy, torch.Tensor.tolist, torch.Tensor.to_sparse])
def test_attributes_of_data_may_be_anything_a_tensor_is_made_of(Data, as_):
    x = torch.eye(3)
    packed = pack_graphs([Data(x=as_(x), edge_index=torch.tensor([[0], [1]]), num_nodes=3)])
    np.testing.assert_array_equal(packed.attributes, x)


def test_edges_of_data_may_be_an_array(Data):
    packed = pack_graphs([Data(edge_index=np.array([[0, 1], [1, 2]]), num_nodes=3)])
    assert packed.topology.edge_index.tolist() == [[0, 1], [1, 2]]


def test_attributes_of_data_that_are_not_numbers_are_named(Data):
    good = Data(x=torch.ones(2, 1))
    with pytest.raises(ValueError, match="Graph 1 in X"):
        pack_graphs([good, Data(x=["a", "b"], num_nodes=2)])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"edge_index": [[0, 5], [5, 0]], "num_nodes": 3}, "Graph 1 .*numbers of nodes, 0 to 2"),
        ({"edge_index": [[0, -1], [-1, 0]], "num_nodes": 3}, "Graph 1 .*numbers of nodes, 0 to 2"),
        ({"edge_index": [0, 1], "num_nodes": 3}, r"Graph 1 .*shape \(2, n_edges\), got \(2,\)"),
        ({"x": [[1.0], [2.0]], "num_nodes": 3}, "Graph 1 .*'x' must have 3 rows.*got 2"),
        ({"x": [[np.nan]], "num_nodes": 1}, "Graph 1 .*NaN or infinite"),
        ({"num_nodes": 0}, "Graph 1 .*no nodes"),
        ({"num_nodes": 0, "x": np.ones((0, 2))}, "Graph 1 .*no nodes"),
    ],
)
def test_bad_data_is_named(Data, content, message):
    good = Data(x=torch.ones(2, 1), edge_index=torch.tensor([[0], [1]]))
    bad = Data(**{k: v if isinstance(v, int) else torch.tensor(v) for k, v in content.items()})
    with pytest.raises(ValueError, match=message):
        pack_graphs([good, bad])


def test_a_batch_of_pytorch_geometric_is_a_list_first(Data):
    from torch_geometric.data import Batch

    batch = Batch.from_data_list([Data(x=torch.ones(2, 1)), Data(x=torch.ones(3, 1))])
    with pytest.raises(TypeError, match=r"pass batch.to_data_list\(\)"):
        pack_graphs(batch)
    assert len(pack_graphs(batch.to_data_list())) == 2


# What is refused


def path(x=None, label=None):
    return with_attributes(nx.path_graph(3), x=x, label=label)


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ([path(), nx.Graph()], "Graph 1 in X has no nodes"),
        ([], "list of 0 graphs in X"),
        ([path(x=[1, 2]), path(x=[1])], "Graph 1 in X has 1 node attributes .* graph 0 has 2"),
        ([path(x=1), path()], "Graph 1 in X has 0 node attributes"),
        ([path(), path(x=1)], "Graph 1 in X has 1 node attributes"),
        ([path(x=1), path(x={0: 1.0, 1: np.nan, 2: 1.0})], "Graph 1 .* NaN or infinite"),
        ([path(x=1), path(x=-np.inf)], "Graph 1 .* NaN or infinite"),
        ([path(x=1), path(x={0: 1.0, 2: 1.0})], "Graph 1 in X: node 1 has no attribute 'x'"),
        ([path(x={0: [1], 1: [1, 2], 2: [1]})], "Graph 0 in X: the node attribute 'x' must be"),
        ([path(x="red")], "Graph 0 in X: the node attribute 'x' must be .* numbers"),
        ([path(label="a"), path()], "Graph 1 in X has no node labels"),
        ([path(label="a"), path(label={0: "a"})], "Graph 1 .* node 1 has no attribute 'label'"),
        ([path(label="a"), path(label=["a"])], "Graph 1 in X: .*'label' must be hashable"),
        ([path(label="a"), path(label=float("nan"))], "Graph 1 in X: .*'label'.* NaN"),
        ([path(label="a"), path(label=pd.NA)], "Graph 1 in X: .*'label'.* NaN"),
        ([path(label="a"), path(label=torch.ones(2))], "Graph 1 in X: a Tensor with 2"),
        ([path(x=1), path(x=10**400)], "Graph 1 in X: .*too large"),
    ],
)
def test_bad_graphs_are_named(graphs, message):
    with pytest.raises(ValueError, match=message):
        pack_graphs(graphs)


@pytest.mark.parametrize(
    ("graphs", "message"),
    [
        ([path(), 3.0], "graphs only: item 1 is a float"),
        ([path(), path().edges], "item 1 is a EdgeView"),
        ([[0, 1], path()], "item 0 is a list"),
        (path(), r"got a single graph: pass \[graph\]"),
        (3, "X must be a list of graphs, got a int"),
    ],
)
def test_anything_except_a_list_of_graphs_is_refused(graphs, message):
    with pytest.raises(TypeError, match=message):
        pack_graphs(graphs)


def test_labels_that_are_tensors_are_categories_by_their_values():
    graphs = [nx.path_graph(3), nx.path_graph(2)]
    for graph in graphs:
        for node in graph:
            graph.nodes[node]["label"] = torch.tensor(node % 2)
    packed = pack_graphs(graphs)
    assert packed.categories == (0, 1)
    assert packed.labels.tolist() == [0, 1, 0, 0, 1]


@pytest.mark.parametrize("name", ["z", "pos", "node_feat", "feat"])
def test_fit_warns_of_attributes_of_pyg_that_are_not_read(name, Data):
    edges = [torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), torch.tensor([[0, 1], [1, 0]])]
    known = {"y": torch.zeros(3), "train_mask": torch.ones(3), "n_id": torch.arange(3)}
    ignored = {name: torch.ones(3, 2)}
    graphs = [Data(edge_index=one, num_nodes=3, **known, **ignored) for one in edges] * 4
    with pytest.warns(UserWarning, match=rf"ignored: the node attribute '{name}'\."):
        small(encoder=None).fit(graphs)
    x = torch.arange(3.0)[:, None]
    graphs = [Data(x, one, edge_feat=torch.ones(one.shape[1], 2), **known) for one in edges] * 4
    with pytest.warns(UserWarning, match=r"ignored: the edge attribute 'edge_feat'\."):
        small(encoder=None).fit(graphs)


def test_labels_that_are_names_of_nodes_are_warned_of():
    graphs = [nx.gnp_random_graph(4 + k % 4, 0.6, seed=k) for k in range(8)]
    for graph in graphs:
        nx.set_node_attributes(graph, {node: str(node) for node in graph}, "label")
    with pytest.warns(UserWarning, match="'label' has another value at every node"):
        small(encoder=None).fit(graphs)
    graphs[3].nodes[0]["label"] = "1"  # now a category
    small(encoder=None).fit(graphs)


def test_adjacency_matrices_are_refused_with_the_line_that_converts_them():
    matrices = [nx.to_numpy_array(nx.path_graph(4))] * 4
    with pytest.raises(TypeError, match=r"\[networkx.from_numpy_array\(A\) for A in X\]"):
        small(encoder=None, kind="graphs").fit(matrices)
    with pytest.raises(TypeError, match="from_scipy_sparse_array"):
        small(encoder=None).fit([nx.to_scipy_sparse_array(nx.path_graph(4))] * 4)
