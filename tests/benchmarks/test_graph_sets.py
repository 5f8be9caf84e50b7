"""The sets of graphs of the benchmarks, from arrays or by PyTorch Geometric."""

from __future__ import annotations

import os

import numpy as np
import pytest

from benchmarks._graph_sets import load_graphs

# A triangle, a path of four nodes and an edge, of the classes 3, −1 and 3, with labels of nodes.
TEXTS = {
    "A": "1, 2\n2, 1\n2, 3\n3, 2\n3, 1\n1, 3\n4, 5\n5, 4\n5, 6\n6, 5\n6, 7\n7, 6\n8, 9\n9, 8\n",
    "graph_indicator": "1\n1\n1\n2\n2\n2\n2\n3\n3\n",
    "graph_labels": "3\n-1\n3\n",
    "node_labels": "5\n5\n9\n5\n9\n9\n9\n5\n5\n",
}


@pytest.mark.filterwarnings("ignore")  # of PyTorch Geometric's own
def test_arrays_and_what_pytorch_geometric_loads_are_read_alike(tmp_path):
    pytest.importorskip("torch_geometric")
    raw = tmp_path / "SET" / "raw"
    raw.mkdir(parents=True)
    for name, text in TEXTS.items():
        (raw / f"SET_{name}.txt").write_text(text)
    loaded, y = load_graphs("SET", tmp_path)
    arrays = {"edge_index": loaded.topology.edge_index, "node_ptr": [0, 3, 7, 9]}
    np.savez(tmp_path / "tu_SET.npz", **arrays, node_labels=loaded.labels, y=[1, 0, 1])
    graphs, same_y = load_graphs("SET", tmp_path)
    assert y.tolist() == same_y.tolist() == [1, 0, 1]
    assert loaded.labels.tolist() == [0, 0, 1, 0, 1, 1, 1, 0, 0]
    for one, other in zip(graphs.arrays(), loaded.arrays(), strict=True):
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
