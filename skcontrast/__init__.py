"""Contrastive representation learning behind scikit-learn's fit and transform."""

from ._files._card import model_card
from ._files._export import export
from ._files._save import load, save
from ._objective._functional import contrastive_loss
from .embedder import ContrastiveEmbedder

__version__ = "0.1.0"

__all__ = [
    "ContrastiveEmbedder",
    "__version__",
    "contrastive_loss",
    "export",
    "load",
    "model_card",
    "save",
]
