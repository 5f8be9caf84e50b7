"""Sets of TUDataset: arrays of numpy in a folder, or the archives of the collection.

``tu_NAME.npz`` in the folder holds ``edge_index``, ``node_ptr``, the classes ``y`` (0, 1, …) and,
where the set has them, ``node_attributes``, ``node_labels``, ``edge_attributes`` and
``edge_labels``. A set without such a file comes from ``fetch_tudataset``.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from skcontrast.datasets import fetch_tudataset
from skcontrast.graphs import PackedGraphs

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
        return fetch_tudataset(name, data_home=data_home, return_X_y=True)
    with np.load(path) as file:
        arrays = {key: file[stored] for key, stored in OPTIONAL.items() if stored in file}
        graphs = PackedGraphs.from_arrays(file["edge_index"], file["node_ptr"], **arrays)
        return graphs, file["y"].astype(int)
