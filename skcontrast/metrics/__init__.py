"""What can be said of embeddings without classes, as functions and as scorers.

Functions take arrays of embeddings. A scorer is called as ``scorer(estimator, X, y=None)`` and can
be the ``scoring`` of ``GridSearchCV`` and ``cross_val_score``; none of them looks at y.
"""

from ._embeddings import alignment, effective_rank, neighbor_agreement, uniformity
from ._scorers import make_view_scorer

__all__ = [
    "alignment",
    "effective_rank",
    "make_view_scorer",
    "neighbor_agreement",
    "uniformity",
]
