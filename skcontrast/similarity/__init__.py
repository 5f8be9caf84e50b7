"""Similarities: the score of two embeddings."""

from ._base import Cauchy, Cosine, DotProduct, Similarity, check_similarity
from ._von_mises_fisher import VonMisesFisher

__all__ = ["Cauchy", "Cosine", "DotProduct", "Similarity", "VonMisesFisher", "check_similarity"]
