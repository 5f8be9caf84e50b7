"""GraphProfile against networkx; WeisfeilerLehman against counts by hand and its limits."""

import tracemalloc

import networkx as nx
import numpy as np
import pytest

from skcontrast.features import GraphProfile, WeisfeilerLehman
from skcontrast.graphs import pack_graphs
from skcontrast.kinds import Graphs
from tests.graphs.common import attributed

RANDOM = [nx.gnp_random_graph(3 + k % 9, 0.2 + 0.2 * (k % 4), seed=k) for k in range(24)]
EVERY = [GraphProfile(), WeisfeilerLehman(3, min_share=0)]


def shuffled(graph, seed=0):
    """Return the graph with its nodes and edges in another order."""
    rng = np.random.default_rng(seed)
    copied = type(graph)()
    nodes, edges = list(graph.nodes(data=True)), list(graph.edges(data=True))
    copied.add_nodes_from(nodes[k] for k in rng.permutation(len(nodes)))
    for k in rng.permutation(len(edges)):
        u, v, data = edges[k]
        copied.add_edge(*((u, v) if graph.is_directed() or rng.random() < 0.5 else (v, u)), **data)
    return copied


def labeled(graph, seed=0):
    """Return the graph with labels of nodes and of edges, and attributes of nodes."""
    rng = np.random.default_rng(seed)
    copied = attributed(graph, lambda k: [float(k % 3), 1.0], lambda k: "CNO"[k % 3])
    nx.set_edge_attributes(copied, {edge: int(rng.integers(2)) for edge in graph.edges}, "label")
    return copied


@pytest.mark.parametrize("features", EVERY, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("labels", [False, True])
def test_the_order_of_nodes_and_edges_does_not_count(features, directed, labels):
    graphs = [nx.gnp_random_graph(8, 0.3, seed=k, directed=directed) for k in range(8)]
    graphs = [labeled(graph) for graph in graphs] if labels else graphs
    found = features.fit_transform(graphs)
    other = features.transform([shuffled(graph, k) for k, graph in enumerate(graphs)])
    np.testing.assert_allclose(other, found, atol=1e-5)


def test_the_profile_is_that_of_networkx():
    found = GraphProfile().fit_transform(RANDOM)
    for row, graph in zip(found, RANDOM, strict=True):
        n, m, degrees = len(graph), graph.number_of_edges(), dict(graph.degree)
        triangles = sum(nx.triangles(graph).values()) / 3
        whole = [np.log(n), np.log1p(m), np.log1p(triangles), m / n, nx.density(graph)]
        shares = [sum(degree == k for degree in degrees.values()) / n for k in range(9)]
        shares.append(sum(degree > 8 for degree in degrees.values()) / n)
        np.testing.assert_allclose(row[:15], whole + shares, atol=1e-5)
        columns = {node: [np.log1p(degrees[node])] for node in graph}
        for node, column in columns.items():
            around = [np.log1p(degrees[near]) for near in graph[node]] or [0]
            column += [np.mean(around), np.std(around), min(around), max(around)]
            column.append(nx.clustering(graph, node))
        of_nodes = np.array(list(columns.values()))
        statistics = [f(of_nodes, axis=0) for f in (np.mean, np.std, np.min, np.max)]
        # A deviation is the root of a difference of squares.
        np.testing.assert_allclose(row[15:], np.concatenate(statistics), atol=2e-3)


def test_the_profile_counts_labels():
    graphs = [attributed(nx.path_graph(n), label=lambda k: "ab"[k % 2]) for n in (3, 4)]
    plain = GraphProfile().fit_transform([nx.path_graph(n) for n in (3, 4)])
    found = GraphProfile().fit_transform(graphs)
    np.testing.assert_allclose(found[:, 5:7], np.log1p([[2, 1], [2, 2]]), atol=1e-6)
    np.testing.assert_allclose(found[:, 17:19], [[2 / 3, 1 / 3], [0.5, 0.5]], atol=1e-6)
    rest = [k for k in range(43) if k not in (5, 6, 17, 18)]
    np.testing.assert_array_equal(found[:, rest], plain)


def test_the_profile_has_statistics_of_attributes():
    graphs = [attributed(nx.path_graph(n), lambda k: [float(k), 2.0]) for n in (3, 4)]
    found = GraphProfile(kind=Graphs(standardize=False)).fit_transform(graphs)
    assert found.shape == (2, 15 + 4 * 8)
    statistics = found[:, 15:].reshape(2, 4, 8)[:, :, 6:]
    x = np.arange(4.0)
    for row, n in zip(statistics, (3, 4), strict=True):
        expected = [f(x[:n]) for f in (np.mean, np.std, np.min, np.max)]
        np.testing.assert_allclose(row[:, 0], expected, atol=1e-5)
        np.testing.assert_allclose(row[:, 1], [2, 0, 2, 2], atol=1e-5)


def test_directions_loops_and_repeated_edges_make_no_triangles():
    graphs = [
        nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 0)]),
        nx.DiGraph([(0, 1), (1, 2), (2, 0)]),
        nx.Graph([(0, 1), (1, 2), (2, 0), (0, 0)]),
        nx.MultiGraph([(0, 1), (0, 1), (1, 1)]),
    ]
    found = GraphProfile().fit_transform(graphs)
    np.testing.assert_allclose(found[:, 2], np.log1p([1, 1, 1, 0]), atol=1e-6)


@pytest.mark.parametrize(
    "graph",
    [
        nx.Graph([(0, 1), (1, 2), (2, 0), (0, 0)]),
        nx.MultiGraph([(0, 1), (0, 1), (1, 1)]),
        nx.DiGraph([(0, 1), (1, 2), (2, 1), (2, 2)]),
    ],
    ids=str,
)
def test_every_linked_pair_and_every_loop_counts_once(graph):
    n, m = len(graph), nx.Graph(graph.to_undirected()).number_of_edges()
    found = GraphProfile().fit_transform([graph])[0]
    np.testing.assert_allclose(found[[1, 3]], [np.log1p(m), m / n], atol=1e-6)


def test_a_directed_graph_changes_no_other_row():
    graphs = [nx.cycle_graph(6), nx.path_graph(5)]
    profile = GraphProfile().fit(graphs)
    among = profile.transform([*graphs, nx.DiGraph([(0, 1), (1, 2)])])
    np.testing.assert_array_equal(among[:2], profile.transform(graphs))


@pytest.mark.parametrize("degree", [3, 5, 6, 7])
def test_neighbours_of_equal_degrees_have_no_deviation(degree):
    graphs = [nx.random_regular_graph(degree, n, seed=n) for n in (10, 12, 14)]
    found = GraphProfile().fit_transform(graphs)
    at = 5 + 10 + 6  # where deviations begin
    assert not found[:, at : at + 5].any()


@pytest.mark.parametrize("features", EVERY, ids=lambda one: type(one).__name__)
def test_graphs_without_edges_and_single_nodes_have_finite_features(features):
    graphs = [nx.empty_graph(1), nx.empty_graph(4), nx.DiGraph([(0, 0)]), nx.path_graph(2)]
    found = features.fit_transform(graphs)
    assert np.isfinite(found).all()
    assert np.isfinite(features.fit_transform(graphs[:1])).all()
    assert not np.array_equal(found[0], found[1])


def counts(graphs, X=None, **kwargs):
    """Return how often each colour occurs."""
    kwargs = {"n_rounds": 3, "min_share": 0, **kwargs}
    features = WeisfeilerLehman(**kwargs).fit(graphs)
    return np.expm1(features.transform(graphs if X is None else X)).round(4)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("labels", [False, True])
@pytest.mark.parametrize("n_rounds", [0, 1, 4])
def test_each_node_has_a_colour_before_and_after_each_round(n_rounds, directed, labels):
    graphs = [nx.gnp_random_graph(3 + k, 0.4, seed=k, directed=directed) for k in range(8)]
    graphs = [labeled(graph) for graph in graphs] if labels else graphs
    found = counts(graphs * 2, n_rounds=n_rounds, max_features=10**6)
    expected = [len(graph) * (n_rounds + 1) for graph in graphs * 2]
    np.testing.assert_allclose(found.sum(axis=1), expected)


@pytest.mark.filterwarnings("ignore:The hashes produced:UserWarning")
def test_colours_are_those_of_networkx():
    """As many graphs are alike, by their colours, as by networkx's hash of all of them."""
    graphs = [nx.gnp_random_graph(5, 0.5, seed=k) for k in range(60)]
    found = counts(graphs * 2, n_rounds=5, max_features=10**6)[:60]
    hashes = [
        nx.weisfeiler_lehman_graph_hash(graph, iterations=5, digest_size=16) for graph in graphs
    ]
    alike = np.array(hashes)[:, None] == np.array(hashes)
    np.testing.assert_array_equal((found[:, None] == found).all(2), alike)


@pytest.mark.filterwarnings("ignore:No label of the graphs")
def test_colours_that_fit_has_not_seen_are_ignored():
    paths = [nx.path_graph(4), nx.path_graph(5)]
    found = counts(paths, X=[nx.star_graph(5)])
    # Before the first round all nodes are alike; then five ends, and a centre of degree 5.
    assert found.shape[1] == counts(paths).shape[1]
    assert sorted(found[0], reverse=True)[:3] == [6, 5, 0]
    labels = [attributed(graph, label=lambda k: "a") for graph in paths]
    unseen = attributed(nx.path_graph(4), label=lambda k: "b")
    assert not counts(labels, X=[unseen]).any()


def test_min_share_is_the_share_of_graphs_in_which_a_colour_occurs():
    graphs = [nx.path_graph(3)] * 6 + [nx.star_graph(3)] * 3 + [nx.complete_graph(5)]
    # All; ends; the middle, the centre; the nodes of the complete graph are in one graph alone.
    widths = [counts(graphs, n_rounds=1, min_share=s).shape[1] for s in (0, 0.3, 0.31, 0.7, 1)]
    assert widths == [4, 4, 3, 2, 1]


def test_a_colour_in_exactly_min_share_of_the_graphs_is_kept():
    for n in (7, 14, 28, 29, 55, 56, 57, 58):  # 100 times these shares is more than the number
        graphs = [nx.path_graph(1)] * n + [nx.cycle_graph(3)] * (100 - n)
        assert counts(graphs, n_rounds=1, min_share=n / 100).shape[1] == 2 + (n < 50)


def test_max_features_keeps_the_colours_of_most_graphs():
    graphs = [nx.path_graph(3)] * 6 + [nx.star_graph(3)] * 3
    every = counts(graphs, n_rounds=1)
    for k in (1, 2, 3):
        np.testing.assert_array_equal(counts(graphs, n_rounds=1, max_features=k), every[:, :k])
    occurs = (every > 0).sum(axis=0)
    assert occurs.tolist() == sorted(occurs, reverse=True) == [9, 9, 6, 3]


def test_graphs_that_have_nothing_in_common_keep_a_feature():
    graphs = [attributed(nx.path_graph(2), label=lambda k, name=name: name) for name in "abc"]
    assert counts(graphs).shape == (3, 1)


def test_labels_of_nodes_and_of_edges_count():
    plain = [nx.path_graph(3)] * 2
    nodes = [attributed(nx.path_graph(3), label=names.__getitem__) for names in ("aab", "aba")]
    edges = [nx.path_graph(3), nx.path_graph(3)]
    nx.set_edge_attributes(edges[0], {(0, 1): "single", (1, 2): "double"}, "label")
    nx.set_edge_attributes(edges[1], "single", "label")
    for graphs, differ in ((plain, False), (nodes, True), (edges, True)):
        first, second = counts(graphs * 2, n_rounds=1)[:2]
        assert np.array_equal(first, second) != differ
    assert np.array_equal(*counts(nodes * 2, n_rounds=0)[:2]), "the same labels"


def test_attributes_and_weights_do_not_count():
    first, second = (attributed(nx.path_graph(4), lambda k, c=c: [c * k]) for c in (1.0, -2.0))
    nx.set_edge_attributes(first, 2.0, "weight")
    nx.set_edge_attributes(second, 5.0, "weight")
    np.testing.assert_array_equal(*counts([first, second]))


def test_colours_come_from_the_nodes_that_point_to_a_node():
    graphs = [nx.DiGraph([(0, 1), (0, 2)]), nx.DiGraph([(1, 0), (2, 0)])]
    out, into = counts(graphs * 2, n_rounds=1)[:2]
    # Two nodes with one source; one node with two.
    assert sorted(out) == [0, 1, 2, 3] and sorted(into) == [0, 1, 2, 3]
    assert not np.array_equal(out, into)


def two_hubs(n):
    return nx.Graph([(hub, leaf) for hub in "ab" for leaf in range(n)])


@pytest.mark.parametrize("hub", [nx.star_graph, nx.wheel_graph, two_hubs])
def test_a_hub_costs_memory_by_its_edges_not_by_their_square(hub):
    def peak(n):
        graphs = pack_graphs([hub(n)])
        features = GraphProfile().fit(graphs)
        tracemalloc.start()
        try:
            features.transform(graphs)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(2000) < 6 * peak(500)  # 16 times as much, if it were the square
