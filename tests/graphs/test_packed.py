"""PackedGraphs: rows, copies, scikit-learn."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, train_test_split
from sklearn.utils import resample
from sklearn.utils._indexing import _safe_indexing

from skcontrast.graphs import PackedGraphs
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
    bare = PackedGraphs(packed.topology)
    assert len(bare.arrays()) == 3


def test_graphs_are_not_an_array(packed):
    with pytest.raises(TypeError, match="embed them first"):
        np.asarray(packed)
    n_edges = packed[0].arrays()[2].size
    assert repr(packed[[0, 4]]) == f"PackedGraphs(2 graphs, 5 nodes, {n_edges} edges)"


def test_the_repr_counts_in_singular_and_plural():
    edges = np.array([[0, 1], [1, 0]])
    assert repr(packed_arrays(edges[:, :1], [0, 2])) == ("PackedGraphs(1 graph, 2 nodes, 1 edge)")
    assert repr(packed_arrays(edges, [0, 2, 3])) == ("PackedGraphs(2 graphs, 3 nodes, 2 edges)")
