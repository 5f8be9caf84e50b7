"""The dot product."""

from __future__ import annotations

from ._base import Similarity

__all__ = ["DotProduct"]


class DotProduct(Similarity):
    r"""The plain dot product of two embeddings.

    .. math:: s(z_1, z_2) = z_1 \cdot z_2

    Has no bounds: with the contrastive objective, embeddings can lower the loss by growing. It is
    what InfoGraph's Jensen–Shannon objective scores by.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.similarity import DotProduct
    >>> DotProduct()(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0], [3.0, 4.0]]))
    tensor([[ 3., 25.]])
    """

    bilinear = True

    def embed(self, z):
        """Return `z` as it is."""
        return z

    def scores(self, u, v):
        """Return the dot products of all pairs."""
        return u @ v.T

    def pairs(self, u, v):
        """Return the dot products of matching rows."""
        return (u * v).sum(-1)
