"""The dot product."""

from __future__ import annotations

import math

from torch import Tensor

from ._base import Similarity


class DotProduct(Similarity):
    r"""The plain dot product of two embeddings.

    .. math:: s(z_1, z_2) = z_1 \cdot z_2

    It is unbounded: with the contrastive objective, embeddings can lower the loss by growing.
    InfoGraph uses it with the Jensen–Shannon objective.

    See Also
    --------
    Cosine : The dot product of directions, over a temperature.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.similarity import DotProduct
    >>> DotProduct()(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0], [3.0, 4.0]]))
    tensor([[ 3., 25.]])
    """

    def bounds(self, width: int) -> tuple[float, float]:
        """Return (−∞, ∞)."""
        return -math.inf, math.inf

    def embed(self, z: Tensor) -> Tensor:
        """Return `z` unchanged."""
        return z
