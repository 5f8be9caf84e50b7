"""Similarities: the score of two embeddings."""

from ._base import Similarity
from .cosine import Cosine

__all__ = ["Cosine", "Similarity"]
