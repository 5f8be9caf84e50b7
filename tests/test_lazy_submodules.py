"""``import skcontrast`` is quiet and light, and enough to reach every subpackage."""

import importlib
import pkgutil
import subprocess
import sys

import numpy as np
import pytest

import skcontrast
from skcontrast.augmentation import GaussianNoise

PUBLIC = sorted(
    module.name for module in pkgutil.iter_modules(skcontrast.__path__) if module.name[0] != "_"
)
# The classes of these two are at the top.
SUBMODULES = [name for name in PUBLIC if name not in ("classifier", "embedder")]
# Imported where they are used; scikit-learn itself imports pandas where it is installed.
UNUSED = {
    "matplotlib", "networkx", "pandas", "sklearn.cluster", "sklearn.decomposition",
    "sklearn.linear_model", "sklearn.metrics", "sklearn.model_selection", "sklearn.neighbors",
    "skorch", "torch_geometric",
}  # fmt: skip
# What a short fit of vectors has no use for: what judges, what estimates, what reads files.
UNUSED_BY_A_FIT = {
    "skcontrast.datasets", "skcontrast.estimation", "skcontrast.metrics", "skcontrast.plotting",
}  # fmt: skip


def test_dir_lists_the_public_names_only():
    assert dir(skcontrast) == sorted([*skcontrast.__all__, *SUBMODULES])


def test_importing_the_package_is_quiet_and_imports_nothing_that_is_not_used():
    """Lines of a new interpreter, with warnings as errors, after which these are imported."""
    code = f"""
import sys, torch, sklearn.base, warnings
before = set(sys.modules)
import skcontrast
embedder = skcontrast.ContrastiveEmbedder(max_epochs=1)
print("unused:", *{UNUSED} & (sys.modules.keys() - before))
with warnings.catch_warnings(action="ignore"):
    import skorch  # which imports PyTorch Geometric where it is installed
embedder.fit(torch.rand(9, 2))
print("unused by a fit:", *{UNUSED_BY_A_FIT} & sys.modules.keys())
print(*(m.__name__ for m in [{", ".join(f"skcontrast.{name}" for name in SUBMODULES)}]))
print("of drawing and graphs:", *{{"matplotlib", "networkx"}} & sys.modules.keys())
"""
    command = [sys.executable, "-W", "error", "-c", code]
    found = subprocess.run(command, capture_output=True, text=True)
    submodules = " ".join(f"skcontrast.{name}" for name in SUBMODULES)
    expected = ["unused:", "unused by a fit:", submodules, "of drawing and graphs:"]
    assert found.stdout.splitlines() == expected and not found.stderr


def test_other_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="module 'skcontrast' has no attribute 'dataset'"):
        skcontrast.dataset  # noqa: B018
    assert importlib.import_module("skcontrast.metrics") is skcontrast.metrics


def test_what_does_not_train_does_not_import_skorch(tmp_path):
    """And a pretrained network can be checked before anything else is imported."""
    X = np.random.default_rng(0).normal(size=(20, 3))
    embedder = skcontrast.ContrastiveEmbedder(augmentation=GaussianNoise(), max_epochs=1).fit(X)
    skcontrast.save(embedder, tmp_path / "model")
    code = f"""
import sys
import numpy as np
from torch import nn
from skcontrast.encoders import Pretrained, check_encoder
network = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.Conv2d(8, 16, 3, 2))
pictures = np.random.default_rng(0).integers(0, 256, size=(40, 3, 32, 32)).astype(np.uint8)
check_encoder(Pretrained(network, mean=0.5, std=0.5), pictures)
import skcontrast
from skcontrast.features import Raw
X = np.random.default_rng(0).normal(size=(20, 3))
skcontrast.ViewWhitening(Raw()).fit(X)
embedder = skcontrast.load({str(tmp_path / "model")!r})
embedder.transform(X), embedder.score(X[:12]), embedder.views(X)
print("skorch" in sys.modules, len(embedder.history_), "skorch" in sys.modules)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.stdout.split() == ["False", "1", "True"], found.stderr
