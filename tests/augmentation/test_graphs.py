from collections import Counter
from itertools import combinations, permutations

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.stats import chisquare
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import (
    AttributeMask,
    EdgePerturb,
    NodeDrop,
    RandomWalkSubgraph,
    Views,
    compose,
)

# private: arrival times against naive code
from skcontrast.augmentation._graphs import arrival_times
from skcontrast.graphs import GraphBatch, pack_graphs
from tests.augmentation.common import BUILT_IN, seeded

AUGMENTATIONS = BUILT_IN["graphs"]
IDENTITIES = [NodeDrop(rate=0.0), EdgePerturb(rate=0), AttributeMask(rate=0.0)]

by_name = pytest.mark.parametrize("augmentation", AUGMENTATIONS, ids=lambda a: type(a).__name__)


def as_batch(graphs):
    """Graphs whose nodes carry their own number, +1, and a category."""
    topology = pack_graphs(graphs).topology
    numbers = torch.arange(topology.n_nodes)
    return GraphBatch(topology, (numbers[:, None] + 1.0), numbers % 3, 3)


def as_graphs(batch):
    """Graphs of networkx whose nodes are the numbers that they carried at first."""
    kind = nx.MultiGraph if batch.topology.symmetric else nx.MultiDiGraph
    names, (sources, targets) = (batch.dense[:, 0].long() - 1).tolist(), batch.edge_index.tolist()
    graphs = [kind() for _ in range(len(batch))]
    for name, owner in zip(names, batch.batch.tolist(), strict=True):
        graphs[owner].add_node(name)
    for u, v, owner in zip(sources, targets, batch.batch[batch.edge_index[0]], strict=True):
        if kind is nx.MultiDiGraph or u <= v:
            graphs[owner].add_edge(names[u], names[v])
    return graphs


def edges_of(graph):
    sort = tuple if graph.is_directed() else sorted
    return Counter(tuple(sort(edge)) for edge in graph.edges())


def assert_equal(one, other):
    assert all(a.equal(b) for a, b in zip(one.topology[:3], other.topology[:3], strict=True))
    assert one.topology.symmetric == other.topology.symmetric
    assert one.dense.equal(other.dense) and one.codes.equal(other.codes)


def check_batch(batch):
    """Assert what must hold for any batch: the arrays fit, edges stay within their graph."""
    topology = batch.topology
    assert topology.node_ptr[-1] == topology.n_nodes == len(batch.dense) == len(batch.codes)
    assert topology.edge_ptr[-1] == len(topology.sources)
    assert (topology.sizes > 0).all() and (topology.in_degrees >= 0).all()
    owners = batch.batch
    assert owners[topology.sources].equal(owners[topology.targets])
    if topology.symmetric:
        pairs = topology.edge_index.T.tolist()
        assert Counter(map(tuple, pairs)) == Counter((v, u) for u, v in pairs)


@pytest.fixture
def graphs():
    """Undirected graphs of all sorts, large, tiny, dense, without edges, with loops."""
    rng = np.random.default_rng(0)
    loops = nx.path_graph(6)
    loops.add_edges_from([(0, 0), (3, 3)])
    random = [nx.gnp_random_graph(int(n), 0.1, seed=int(n)) for n in rng.integers(5, 80, 12)]
    special = [nx.empty_graph(1), nx.empty_graph(7), nx.complete_graph(9), nx.star_graph(40)]
    parallel = nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 2), (2, 2)])
    lonely_loop = nx.Graph([(0, 0)])
    return [*random, *special, loops, nx.path_graph(2), parallel, lonely_loop, nx.path_graph(200)]


@pytest.fixture
def directed():
    return [
        *(nx.gnp_random_graph(n, 0.1, seed=n, directed=True) for n in (3, 10, 30, 50)),
        nx.path_graph(5, create_using=nx.DiGraph),
        nx.empty_graph(1, create_using=nx.DiGraph),
        nx.MultiDiGraph([(0, 1), (0, 1), (1, 0), (1, 1)]),
    ]


# What all have in common


@by_name
@pytest.mark.parametrize("sort", ["graphs", "directed"])
def test_views_are_graphs_and_the_batch_is_left_alone(augmentation, sort, request):
    batch = as_batch(request.getfixturevalue(sort))
    before = [t.clone() for t in (*batch.topology[:3], batch.dense, batch.codes)]
    for seed in range(5):
        view = augmentation.augment(batch, seeded(seed))
        check_batch(view)
        assert len(view) == len(batch)
        assert view.topology.symmetric == batch.topology.symmetric
        assert (view.dense.dtype, view.n_codes) == (batch.dense.dtype, 3)
    after = (*batch.topology[:3], batch.dense, batch.codes)
    assert all(a.equal(b) for a, b in zip(before, after, strict=True))


@by_name
def test_views_depend_on_the_generator_and_on_nothing_else(augmentation, graphs):
    batch = as_batch(graphs)
    torch.manual_seed(0)
    state = torch.get_rng_state()
    one = augmentation.augment(batch, seeded())
    assert torch.get_rng_state().equal(state)
    torch.manual_seed(1)
    assert_equal(one, augmentation.augment(batch, seeded()))
    views = [
        one,
        *(augmentation.augment(batch, generator) for generator in (seeded(1), None, None)),
    ]
    shown = {str((view.dense.tolist(), view.edge_index.tolist())) for view in views}
    assert len(shown) == 4


@pytest.mark.parametrize("augmentation", IDENTITIES, ids=repr)
@pytest.mark.parametrize("sort", ["graphs", "directed"])
def test_no_rate_is_the_identity(augmentation, sort, request):
    batch = as_batch(request.getfixturevalue(sort))
    assert_equal(augmentation.augment(batch, seeded()), batch)


@by_name
def test_features_keep_their_dtype_and_may_have_no_codes(augmentation, graphs):
    for dtype in [torch.float32, torch.float64]:
        topology = pack_graphs(graphs).topology
        batch = GraphBatch(topology, torch.ones(topology.n_nodes, 2, dtype=dtype))
        view = augmentation.augment(batch, seeded())
        assert view.dense.dtype == dtype and view.codes is None
        assert view.shape == (len(graphs), None, 2)


@by_name
def test_graphs_without_features_are_augmented_too(augmentation, graphs):
    topology = pack_graphs(graphs).topology
    view = augmentation.augment(GraphBatch(topology, torch.ones(topology.n_nodes, 0)), seeded())
    assert len(view) == len(graphs) and (view.topology.sizes > 0).all()


@by_name
def test_no_graph_becomes_empty_at_the_limits(augmentation, graphs, directed):
    name = "ratio" if "ratio" in augmentation.get_params() else "rate"
    for extreme in (1e-9, 1.0):
        augmentation = clone(augmentation).set_params(**{name: extreme})
        for batch in as_batch(graphs), as_batch(directed):
            check_batch(augmentation.augment(batch, seeded()))


@by_name
def test_a_graph_is_augmented_the_same_way_wherever_it_stands(augmentation):
    lollipop = nx.lollipop_graph(5, 6)
    few = as_batch([lollipop, nx.star_graph(30), nx.empty_graph(2), nx.complete_graph(8)])
    alone = few[torch.zeros(2000, dtype=torch.int64)]
    among_others = few[torch.arange(8000) % 4]
    views = augmentation.augment(alone, seeded(0)), augmentation.augment(among_others, seeded(1))
    (a, sa), (b, sb) = map(mean_and_error, (views[0], views[1][::4]))
    assert sa > 0 and abs(a - b) < 4 * (sa**2 + sb**2) ** 0.5


@pytest.mark.parametrize("sort", ["graphs", "directed"])
def test_paths_are_the_shortest_along_outgoing_edges(sort, request):
    topology = as_batch(request.getfixturevalue(sort)).topology
    delays = torch.randint(1, 1000, (topology.n_nodes,), generator=seeded())
    starts = topology.node_ptr[:-1]
    graph = nx.DiGraph([(u, v, {"d": int(delays[v])}) for u, v in topology.edge_index.T.tolist()])
    graph.add_nodes_from(range(topology.n_nodes))
    known = nx.multi_source_dijkstra_path_length(graph, set(starts.tolist()), weight="d")
    expected = [known.get(node, torch.inf) for node in range(topology.n_nodes)]
    found = arrival_times(topology, starts, delays)
    assert found.tolist() == expected and found.isinf().any()


@by_name
def test_a_step_of_a_pipeline_shows_its_views_to_the_embedder(augmentation, graphs):
    views = clone(augmentation).fit_transform(graphs)
    assert isinstance(views, Views) and len(views) == len(views[:]) == len(graphs)
    embed = ContrastiveEmbedder(max_epochs=1, random_state=0)
    first, second = (make_pipeline(augmentation, embed).fit_transform(graphs) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert len(first) == len(graphs) and np.isfinite(first).all()


def test_a_chain_is_its_augmentations_one_after_the_other(graphs):
    batch, generator = as_batch(graphs), seeded()
    expected = batch
    for augmentation in AUGMENTATIONS:
        expected = augmentation.augment(expected, generator)
    assert_equal(compose(AUGMENTATIONS, batch.shape[1:])(batch, seeded()), expected)


def mean_and_error(view):
    """Of a number for each graph that depends on its edges and on which nodes show features."""
    value = (view.topology.in_degrees + 1.0) ** 2 * (view.dense[:, 0] > 0)
    sums = torch.zeros(len(view)).index_add_(0, view.batch, value).double()
    return sums.mean(), sums.std() / len(view) ** 0.5


def outcomes(augmentation, graph, describe, n=6000):
    """Count what `describe` makes of n views of a graph."""
    batch = as_batch([graph])[torch.zeros(n, dtype=torch.int64)]
    return Counter(describe(view) for view in as_graphs(augmentation.augment(batch, seeded())))


def nodes_of(graph):
    return tuple(sorted(graph))


def assert_frequencies(counts, probabilities):
    """Assert that counts agree with probabilities: chi-square, at a level of 1e-4."""
    assert set(counts) <= set(probabilities)
    total = sum(counts.values())
    expected = [total * p for p in probabilities.values()]
    assert chisquare([counts[key] for key in probabilities], expected).pvalue > 1e-4


def assert_uniform(counts, possible):
    assert_frequencies(counts, dict.fromkeys(possible, 1 / len(possible)))


# NodeDrop


@pytest.mark.parametrize("sort", ["graphs", "directed"])
def test_dropping_leaves_an_induced_subgraph_of_exact_size(sort, request):
    for rate in [0.05, 0.2, 0.5, 0.99, 1.0]:
        batch = as_batch(request.getfixturevalue(sort))
        view = NodeDrop(rate=rate).augment(batch, seeded())
        for graph, kept in zip(as_graphs(batch), as_graphs(view), strict=True):
            assert len(kept) == max(len(graph) - round(rate * len(graph)), 1)
            assert edges_of(kept) == edges_of(graph.subgraph(kept))
        assert view.codes.equal((view.dense[:, 0].long() - 1) % 3)
        assert view.dense[:, 0].equal(view.dense[:, 0].sort().values)


def test_each_set_of_nodes_is_equally_likely_to_be_dropped():
    counts = outcomes(NodeDrop(rate=0.4), nx.star_graph(4), nodes_of)
    assert_uniform(counts, list(combinations(range(5), 3)))


def test_the_last_node_is_a_random_one():
    assert_uniform(
        outcomes(NodeDrop(rate=1.0), nx.star_graph(3), nodes_of), [(k,) for k in range(4)]
    )


# AttributeMask


@pytest.mark.parametrize("rate", [0.2, 0.5, 1.0])
def test_masking_hides_the_features_of_an_exact_number_of_nodes(graphs, rate):
    batch = as_batch(graphs)
    view = AttributeMask(rate=rate).augment(batch, seeded())
    assert view.topology is batch.topology
    hidden = view.codes < 0
    assert hidden.equal(view.dense[:, 0] == 0) and hidden.equal((view.x == 0).all(1))
    assert view.x[~hidden].equal(batch.x[~hidden])
    sizes = batch.topology.sizes
    counts = torch.bincount(view.batch[hidden], minlength=len(sizes))
    assert counts.tolist() == [round(rate * n) for n in sizes.tolist()]


def test_each_set_of_nodes_is_equally_likely_to_be_masked():
    batch = as_batch([nx.path_graph(4)])[torch.zeros(6000, dtype=torch.int64)]
    hidden = (AttributeMask(rate=0.5).augment(batch, seeded()).codes < 0).view(-1, 4)
    counts = Counter(tuple(row.nonzero()[:, 0].tolist()) for row in hidden)
    assert_uniform(counts, list(combinations(range(4), 2)))


# EdgePerturb


@pytest.mark.parametrize("sort", ["graphs", "directed"])
def test_an_exact_number_of_edges_goes_and_comes(sort, request):
    for rate in [0.05, 0.2, 0.5, 1.0]:
        for add in [False, True]:
            batch = as_batch(request.getfixturevalue(sort))
            view = EdgePerturb(rate=rate, add=add).augment(batch, seeded())
            assert view.dense is batch.dense and view.codes is batch.codes
            assert view.topology.node_ptr.equal(batch.topology.node_ptr)
            for graph, changed in zip(as_graphs(batch), as_graphs(view), strict=True):
                before, after = edges_of(graph), edges_of(changed)
                n_gone = round(rate * before.total())
                assert (before - after).total() <= n_gone
                assert nx.number_of_selfloops(changed) <= nx.number_of_selfloops(graph)
                if add and len(graph) > 1:
                    assert after.total() == before.total()
                else:
                    assert after.total() == before.total() - n_gone and after <= before


def test_each_set_of_edges_is_equally_likely_to_go():
    cycle = nx.cycle_graph(5)
    counts = outcomes(
        EdgePerturb(rate=0.4, add=False), cycle, lambda g: tuple(sorted(edges_of(g)))
    )
    assert_uniform(counts, list(combinations(sorted(edges_of(cycle)), 3)))


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
def test_each_pair_of_nodes_is_equally_likely_to_be_joined(kind):
    edge = kind([(0, 1)])
    edge.add_nodes_from([2, 3])
    counts = outcomes(EdgePerturb(rate=1.0), edge, lambda graph: next(iter(edges_of(graph))))
    pairs = combinations if kind is nx.Graph else permutations
    assert_uniform(counts, list(pairs(range(4), 2)))


# RandomWalkSubgraph


@pytest.mark.parametrize("ratio", [1e-6, 0.3, 0.8, 1.0])
def test_a_walk_leaves_a_connected_induced_subgraph(graphs, ratio):
    batch = as_batch(graphs)
    for seed in range(3):
        view = RandomWalkSubgraph(ratio=ratio).augment(batch, seeded(seed))
        for graph, kept in zip(as_graphs(batch), as_graphs(view), strict=True):
            assert nx.is_connected(kept)
            assert edges_of(kept) == edges_of(graph.subgraph(kept))
            component = nx.node_connected_component(graph, next(iter(kept)))
            assert len(kept) == min(max(round(ratio * len(graph)), 1), len(component))
        assert view.codes.equal((view.dense[:, 0].long() - 1) % 3)


def test_a_walk_through_all_of_a_connected_graph_is_the_identity():
    batch = as_batch([nx.path_graph(300), nx.star_graph(10), nx.complete_graph(4)])
    assert_equal(RandomWalkSubgraph(ratio=1.0).augment(batch, seeded()), batch)


def test_a_walk_follows_the_direction_of_edges(directed):
    batch = as_batch(directed)
    for seed in range(5):
        view = RandomWalkSubgraph(ratio=0.6).augment(batch, seeded(seed))
        for graph, kept in zip(as_graphs(batch), as_graphs(view), strict=True):
            assert edges_of(kept) == edges_of(graph.subgraph(kept))
            assert any(nx.descendants(kept, node) | {node} == set(kept) for node in kept)
    path = nx.path_graph(5, create_using=nx.DiGraph)
    counts = outcomes(RandomWalkSubgraph(ratio=0.6), path, nodes_of)
    assert_uniform(counts, [(0, 1, 2), (1, 2, 3), (2, 3, 4), (3, 4), (4,)])


@pytest.mark.parametrize("n_kept", [1, 2, 3, 4])
def test_a_walk_steps_to_each_neighbour_with_the_same_probability(n_kept):
    graph = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 1), (3, 4), (4, 5)])
    probabilities = {frozenset([node]): 1 / 6 for node in graph}
    for _ in range(n_kept - 1):
        probabilities = one_step(graph, probabilities)
    counts = outcomes(RandomWalkSubgraph(ratio=n_kept / 6), graph, frozenset)
    assert_frequencies(counts, probabilities)


def one_step(graph, probabilities):
    """Return the probabilities of the sets of visited nodes after one node more."""
    after = {}
    for visited, p in probabilities.items():
        ahead = nx.node_boundary(graph, visited)
        for node in ahead:
            grown = visited | {node}
            after[grown] = after.get(grown, 0) + p / len(ahead)
    return after
