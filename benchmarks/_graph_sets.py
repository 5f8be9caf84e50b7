"""Sets of TUDataset: arrays of numpy in a folder, or what PyTorch Geometric loads.

``tu_NAME.npz`` in the folder holds ``edge_index``, ``node_ptr``, the classes ``y`` (0, 1, …) and,
where the set has them, ``node_attributes``, ``node_labels``, ``edge_attributes`` and
``edge_labels``. A set without such a file is downloaded.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from skcontrast.graphs import PackedGraphs, pack_graphs

OPTIONAL = {
    "attributes": "node_attributes",
    "labels": "node_labels",
    "edge_attributes": "edge_attributes",
    "edge_labels": "edge_labels",
}


def load_graphs(name, data_home=None):
    """Return packed graphs and their classes."""
    path = Path(data_home or "", f"tu_{name}.npz")
    if not path.is_file():
        from torch_geometric.datasets import TUDataset

        dataset = TUDataset(data_home or "tudataset", name)
        return pack_graphs(list(map(_with_labels, dataset))), dataset.y.numpy().astype(int)
    with np.load(path) as file:
        arrays = {key: file[stored] for key, stored in OPTIONAL.items() if stored in file}
        graphs = PackedGraphs.from_arrays(file["edge_index"], file["node_ptr"], **arrays)
        return graphs, file["y"].astype(int)


def _with_labels(graph):
    """Return a graph whose nodes have a category where they had columns of zeros and ones."""
    if graph.x is not None:
        graph.label, graph.x = graph.x.argmax(1), None
    return graph
