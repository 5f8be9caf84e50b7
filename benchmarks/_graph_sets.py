"""Sets of TUDataset: arrays of numpy in a folder, or what PyTorch Geometric loads.

``tu_NAME.npz`` in the folder of ``--data-home`` or of the environment variable
``SKCONTRAST_BENCHMARK_DATA`` holds ``edge_index``, ``node_ptr``, the classes ``y`` (0, 1, …) and,
where the set has them, ``node_attributes``, ``node_labels``, ``edge_attributes`` and
``edge_labels``. A set without such a file is downloaded.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import torch

from benchmarks._image_sets import FOLDER
from skcontrast.graphs import pack_graphs
from skcontrast.graphs._packed import assemble, is_symmetric

NUMBERS = {"attributes": "node_attributes", "edge_attributes": "edge_attributes"}
LABELS = {"labels": "node_labels", "edge_labels": "edge_labels"}


def load_graphs(name, data_home=None):
    """Return packed graphs and their classes."""
    path = Path(data_home or os.environ.get(FOLDER, ""), f"tu_{name}.npz")
    if not path.is_file():
        from torch_geometric.datasets import TUDataset

        dataset = TUDataset(data_home or "tudataset", name)
        return pack_graphs(list(map(_with_labels, dataset))), dataset.y.numpy().astype(int)
    with np.load(path) as file:
        edges, ptr = (torch.from_numpy(file[k]).long() for k in ("edge_index", "node_ptr"))
        columns = {k: torch.from_numpy(file[v]).float() for k, v in NUMBERS.items() if v in file}
        for name, stored in LABELS.items():
            if stored in file:
                found, codes = np.unique(file[stored], return_inverse=True)
                columns[name] = torch.from_numpy(codes)
                columns[name.replace("labels", "categories")] = tuple(found.tolist())
        of_edges = [v for k, v in columns.items() if k in ("edge_attributes", "edge_labels")]
        symmetric = is_symmetric(edges, int(ptr[-1]), *of_edges)
        return assemble(edges, ptr, symmetric, **columns), file["y"].astype(int)


def _with_labels(graph):
    """Return a graph whose nodes have a category where they had columns of zeros and ones."""
    if graph.x is not None:
        graph.label, graph.x = graph.x.argmax(1), None
    return graph
