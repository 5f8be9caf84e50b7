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
