"""PackedGraphs: rows, copies, scikit-learn."""

import copy
import pickle

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.utils import resample
from sklearn.utils._indexing import _safe_indexing

from skcontrast.graphs import PackedGraphs, pack_graphs
from skcontrast.graphs._packed import Topology  # private: the index arithmetic
from tests.graphs.common import check_topology, packed_arrays

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
def test_rows_that_do_not_exist_are_refused(packed, rows):
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
    assert len(PackedGraphs(packed.topology).arrays()) == 3


def test_graphs_are_not_an_array(packed):
    with pytest.raises(TypeError, match="embed them first"):
        np.asarray(packed)
    n_edges = packed[0].arrays()[2].size
    assert repr(packed[[0, 4]]) == f"PackedGraphs(2 graphs, 5 nodes, {n_edges} edges)"


def test_the_repr_counts_in_singular_and_plural():
    edges = np.array([[0, 1], [1, 0]])
    assert repr(packed_arrays(edges[:, :1], [0, 2])) == ("PackedGraphs(1 graph, 2 nodes, 1 edge)")
    assert repr(packed_arrays(edges, [0, 2, 3])) == ("PackedGraphs(2 graphs, 3 nodes, 2 edges)")


# Topology


def renumbered(graph):
    return nx.convert_node_labels_to_integers(graph)


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
    topology, nodes, edges = packed.topology.take(torch.tensor(rows, dtype=torch.int64))
    check_topology(topology, [graphs[row] for row in rows])
    assert nodes[topology.edge_index].equal(packed.topology.edge_index[:, edges])
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
    rest, edges = topology.keep(kept)
    check_topology(rest, expected)
    assert rest.symmetric == topology.symmetric
    assert rest.edge_index.equal((kept.cumsum(0) - 1)[topology.edge_index[:, edges]])


def test_topologies_are_joined(undirected, directed):
    parts = [undirected[:3], undirected[3:4], undirected[4:]]
    joined = Topology.cat([pack_graphs(part).topology for part in parts])
    check_topology(joined, undirected)
    assert joined.symmetric
    mixed = Topology.cat([pack_graphs(part).topology for part in (undirected, directed)])
    check_topology(mixed, undirected + directed)
    assert not mixed.symmetric
