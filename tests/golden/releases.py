"""Files of `skcontrast.save` that each release has written, and the samples they are tried on.

    python -m tests.golden.releases  # writes those of this version

``files/VERSION/NAME.safetensors`` holds a model, ``NAME.npy`` what it returns for the first of
``SAMPLES[NAME]``. Later versions load them: what is here stays as it is, but for a version that is
not out.
"""

from pathlib import Path

import networkx as nx
import numpy as np

import skcontrast
from skcontrast import ContrastiveClassifier, ContrastiveEmbedder
from skcontrast.encoders import GIN, MLP, PatchNet, SeriesNet, Wide
from skcontrast.features import (
    GraphProfile,
    MiniRocket,
    OrientedGradients,
    PatchDictionary,
    WeisfeilerLehman,
)
from skcontrast.losses import BCL
from skcontrast.schedules import Linear
from skcontrast.similarity import VonMisesFisher

FOLDER = Path(__file__).parent / "files"
RNG = np.random.RandomState(0)  # whose draws never change
N = 24
VECTORS = RNG.normal(size=(N, 6))
NAMES = np.array(["a", "b", "c"])[np.arange(N) % 3]
STEPS = np.arange(40) / (1 + np.arange(N)[:, None])


def _graph(k):
    graph = nx.cycle_graph(4 + k % 5)
    nx.set_node_attributes(graph, {node: "CNO"[(node + k) % 3] for node in graph}, "label")
    return graph


SAMPLES = {
    "vectors": VECTORS,
    "classifier": VECTORS + 2 * np.eye(6)[np.arange(N) % 3],
    "images": RNG.randint(0, 256, size=(N, 1, 16, 16)).astype(np.uint8),
    "series": np.stack([np.sin(STEPS), np.cos(STEPS)], axis=1),
    "graphs": [_graph(k) for k in range(N)],
}


def models():
    """Yield names and fitted models."""
    fast = {"max_epochs": 2, "random_state": 0, "device": "cpu", "projection_dim": 4}
    patches = Wide(
        PatchNet(widths=(8,), n_patches=8, patch_size=4),
        [PatchDictionary(8, 4, grid=3), OrientedGradients()],
    )
    loss = BCL(alpha=Linear(0.5, 0.7), tau_plus=0.1)
    embedders = {
        "vectors": ContrastiveEmbedder(
            MLP(widths=(8,)), loss=loss, similarity=VonMisesFisher(), **fast
        ),
        "images": ContrastiveEmbedder(patches, **fast),
        "series": ContrastiveEmbedder(Wide(SeriesNet(widths=(4,)), [MiniRocket()]), **fast),
        "graphs": ContrastiveEmbedder(
            Wide(GIN(n_layers=1, width=8), [GraphProfile(), WeisfeilerLehman(n_components=8)]),
            **fast,
        ),
    }
    for name, embedder in embedders.items():
        yield name, embedder.fit(SAMPLES[name])
    few = np.where(np.arange(N) % 2, None, NAMES)
    model = ContrastiveClassifier(
        ContrastiveEmbedder(MLP(widths=(8,), n_learned=4), **fast), random_state=0
    )
    yield "classifier", model.fit(SAMPLES["classifier"], few)


def outputs(model, name):
    """Return what a model returns for six samples: embeddings, or probabilities of classes."""
    predict = getattr(model, "predict_proba", model.transform)
    return np.asarray(predict(SAMPLES[name][:6]))


def main():
    """Write the files of this version."""
    folder = FOLDER / skcontrast.__version__
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in models():
        skcontrast.save(model, folder / f"{name}.safetensors")
        np.save(folder / f"{name}.npy", outputs(model, name))


if __name__ == "__main__":
    main()
