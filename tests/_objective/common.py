from __future__ import annotations

import torch

from skcontrast.similarity import Similarity


class NotBilinear(Similarity):
    """Negative squared distance: a similarity without a hand-written gradient."""

    def bounds(self, width):
        return -200.0, 0.0

    def embed(self, z):
        return z

    def scores(self, u, v):
        return -torch.cdist(u, v).square()

    def pairs(self, u, v):
        return -(u - v).square().sum(-1)


def slopes(expectation, d_value):
    """Return the gradient of an expectation with respect to the scores of its candidates."""
    sums = [part.value.clone().requires_grad_() for part in expectation.sums]
    d_sums = torch.autograd.grad(expectation.mean(sums), sums, d_value)
    return sum(
        part.factor * d_sum[:, None] * part.slope
        for part, d_sum in zip(expectation.sums, d_sums, strict=True)
        if part.slope is not None
    )
