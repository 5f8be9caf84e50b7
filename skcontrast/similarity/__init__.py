"""Similarities: the score of two embeddings."""

from ._base import Similarity
from .cosine import Cosine
from .dot_product import DotProduct

__all__ = ["Cosine", "DotProduct", "Similarity"]
