"""Similarities: the score of two embeddings."""

from ._base import Similarity
from ._probabilistic import ProbabilisticSimilarity
from .cosine import Cosine
from .dot_product import DotProduct
from .von_mises_fisher import VonMisesFisher

__all__ = ["Cosine", "DotProduct", "ProbabilisticSimilarity", "Similarity", "VonMisesFisher"]
