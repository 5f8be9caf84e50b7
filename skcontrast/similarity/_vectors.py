"""Similarities of vectors: the cosine, the dot product, and the Cauchy kernel of points."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .._checks import parameter
from ..schedules._numbers import Number, interval
from ._base import Similarity, inverse_length


class Cosine(Similarity):
    r"""Cosine of the angle between two embeddings, divided by a temperature.

    .. math:: s(z_1, z_2) = \frac{z_1 \cdot z_2}{t\,|z_1|\,|z_2|}

    Parameters
    ----------
    temperature : float or Schedule, default=0.5
        The temperature t in [1e-30, 1e30]. Scores are in [−1/t, 1/t]. With small values,
        the closest negatives dominate the loss.

    See Also
    --------
    DotProduct : The same without the division by lengths and temperature.
    VonMisesFisher : Learns a concentration for each sample.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.similarity import Cosine
    >>> Cosine(temperature=0.5)(torch.tensor([[3.0, 4.0]]), torch.tensor([[1.0, 0.0], [3.0, 4.0]]))
    tensor([[1.2000, 2.0000]])
    """

    temperature: Number = parameter(interval(1e-30, 1e30, "both"), default=0.5)

    def bounds(self, width: int) -> tuple[float, float]:
        """Return the scores of opposite and of equal directions, (−1/t, 1/t)."""
        temperature = self.temperature
        return -1 / temperature, 1 / temperature

    def embed(self, z: Tensor) -> Tensor:
        """Return `z` scaled to length 1/√t, so that scores are plain dot products."""
        return z * (inverse_length(z)[0] / math.sqrt(self.temperature))


class DotProduct(Similarity):
    r"""The plain dot product of two embeddings.

    .. math:: s(z_1, z_2) = z_1 \cdot z_2

    It is unbounded: with the contrastive objective, longer embeddings lower the loss.
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


class Cauchy(Similarity):
    r"""Logarithm of the Cauchy kernel, the similarity of t-SNE, for embeddings in the plane.

    .. math:: s(z_1, z_2) = -\log\left(1 + |z_1 - z_2|^2\right)

    It is the similarity of t-SNE, and with ``InfoNCE`` the objective of t-SimCNE [1]_: projections
    are points, not directions, so that those in two dimensions are a map of the samples, see
    :ref:`map`. The kernel has heavy tails, so that dissimilar samples may have moderate distances.
    Scores are at most 0 and have no lower bound, which ``PositiveDebiased`` requires.

    See Also
    --------
    Cosine : For representations in many dimensions.
    skcontrast.plotting.EmbeddingDisplay : Draws the map.

    References
    ----------
    .. [1] J. N. Böhm, P. Berens, D. Kobak, "Unsupervised visualization of image datasets using
       contrastive learning", ICLR 2023.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.similarity import Cauchy
    >>> Cauchy()(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([[-3.2581, -0.0000]])

    Projections in the plane:

    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> X = np.random.default_rng(0).normal(size=(100, 5))
    >>> embedder = ContrastiveEmbedder(
    ...     similarity=Cauchy(),
    ...     projection_dim=2,
    ...     output="projection",
    ...     max_epochs=1,
    ...     random_state=0,
    ... )
    >>> embedder.fit_transform(X).shape
    (100, 2)
    """

    def bounds(self, width: int) -> tuple[float, float]:
        """Return (−∞, 0)."""
        return -math.inf, 0.0

    def embed(self, z: Tensor) -> Tensor:
        """Return `z` and its squared length, shape (..., d + 1)."""
        return torch.cat([z, z.square().sum(-1, keepdim=True)], -1)

    def scores(self, u: Tensor, v: Tensor) -> Tensor:
        """Return the scores of all pairs."""
        squares = u[:, -1:] + v[:, -1] - 2 * u[:, :-1] @ v[:, :-1].T
        return -squares.clamp_min(0).log1p()  # may be negative by rounding

    def pairs(self, u: Tensor, v: Tensor) -> Tensor:
        """Return the scores of matching rows."""
        return -(u - v)[..., :-1].square().sum(-1).log1p()

    def bank_vectors(self, z: Tensor) -> Tensor:
        """Return `z` unchanged: points are averaged."""
        return z
