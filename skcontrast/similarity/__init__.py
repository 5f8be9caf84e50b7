"""Similarities: the score of two embeddings."""

from ._base import Similarity
from ._checks import check_similarity
from ._vectors import Cauchy, Cosine, DotProduct
from ._von_mises_fisher import VonMisesFisher

__all__ = ["Cauchy", "Cosine", "DotProduct", "Similarity", "VonMisesFisher", "check_similarity"]
