"""The Python of the pages that no doctest runs, with stand-ins for what is not here."""

import re
import sys
import textwrap
import warnings
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import MagicMock

import joblib
import networkx as nx
import numpy as np
import pytest
import sklearn.datasets
import torch
from joblib._parallel_backends import SequentialBackend
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.pipeline import Pipeline
from torch import nn
from torch_geometric.utils import from_networkx

from skcontrast import ContrastiveEmbedder
from skcontrast._model import _settings  # private: shorter fits
from skcontrast.callbacks import Evaluation
from skcontrast.encoders import GIN
from skcontrast.losses import DCL
from skcontrast.metrics import knn_accuracy
from tests.common import X_DIGITS, small

DOCS = Path(__file__).parents[1] / "docs"
BLOCK = re.compile(r"^\.\. code-block:: python\n\n((?:(?:   .*)?\n)+)", flags=re.MULTILINE)
BLOCKS = {
    f"{page.stem}-{number}": textwrap.dedent(code)
    for page in sorted(DOCS.rglob("*.rst"))
    for number, code in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")), 1)
}
COLORS = np.random.default_rng(0).integers(255, size=(12, 32, 32, 3), dtype=np.uint8)
Y_DIGITS = load_digits().target[: len(X_DIGITS)]
# Names that the pages have defined before their blocks.
BEFORE = {
    "ContrastiveEmbedder": ContrastiveEmbedder,
    "Evaluation": Evaluation,
    "knn_accuracy": knn_accuracy,
    "np": np,
    "pipe": Pipeline([("embed", small(loss=DCL()))]),
    "torch": torch,
    "train": X_DIGITS,
    "test": X_DIGITS[:40],
    "y_test": Y_DIGITS[:40],
    "H": X_DIGITS.reshape(len(X_DIGITS), -1),
    "X": X_DIGITS,
    "y": Y_DIGITS,
    "paths": [f"{row}.png" for row in range(len(X_DIGITS))],
}
STUBS = [
    "datasets", "mlflow", "mlflow.entities",
    "mlflow.tracking", "ray", "ray.util", "ray.util.joblib", "rdkit", "tensorboard",
    "torch.utils.tensorboard", "torch_geometric.datasets", "torchvision", "torchvision.datasets",
    "wandb",
]  # fmt: skip


class Cycles(list):
    """Stands in for the data sets of PyTorch Geometric."""

    def __init__(self, folder, name):
        super().__init__(from_networkx(nx.cycle_graph(n)) for n in range(3, 15))
        for graph in self:
            graph.x = torch.eye(3)[torch.arange(graph.num_nodes) % 3]
        self.y = torch.arange(len(self)) % 2


class Unlabeled(torch.utils.data.Dataset):
    """Stands in for a Dataset of torchvision."""

    def __init__(self, *args, **kwargs):
        pass

    def __len__(self):
        return len(COLORS)

    def __getitem__(self, index):
        return Image.fromarray(COLORS[index]), 0


def atom(place):
    return MagicMock(
        GetIdx=lambda: place,
        GetSymbol=lambda: "C",
        GetFormalCharge=lambda: 0,
        GetTotalNumHs=lambda: place,
    )


def bond(begin, end):
    return MagicMock(
        GetBeginAtomIdx=lambda: begin,
        GetEndAtomIdx=lambda: end,
        GetBondType=lambda: "SINGLE",
        IsInRing=lambda: False,
    )


def small_network(shape):
    if None in shape:
        return GIN(1, width=4).build(shape)
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 4))


@pytest.fixture
def stubs(monkeypatch, tmp_path):
    """Replace what is not installed or far away, and fit for one epoch; return the modules."""
    found = {name: MagicMock() for name in STUBS}
    for name, module in found.items():
        monkeypatch.setitem(sys.modules, name, module)
    found["torchvision.datasets"].STL10 = Unlabeled
    found["torchvision.datasets"].CIFAR10 = lambda *a, **kw: SimpleNamespace(data=COLORS)
    images = {"image": list(map(Image.fromarray, COLORS))}
    found["datasets"].load_dataset = lambda name, split: images
    digits = np.tile(X_DIGITS[:1], (30, 13))[:, :784], None
    monkeypatch.setattr(sklearn.datasets, "fetch_openml", lambda *a, **kw: digits)
    found["torch_geometric.datasets"].TUDataset = Cycles
    molecule = found["rdkit"].Chem.MolFromSmiles.return_value
    molecule.GetAtoms.return_value = [atom(place) for place in range(3)]
    molecule.GetBonds.return_value = [bond(0, 1), bond(1, 2)]
    resolve = _settings.resolve_settings

    def briefly(estimator):
        settings = resolve(estimator)
        return replace(settings, max_epochs=1, n_workers=0, encoder=small_network)

    monkeypatch.setattr(_settings, "resolve_settings", briefly)
    monkeypatch.setattr(_settings, "fit_defaults", lambda *args: (1e-3, 1))
    joblib.register_parallel_backend("ray", SequentialBackend)
    monkeypatch.setenv("RANK", "0")
    monkeypatch.chdir(tmp_path)
    np.save("images.npy", COLORS[..., 0][:, :8, :8])
    Path("photos").mkdir()
    for place, pixels in enumerate(COLORS[:3]):
        Image.fromarray(pixels).save(f"photos/{place}.png")
    return found


@pytest.mark.parametrize("block", BLOCKS)
def test_blocks_of_code_run(block, stubs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a few samples, repeated
        exec(compile(BLOCKS[block], block, "exec"), {**stubs, **BEFORE})
    writer = stubs["torch.utils.tensorboard"].SummaryWriter.return_value
    if "SummaryWriter" in BLOCKS[block]:
        assert "knn_accuracy" in str(writer.add_scalar.call_args_list)
    client = str(stubs["mlflow.tracking"].MlflowClient.return_value.mock_calls)
    if "MlflowLogger" in BLOCKS[block]:
        assert "knn_accuracy" in client and "params.pth" in client
    run = stubs["wandb"].init.return_value.__enter__.return_value
    if "WandbLogger" in BLOCKS[block]:
        assert "knn_accuracy" in str(run.log.call_args_list)
