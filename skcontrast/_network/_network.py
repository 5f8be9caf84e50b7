"""The trained network: encoder and projection head, and what is passed on of its output."""

from __future__ import annotations

from torch import nn


class Network(nn.Module):
    """Encoder and projection head: (n, ...) → (n, projection_dim)."""

    def __init__(self, encoder, projector):
        super().__init__()
        self.encoder = encoder
        self.projector = projector

    def forward(self, x):
        return self.projector(self.encoder(x))


class Directions(nn.Module):
    """What ``transform`` hands out of projections: for most similarities, the projections.

    Parameters
    ----------
    similarity : Similarity
        Its ``directions`` is applied to each part.
    n_parts : int
        How many projections stand side by side.
    """

    def __init__(self, similarity, n_parts):
        super().__init__()
        self.similarity, self.n_parts = similarity, n_parts

    def forward(self, z):
        """Map (..., n_parts · (d + n_extra)) to (..., n_parts · d)."""
        return self.similarity.directions(z.unflatten(-1, (self.n_parts, -1))).flatten(-2)
