"""Similarities: the score of two embeddings."""

from ._base import Similarity
from ._cauchy import Cauchy
from ._cosine import Cosine, DotProduct
from ._probabilistic import ProbabilisticSimilarity
from ._von_mises_fisher import VonMisesFisher

__all__ = [
    "Cauchy", "Cosine", "DotProduct", "ProbabilisticSimilarity", "Similarity", "VonMisesFisher",
]  # fmt: skip
