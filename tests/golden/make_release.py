"""Write the pickles of a release, with what its embedders return, as data for later versions.

Run it once, when the version of the release is set: ``PYTHONPATH=. python
tests/golden/make_release.py``. Files of earlier releases are never written again. Those of 0.1.0
were written by this script with the package of commit 56607e6, and with torch imported before
everything else.
"""

from __future__ import annotations

import json
import pickle
from importlib.metadata import version
from pathlib import Path

import joblib
import networkx as nx
import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

import skcontrast
from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import FeatureDropout, GaussianNoise, RandomAffine, Unflatten
from skcontrast.encoders import GCN, GIN, MLP, ConvNet, ResNet
from skcontrast.frameworks import CMC, InfoGraph, MoCo
from skcontrast.graphs import pack_graphs
from skcontrast.losses import BCL, DCL, PUCL, Ring
from skcontrast.schedules import Linear
from skcontrast.similarity import Cosine, VonMisesFisher

HERE = Path(__file__).parent / "files"
RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(24, 6)).round(3)
LABELS = np.arange(24) % 2
GREY = RNG.integers(0, 256, (12, 8, 8)).astype(np.uint8)
COLOUR = (GREY[:, None] / 255 * RNG.uniform(0.2, 1, (12, 3, 1, 1))).astype(np.float32)
GRAPHS = [nx.gnp_random_graph(6 + k % 4, 0.4, seed=k) for k in range(12)]
LABELED = [graph.copy() for graph in GRAPHS]
for _graph in LABELED:
    for _node in _graph:
        _graph.nodes[_node].update(x=[_node / 2, 1.0], label=_node % 3)

_NAME = "hidden" if skcontrast.__version__ == "0.1.0" else "widths"
SMALL_MLP = MLP(**{_NAME: (8,)})


def fitted(X, y=None, **params):
    """Return an embedder after two epochs, of a few kilobytes."""
    params = {"encoder": SMALL_MLP, "n_components": 4, "projection_dim": 4, **params}
    return ContrastiveEmbedder(max_epochs=2, random_state=0, **params).fit(X, y)


def pipeline():
    """Return a fitted Pipeline with augmentations before the embedder."""
    embedder = ContrastiveEmbedder(SMALL_MLP, n_components=4, max_epochs=2, random_state=0)
    steps = GaussianNoise(), FeatureDropout(), embedder, LogisticRegression()
    return make_pipeline(*steps).fit(VECTORS, LABELS)


def search():
    """Return a fitted search over a Pipeline on flattened images."""
    embedder = ContrastiveEmbedder(ConvNet((4,)), loss=DCL(), n_components=4, random_state=0)
    pipe = make_pipeline(Unflatten((1, 8, 8)), RandomAffine(), embedder.set_params(max_epochs=1))
    grid = {"contrastiveembedder__loss__tau_plus": [0.1, 0.3]}
    return GridSearchCV(pipe, grid, cv=2).fit(GREY.reshape(12, -1))


CONV = {"encoder": ConvNet((4,))}
CASES = {
    "vectors": lambda: (fitted(VECTORS), VECTORS),
    "vectors_far": lambda: (fitted(VECTORS + 1e9, standardize=True), VECTORS + 1e9),
    "vectors_raw": lambda: (fitted(VECTORS, standardize=False), VECTORS),
    "grey": lambda: (fitted(GREY, **CONV), GREY),
    "colour": lambda: (fitted(COLOUR, **CONV), COLOUR),
    "resnet": lambda: (fitted(COLOUR, encoder=ResNet(18, width=1), n_components=None), COLOUR),
    "module": lambda: (
        fitted(VECTORS, encoder=torch.nn.Sequential(torch.nn.Linear(6, 4)), n_components=None),
        VECTORS,
    ),
    "projection": lambda: (fitted(VECTORS, output="projection"), VECTORS),
    "auto": lambda: (fitted(VECTORS, LABELS, loss=DCL(tau_plus="auto")), VECTORS),
    "schedules": lambda: (
        fitted(VECTORS, loss=Ring(Linear(0.5, 0.9)), similarity=Cosine(Linear(0.5, 0.1))),
        VECTORS,
    ),
    "vmf": lambda: (fitted(VECTORS, similarity=VonMisesFisher()), VECTORS),
    "moco": lambda: (
        fitted(VECTORS, framework=MoCo(queue_size=8), loss=PUCL(), warm_start=True),
        VECTORS,
    ),
    "cmc": lambda: (fitted(VECTORS, framework=CMC(), warm_start=True), VECTORS),
    "cmc_lab": lambda: (fitted(COLOUR, framework=CMC(), **CONV), COLOUR),
    "infograph": lambda: (
        fitted(GRAPHS, encoder=GIN(2, 4), framework=InfoGraph(), n_components=None),
        GRAPHS,
    ),
    "graphs_labeled": lambda: (fitted(LABELED, encoder=GCN(2, 4), n_components=None), LABELED),
    "pipeline": lambda: (pipeline(), VECTORS),
    "search": lambda: (search(), GREY.reshape(12, -1)),
    "unfitted": lambda: (ContrastiveEmbedder(encoder=SMALL_MLP, loss=BCL(alpha="auto")), None),
}


def outputs(model, X):
    """Return by name all that a model says about X."""
    if X is None:
        return {}
    found = {"transform": model.transform(X)} if hasattr(model, "transform") else {}
    for name in ("concentration", "predict_proba"):
        if hasattr(model, name):
            found[name] = getattr(model, name)(X)
    return found


def arrays(X):
    """Return X as arrays by name."""
    if isinstance(X, list):
        X = pack_graphs(X)
        topology = {"edge_index": X.topology.edge_index, "node_ptr": X.topology.node_ptr}
        more = {"attributes": X.attributes, "labels": X.labels}
        found = {**topology, **{k: v for k, v in more.items() if v is not None}}
        return {name: tensor.numpy() for name, tensor in found.items()}
    return {} if X is None else {"X": X}


def main():
    """Write all files of this version."""
    folder = HERE / skcontrast.__version__
    folder.mkdir()
    for name, make in CASES.items():
        model, X = make()
        joblib.dump(model, folder / f"{name}.joblib", compress=("xz", 9))
        content = {f"in_{key}": array for key, array in arrays(X).items()}
        content |= {f"out_{key}": array for key, array in outputs(model, X).items()}
        np.savez_compressed(folder / f"{name}.npz", **content)
        if name in ("vectors", "unfitted"):
            (folder / f"{name}.pickle").write_bytes(pickle.dumps(model))
    packages = "joblib", "numpy", "scikit-learn", "scipy", "skorch", "torch"
    versions = json.dumps({package: version(package) for package in packages}, indent=1)
    (folder / "versions.json").write_text(f"{versions}\n")


if __name__ == "__main__":
    main()
