"""Displays in the manner of scikit-learn: of views, embeddings, baselines and ranks.

They need matplotlib.
"""

from ._baselines import BaselinesDisplay
from ._embedding import EmbeddingDisplay
from ._reliability import ReliabilityDisplay
from ._retrieval import RetrievalDisplay
from ._views import ViewsDisplay

__all__ = [
    "BaselinesDisplay",
    "EmbeddingDisplay",
    "ReliabilityDisplay",
    "RetrievalDisplay",
    "ViewsDisplay",
]
