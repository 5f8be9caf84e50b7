"""The sets of graphs of the benchmarks, from arrays or from archives."""

from __future__ import annotations

import os

import numpy as np
import pytest

from benchmarks._graph_sets import load_graphs
from tests.datasets.common import EDGES, TEXTS, write_zip


def test_arrays_and_archives_are_read_alike(tmp_path):
    write_zip(tmp_path, TEXTS | EDGES)
    archived, y = load_graphs("SET", tmp_path)
    arrays = {"edge_index": archived.topology.edge_index, "edge_labels": archived.edge_labels}
    arrays |= {"node_ptr": [0, 3, 7, 8], "edge_attributes": archived.edge_attributes}
    np.savez(tmp_path / "tu_SET.npz", **arrays, y=[1, 0, 1])
    graphs, same_y = load_graphs("SET", tmp_path)
    assert y.tolist() == same_y.tolist() == [1, 0, 1]
    for one, other in zip(graphs.arrays(), archived.arrays(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("name", "n_graphs", "n_nodes", "n_edges", "n_classes"),
    [
        ("PTC_MR", 344, 14.29, 14.69, 2),
        ("ENZYMES", 600, 32.63, 62.14, 6),
        ("DD", 1178, 284.32, 715.66, 2),
        ("REDDIT-BINARY", 2000, 429.63, 497.75, 2),
    ],
)
def test_real_sets_have_their_published_statistics(name, n_graphs, n_nodes, n_edges, n_classes):
    home = os.environ.get("SKCONTRAST_DATA")
    if not home:
        pytest.skip("SKCONTRAST_DATA names no folder with the sets of TUDataset")
    graphs, y = load_graphs(name, home)
    assert len(graphs) == len(y) == n_graphs and set(y) == set(range(n_classes))
    assert graphs.topology.n_nodes / n_graphs == pytest.approx(n_nodes, abs=0.005)
    assert len(graphs.topology.sources) / n_graphs / 2 == pytest.approx(n_edges, abs=0.005)
