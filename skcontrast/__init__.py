"""Contrastive representation learning behind scikit-learn's fit and transform."""

from .embedder import ContrastiveEmbedder
from .objective import contrastive_loss

__version__ = "0.1.0"

__all__ = ["ContrastiveEmbedder", "__version__", "contrastive_loss"]
