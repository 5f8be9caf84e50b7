"""Contrastive representation learning as scikit-learn estimators."""

import importlib
import pkgutil
from typing import TYPE_CHECKING, Any

from ._objective._functional import contrastive_loss
from ._version import __version__
from .embedder import ContrastiveEmbedder

if TYPE_CHECKING:
    from ._files._export import export
    from ._files._save import load, save
    from ._group_whitening import GroupWhitening
    from ._labeling import LabeledFolds, rows_to_label
    from ._whitening import ViewWhitening
    from .classifier import ContrastiveClassifier

__all__ = [
    "ContrastiveClassifier",
    "ContrastiveEmbedder",
    "GroupWhitening",
    "LabeledFolds",
    "ViewWhitening",
    "__version__",
    "contrastive_loss",
    "export",
    "load",
    "rows_to_label",
    "save",
]

# Imported on first use, because their modules import much of scikit-learn.
_MODULES = {
    "ContrastiveClassifier": ".classifier",
    "GroupWhitening": "._group_whitening",
    "LabeledFolds": "._labeling",
    "ViewWhitening": "._whitening",
    "export": "._files._export",
    "load": "._files._save",
    "rows_to_label": "._labeling",
    "save": "._files._save",
}
# The names of these two are at the top.
_SUBMODULES = {name for _, name, _ in pkgutil.iter_modules(__path__) if name[0] != "_"}
_SUBMODULES -= {"classifier", "embedder"}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f".{name}", __name__)
    if name in _MODULES:
        value = globals()[name] = getattr(importlib.import_module(_MODULES[name], __name__), name)
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES])
