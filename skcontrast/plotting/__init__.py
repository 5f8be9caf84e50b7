"""Displays in the manner of scikit-learn: of views, fits, embeddings, searches and scores.

They need matplotlib.
"""

from ._embedding import EmbeddingDisplay
from ._estimator_curve import EstimatorCurveDisplay
from ._reliability import ReliabilityDisplay
from ._retrieval import RetrievalDisplay
from ._score_density import ScoreDensityDisplay
from ._search import SearchDisplay
from ._training_curve import TrainingCurveDisplay
from ._views import ViewsDisplay

__all__ = [
    "EmbeddingDisplay",
    "EstimatorCurveDisplay",
    "ReliabilityDisplay",
    "RetrievalDisplay",
    "ScoreDensityDisplay",
    "SearchDisplay",
    "TrainingCurveDisplay",
    "ViewsDisplay",
]
