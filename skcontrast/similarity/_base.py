"""What a similarity is: an embedding of each sample and a score of two of them."""

from __future__ import annotations

from .._sklearn_compat import ParameterObject

__all__ = ["Similarity"]


class Similarity(ParameterObject):
    """Base class of the similarities.

    A similarity works in two stages, so that what concerns one sample is done once per sample and
    not once per pair: ``embed`` maps what the encoder returns to the vectors that are compared,
    ``scores`` compares all pairs of two sets of them.

    Attributes
    ----------
    bilinear : bool
        Whether ``scores(u, v)`` is ``u @ v.T``; its gradient is then two matrix products.
    bounds : tuple of float
        The lowest and the highest score there is (or numbers below and above all that occur).
    """

    bilinear = False
    bounds = (float("-inf"), float("inf"))

    def __call__(self, z1, z2):
        """Return the scores, shape (n, m), of embeddings of shapes (n, d) and (m, d)."""
        return self.scores(self.embed(z1), self.embed(z2))

    def embed(self, z):
        """Map the encoder's output, shape (n, d), to the vectors that are compared, (n, k)."""
        raise NotImplementedError

    def scores(self, u, v):
        """Return all pairwise scores, shape (n, m), of vectors of shapes (n, k) and (m, k)."""
        raise NotImplementedError

    def pairs(self, u, v):
        """Return the scores of matching rows, shape (n,), of vectors of shape (n, k)."""
        raise NotImplementedError
