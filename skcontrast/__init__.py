"""Contrastive representation learning behind scikit-learn's fit and transform."""

import importlib
import pkgutil
import warnings
from typing import Any

with warnings.catch_warnings():
    # skorch imports PyTorch Geometric where it is installed, which uses torch.jit.script.
    warnings.filterwarnings("ignore", message="`torch.jit", category=DeprecationWarning)
    import skorch  # noqa: F401

from ._files._card import model_card
from ._files._export import export
from ._files._save import load, save
from ._objective._functional import contrastive_loss
from ._version import __version__
from .classifier import ContrastiveClassifier, LabeledFolds
from .embedder import ContrastiveEmbedder

__all__ = [
    "ContrastiveClassifier",
    "ContrastiveEmbedder",
    "LabeledFolds",
    "__version__",
    "contrastive_loss",
    "export",
    "load",
    "model_card",
    "save",
]

# Some are imported only where they are used; the classes of these two are at the top.
_SUBMODULES = {name for _, name, _ in pkgutil.iter_modules(__path__) if name[0] != "_"}
_SUBMODULES -= {"classifier", "embedder"}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])
