from __future__ import annotations

import copy
import pickle
from collections import Counter

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.utils import resample
from sklearn.utils._indexing import _safe_indexing

from skcontrast.graphs import GraphBatch, PackedGraphs, pack_graphs
from skcontrast.graphs._convert import is_graphs
from skcontrast.graphs._topology import Topology, offsets, ranges


@pytest.fixture
def undirected():
    loops = nx.path_graph(6)
    loops.add_edges_from([(0, 0), (3, 3)])
    random = [nx.gnp_random_graph(n, 0.3, seed=n) for n in (4, 9, 17, 30)]
    parallel = nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 2), (2, 2)])
    return [*random, nx.empty_graph(1), nx.empty_graph(5), loops, parallel, nx.star_graph(8)]


@pytest.fixture
def directed():
    random = [nx.gnp_random_graph(n, 0.3, seed=n, directed=True) for n in (4, 9, 17)]
    return [*random, nx.empty_graph(2, nx.DiGraph), nx.MultiDiGraph([(0, 1), (0, 1), (1, 1)])]


@pytest.fixture(params=["undirected", "directed"])
def graphs(request):
    return request.getfixturevalue(request.param)


def edges_of(graph):
    """Count the directed edges of a graph of networkx, each undirected one as two."""
    edges = Counter(list(graph.edges()))
    if not graph.is_directed():
        edges += Counter((v, u) for u, v in graph.edges() if u != v)
    return edges


def check_topology(topology, graphs):
    """Assert that a topology is that of these graphs, whose nodes are 0, 1, …."""
    assert all(t.dtype == torch.int64 for t in topology[:3])
    assert topology.n_graphs == len(graphs)
    assert topology.sizes.tolist() == [len(graph) for graph in graphs]
    assert topology.n_nodes == sum(map(len, graphs)) == topology.node_ptr[-1]
    starts = topology.node_ptr.tolist()
    expected = Counter()
    for graph, start in zip(graphs, starts, strict=False):
        expected += Counter({(u + start, v + start): k for (u, v), k in edges_of(graph).items()})
    assert Counter(map(tuple, topology.edge_index.T.tolist())) == expected
    assert topology.targets.equal(topology.targets.sort().values)
    assert topology.in_degrees.sum() == len(topology.sources) == topology.edge_ptr[-1]
    owners = np.repeat(np.arange(len(graphs)), topology.sizes.tolist())
    assert topology.graph_of_node.tolist() == owners.tolist()


def renumbered(graph):
    return nx.convert_node_labels_to_integers(graph)


def with_attributes(graph, x=None, label=None):
    """Return a copy with attributes: values, or dicts of them by node."""
    graph = graph.copy()
    for name, values in (("x", x), ("label", label)):
        if values is not None:
            nx.set_node_attributes(graph, values, name)
    return graph


# Topology


def test_offsets_and_ranges():
    ptr = offsets(torch.tensor([2, 0, 3]))
    assert ptr.tolist() == [0, 2, 2, 5]
    assert ranges(torch.tensor([10, 20, 30]), torch.tensor([2, 0, 3]), ptr).tolist() == [
        *(10, 11),
        *(30, 31, 32),
    ]
    assert offsets(torch.tensor([True, False])).tolist() == [0, 1, 1]
    assert offsets(torch.tensor([], dtype=torch.int64)).tolist() == [0]


def test_edges_may_come_in_any_order(graphs):
    topology = pack_graphs(graphs).topology
    order = torch.randperm(len(topology.sources), generator=torch.Generator().manual_seed(0))
    shuffled = topology.edge_index[:, order]
    again = Topology.from_edges(shuffled, topology.node_ptr, topology.symmetric)
    check_topology(again, graphs)


def test_reversal_turns_every_edge_round(graphs):
    topology = pack_graphs(graphs).topology
    turned = [graph.reverse() if graph.is_directed() else graph for graph in graphs]
    check_topology(topology.reversed(), turned)
    check_topology(topology.reversed().reversed(), graphs)


@pytest.mark.parametrize("rows", [[0], [3, 1], [2, 2, 0, 2], [4, 3, 2, 1, 0], []])
def test_taking_gathers_graphs_in_any_order(graphs, rows):
    packed = pack_graphs(graphs)
    topology, nodes = packed.topology.take(torch.tensor(rows, dtype=torch.int64))
    check_topology(topology, [graphs[row] for row in rows])
    starts = packed.topology.node_ptr
    assert nodes.tolist() == [n for row in rows for n in range(starts[row], starts[row + 1])]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
def test_keeping_nodes_leaves_the_induced_subgraphs(graphs, share):
    topology = pack_graphs(graphs).topology
    generator = torch.Generator().manual_seed(1)
    kept = torch.rand(topology.n_nodes, generator=generator) < share
    parts = kept.split(topology.sizes.tolist())
    expected = [
        renumbered(graph.subgraph(np.flatnonzero(part).tolist()).copy())
        for graph, part in zip(graphs, parts, strict=True)
    ]
    check_topology(topology.keep(kept), expected)
    assert topology.keep(kept).symmetric == topology.symmetric


def test_topologies_are_joined(undirected, directed):
    parts = [undirected[:3], undirected[3:4], undirected[4:]]
    joined = Topology.cat([pack_graphs(part).topology for part in parts])
    check_topology(joined, undirected)
    assert joined.symmetric
    mixed = Topology.cat([pack_graphs(part).topology for part in (undirected, directed)])
    check_topology(mixed, undirected + directed)
    assert not mixed.symmetric


# GraphBatch


def as_batch(graphs):
    topology = pack_graphs(graphs).topology
    numbers = torch.arange(topology.n_nodes)
    return GraphBatch(topology, numbers[:, None] * torch.tensor([1.0, -1.0]), numbers % 3, 3)


def test_features_are_numbers_and_a_one_hot_code(undirected):
    batch = as_batch(undirected)
    assert batch.shape == (len(undirected), None, 5) and len(batch) == len(undirected)
    assert batch.x.shape == (batch.n_nodes, 5)
    assert batch.x[:, :2].equal(batch.dense)
    assert batch.x[:, 2:].equal(torch.eye(3)[batch.codes])
    assert GraphBatch(batch.topology, batch.dense).x is batch.dense


@pytest.mark.parametrize(
    "rows", [slice(1, 4), slice(None, None, 2), [3, 0, 3], [-1, 2], [True, False] * 4 + [True]]
)
@pytest.mark.parametrize("as_", [list, np.array, torch.tensor])
def test_rows_of_a_batch_carry_their_features(undirected, rows, as_):
    batch = as_batch(undirected)
    taken = batch[rows if isinstance(rows, slice) else as_(rows)]
    wanted = np.arange(len(batch))[rows]
    check_topology(taken.topology, [undirected[row] for row in wanted])
    parts = batch.dense.split(batch.topology.sizes.tolist())
    assert taken.dense.equal(torch.cat([parts[row] for row in wanted]))
    assert taken.codes.equal(taken.dense[:, 0].long() % 3)


def test_a_batch_is_put_together_by_cat(undirected):
    batch = as_batch(undirected)
    again = torch.cat([batch[:2], batch[2:3], batch[3:]])
    assert isinstance(again, GraphBatch) and again.n_codes == 3
    assert again.x.equal(batch.x) and again.edge_index.equal(batch.edge_index)
    plain = GraphBatch(batch.topology, batch.dense)
    assert torch.cat([plain, plain]).codes is None
    with pytest.raises(TypeError):
        torch.stack([batch, batch])


def test_kept_nodes_carry_their_features_and_masked_ones_lose_them(undirected):
    batch = as_batch(undirected)
    nodes = torch.arange(batch.n_nodes) % 2 == 0
    kept, masked = batch.keep(nodes), batch.mask(nodes)
    assert kept.x.equal(batch.x[nodes]) and kept.batch.equal(batch.batch[nodes])
    assert masked.topology is batch.topology
    assert (masked.x[nodes] == 0).all() and masked.x[~nodes].equal(batch.x[~nodes])
    assert batch.codes.min() == 0


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


def test_weights_of_edges_do_not_matter():
    graph = nx.Graph()
    graph.add_weighted_edges_from([(0, 1, 5.0), (1, 2, 0.0)])
    check_topology(pack_graphs([graph]).topology, [nx.path_graph(3)])


@pytest.mark.parametrize(
    ("x", "width"), [(2.5, 1), ([1, 2], 2), (np.arange(3), 3), (torch.ones(2), 2), (True, 1)]
)
def test_attributes_are_numbers_or_vectors(x, width):
    packed = pack_graphs([with_attributes(nx.path_graph(n), x=x) for n in (2, 3)])
    expected = np.tile(np.reshape(np.asarray(x, dtype=np.float32), (1, width)), (5, 1))
    assert packed.attributes.dtype == torch.float32
    np.testing.assert_array_equal(packed.attributes, expected)
    assert packed.shape == (2, None, width) and packed.dtype == np.float32 and packed.ndim == 3


def test_labels_are_any_categories():
    labels = [{0: "C", 1: ("O", 2)}, {0: ("O", 2), 1: "C", 2: 7}]
    graphs = [with_attributes(nx.path_graph(len(some)), label=some) for some in labels]
    packed = pack_graphs(graphs)
    named = [packed.categories[code] for code in packed.labels]
    assert named == [label for some in labels for label in some.values()]
    assert len(packed.categories) == 3


def test_graphs_of_equal_size_are_no_array_of_nodes():
    """numpy turns such lists into arrays of the names of the nodes."""
    graphs = [nx.cycle_graph(4)] * 3
    assert np.array(graphs).shape == (3, 4)
    as_objects = np.empty(3, dtype=object)
    as_objects[:] = graphs
    for X in graphs, tuple(graphs), as_objects:
        assert is_graphs(X)
        check_topology(pack_graphs(X).topology, graphs)


def test_what_graphs_are():
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
    assert packed.topology.symmetric and packed.attributes.dtype == torch.float32
    assert packed.attributes[:, 1].equal(torch.arange(start).float())


@pytest.mark.parametrize(
    ("edges", "symmetric"),
    [([[0, 1], [1, 0]], True), ([[0, 1], [1, 2]], False), ([[0, 0, 1], [1, 1, 0]], False)],
)
def test_data_is_undirected_where_each_edge_has_its_reverse(Data, edges, symmetric):
    weights = torch.arange(len(edges[0]))
    data = Data(edge_index=torch.tensor(edges), num_nodes=3, edge_attr=weights)
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
def test_attributes_of_data_may_be_what_a_tensor_is_made_of(Data, as_):
    x = torch.eye(3)
    packed = pack_graphs([Data(x=as_(x), edge_index=torch.tensor([[0], [1]]), num_nodes=3)])
    np.testing.assert_array_equal(packed.attributes, x)


def test_edges_of_data_may_be_an_array(Data):
    packed = pack_graphs([Data(edge_index=np.array([[0, 1], [1, 2]]), num_nodes=3)])
    assert packed.topology.edge_index.tolist() == [[0, 1], [1, 2]]


def test_attributes_of_data_that_are_no_numbers_are_named(Data):
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
        ([path(x=1), path(x=1e300)], "Graph 1 .* NaN or infinite"),
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
        ([path(), 3.0], "graphs only, .* item 1 is a float"),
        ([path(), path().edges], "item 1 is a EdgeView"),
        ([[0, 1], path()], "item 0 is a list"),
        (path(), r"got a single graph: pass \[graph\]"),
        (3, "X must be a list of graphs, got a int"),
    ],
)
def test_what_is_no_list_of_graphs_is_refused(graphs, message):
    with pytest.raises(TypeError, match=message):
        pack_graphs(graphs)


# PackedGraphs


def test_arrays_are_packed_as_graphs_are(graphs):
    packed = pack_graphs([with_attributes(g, x=[1.0, 2.0], label="b") for g in graphs])
    topology = packed.topology
    labels = ["a"] * topology.n_nodes
    again = PackedGraphs.from_arrays(
        topology.edge_index.numpy().astype(np.int32),
        topology.node_ptr.tolist(),
        packed.attributes.numpy().astype(np.float64),
        labels,
    )
    assert all(a.equal(b) for a, b in zip(topology[:3], again.topology[:3], strict=True))
    assert again.topology.symmetric == topology.symmetric
    assert again.attributes.equal(packed.attributes)
    assert again.categories == ("a",) and again.labels.equal(packed.labels)


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_may_lie_in_any_order_and_are_copied(order):
    edges = np.array([[0, 1, 2], [1, 2, 0]], order=order)
    attributes = np.ones((3, 2), dtype=np.float32, order=order)
    packed = PackedGraphs.from_arrays(edges, [0, 3], attributes)
    edges[:], attributes[:] = 0, 0
    check_topology(packed.topology, [nx.cycle_graph(3, nx.DiGraph)])
    assert packed.attributes.equal(torch.ones(3, 2))


def test_graphs_may_have_no_edges_at_all():
    for nothing in ([[], []], np.empty((2, 0)), np.empty((2, 0), dtype=np.int64)):
        packed = PackedGraphs.from_arrays(nothing, [0, 1, 3])
        check_topology(packed.topology, [nx.empty_graph(1), nx.empty_graph(2)])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (([[0], [1], [2]], [0, 3]), r"edge_index must have shape \(2, n_edges\), got \(3, 1\)"),
        (([[0.5], [1]], [0, 3]), "edge_index must hold integers, got an array of dtype float64"),
        (([[0], [3]], [0, 3]), "edge_index must hold numbers of nodes, 0 to 2"),
        (([[-1], [1]], [0, 3]), "edge_index must hold numbers of nodes, 0 to 2"),
        (([[0], [3]], [0, 3, 5]), "An edge leaves graph 0"),
        (([[0], [1]], [0]), "node_ptr must be a sequence of at least two"),
        (([[0], [1]], [1, 3]), "node_ptr .* first of them 0"),
        (([[0], [1]], [0, 2.5]), "node_ptr must hold integers"),
        (([[0], [1]], [0, 3, 3]), "Graph 1 in X has no nodes"),
        (([[0], [1]], [0, 3], np.ones(3)), r"attributes must have shape \(3, n_attributes\)"),
        (([[0], [1]], [0, 3], np.ones((2, 2))), r"attributes must have shape \(3, n_attributes\)"),
        (([[0], [1]], [0, 2, 3], [[1], [1], [np.nan]]), "Graph 1 .* NaN or infinite"),
        (([[0], [1]], [0, 2, 3], [[1], [1], [1e200]]), "Graph 1 .* NaN or infinite"),
        (([[0], [1]], [0, 3], None, [1, 2]), r"labels must have shape \(3,\), got \(2,\)"),
        (([[0], [1]], [0, 3], None, np.ones((3, 1))), r"labels must have shape \(3,\)"),
        (([[0], [1]], [0, 3], None, [1, 2, np.nan]), "labels .* NaN"),
    ],
)
def test_bad_arrays_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        PackedGraphs.from_arrays(*arguments)


@pytest.fixture
def packed(undirected):
    """Graphs whose nodes carry the number of their graph, and a category."""
    graphs = [
        with_attributes(graph, x=float(k), label=f"graph {k}")
        for k, graph in enumerate(undirected)
    ]
    return pack_graphs(graphs)


ROWS = [
    0,
    -1,
    np.int64(3),
    slice(2, 5),
    slice(None, None, -1),
    slice(3, 3),
    [4, 1, 1],
    [-2, 0],
    [],
    range(3),
    np.array([5, 2]),
    np.arange(9) % 2 == 0,
    [True] * 4 + [False] * 5,
]


def check_rows(taken, packed, graphs, rows):
    wanted = np.atleast_1d(np.arange(len(packed))[rows]).tolist()
    check_topology(taken.topology, [graphs[row] for row in wanted])
    expected = np.repeat(wanted, [len(graphs[row]) for row in wanted])
    assert taken.attributes[:, 0].tolist() == expected.tolist()
    assert [taken.categories[code] for code in taken.labels] == [f"graph {k}" for k in expected]
    assert taken.shape == (len(wanted), None, 1)
    assert taken.sizes.tolist() == [len(graphs[row]) for row in wanted]


@pytest.mark.parametrize("rows", ROWS, ids=str)
def test_rows_are_taken_as_from_an_array(packed, undirected, rows):
    check_rows(packed[rows], packed, undirected, rows)
    if not isinstance(rows, range):
        check_rows(_safe_indexing(packed, rows), packed, undirected, rows)


@pytest.mark.parametrize("rows", [9, [0, 9], None, (0, 1), np.array([True]), "a", 1.5])
def test_rows_that_there_are_not_are_refused(packed, rows):
    with pytest.raises(IndexError):
        packed[rows]


def test_scikit_learn_splits_graphs(packed, undirected):
    rows = np.arange(9)
    for graphs, check in ((packed, check_rows), (undirected, None)):
        parts = train_test_split(graphs, rows, test_size=3, random_state=0)
        for part, of in zip(parts[:2], parts[2:], strict=True):
            if check:
                check(part, packed, undirected, of)
            else:
                assert part == [undirected[row] for row in of]
    drawn, of = resample(packed, rows, random_state=0)
    check_rows(drawn, packed, undirected, of)
    for _, test in StratifiedKFold(3).split(packed, rows % 3):
        check_rows(packed[test], packed, undirected, test)


def test_graphs_are_iterated_one_by_one(packed, undirected):
    for k, one in enumerate(packed):
        check_rows(one, packed, undirected, [k])
    assert k == 8


@pytest.mark.parametrize(
    "copied",
    [
        copy.copy,
        copy.deepcopy,
        lambda p: clone(p, safe=False),
        lambda p: pickle.loads(pickle.dumps(p)),
    ],
    ids=["copy", "deepcopy", "clone", "pickle"],
)
def test_graphs_are_copied_and_pickled(packed, undirected, copied):
    again = copied(packed)
    check_rows(again, packed, undirected, slice(None))
    assert again.topology.symmetric
    for one, other in zip(again.arrays(), packed.arrays(), strict=True):
        np.testing.assert_array_equal(one, other)


def test_arrays_tell_graphs_from_others(packed):
    assert [a.shape for a in packed.arrays()] == [
        tuple(t.shape) for t in (*packed.topology[:3], packed.attributes, packed.labels)
    ]
    bare = PackedGraphs(packed.topology)
    assert len(bare.arrays()) == 3


def test_graphs_are_no_array(packed):
    with pytest.raises(TypeError, match="embed them first"):
        np.asarray(packed)
    assert (
        repr(packed[[0, 4]])
        == f"PackedGraphs(2 graphs, 5 nodes, {packed[0].arrays()[2].size} edges)"
    )


def test_labels_that_are_tensors_are_categories_by_their_values():
    graphs = [nx.path_graph(3), nx.path_graph(2)]
    for graph in graphs:
        for node in graph:
            graph.nodes[node]["label"] = torch.tensor(node % 2)
    packed = pack_graphs(graphs)
    assert packed.categories == (0, 1)
    assert packed.labels.tolist() == [0, 1, 0, 0, 1]
