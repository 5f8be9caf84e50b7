"""Contrastive representation learning behind scikit-learn's fit and transform."""

from ._objective._functional import contrastive_loss
from .embedder import ContrastiveEmbedder

__version__ = "0.1.0"

__all__ = ["ContrastiveEmbedder", "__version__", "contrastive_loss"]
