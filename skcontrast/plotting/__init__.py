"""Displays in the style of scikit-learn: views, embeddings, baselines and reliability.

They need matplotlib.
"""

from ._comparisons import BaselinesDisplay, ReliabilityDisplay
from ._embedding import EmbeddingDisplay
from ._views import RetrievalDisplay, ViewsDisplay

__all__ = [
    "BaselinesDisplay",
    "EmbeddingDisplay",
    "ReliabilityDisplay",
    "RetrievalDisplay",
    "ViewsDisplay",
]
