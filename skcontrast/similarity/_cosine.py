"""The cosine, divided by a temperature, and the dot product."""

from __future__ import annotations

import math

from torch import Tensor

from ..schedules._numbers import Number, current_value, interval
from ._base import Similarity, with_divisor


class Cosine(Similarity):
    r"""Cosine of the angle between two embeddings, divided by a temperature.

    .. math:: s(z_1, z_2) = \frac{z_1 \cdot z_2}{t\,|z_1|\,|z_2|}

    Parameters
    ----------
    temperature : float or Schedule, default=0.5
        The temperature t in [1e-30, 1e30]. Scores are in [−1/t, 1/t]. With small values
        only the closest negatives count in the loss.

    See Also
    --------
    DotProduct : The same without the division by lengths and temperature.
    VonMisesFisher : The cosine with a temperature that is learned for each sample.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.similarity import Cosine
    >>> Cosine(temperature=0.5)(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0], [3.0, 4.0]]))
    tensor([[1.2000, 2.0000]])
    """

    _parameter_constraints: dict = {"temperature": interval(1e-30, 1e30, "both")}

    def __init__(self, temperature: Number = 0.5):
        self.temperature = temperature

    def bounds(self, width: int) -> tuple[float, float]:
        """Return the scores of opposite and of equal directions, (−1/t, 1/t)."""
        temperature = current_value(self.temperature)
        return -1 / temperature, 1 / temperature

    def embed(self, z: Tensor) -> Tensor:
        """Return `z` scaled to length 1/√t, so that scores are plain dot products."""
        kept, divisor, _ = with_divisor(z)
        return kept / (divisor * math.sqrt(current_value(self.temperature)))


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
