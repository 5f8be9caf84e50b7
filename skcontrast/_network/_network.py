"""The trained network, encoder and projection head, and the directions of its projections."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from ..similarity import Similarity


class Network(nn.Module):
    """Encoder and projection head: (n, ...) → (n, projection_dim)."""

    def __init__(self, encoder: nn.Module, projector: nn.Module):
        super().__init__()
        self.encoder = encoder
        self.projector = projector

    def forward(self, x: Any) -> Tensor:
        return self.projector(self.encoder(x))


class Directions(nn.Module):
    """The vectors that ``transform`` returns for projections: for most similarities, themselves.

    Parameters
    ----------
    similarity : Similarity
        Its ``directions`` is applied to each part.
    n_parts : int
        Number of projections that are side by side.
    """

    def __init__(self, similarity: Similarity, n_parts: int):
        super().__init__()
        self.similarity, self.n_parts = similarity, n_parts

    def forward(self, z: Tensor) -> Tensor:
        """Map (..., n_parts · (d + n_extra)) to (..., n_parts · d)."""
        return self.similarity.directions(z.unflatten(-1, (self.n_parts, -1))).flatten(-2)
