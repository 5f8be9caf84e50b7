"""Distributions that the tests of the mutual likelihood score share."""

import torch
import torch.nn.functional as F

from skcontrast.similarity import VonMisesFisher


def some(n, d, kappa_max, *, dtype=torch.float64, seed=0):
    """Return directions and concentrations."""
    generator = torch.Generator().manual_seed(seed)
    mu = F.normalize(torch.randn(n, d, generator=generator, dtype=torch.float64), dim=1)
    kappa = kappa_max * torch.rand(n, generator=generator, dtype=torch.float64)
    return mu.to(dtype), kappa.to(dtype)


MU, KAPPA = torch.eye(3), torch.ones(3)
VMF = VonMisesFisher(1.0, kappa_max=10.0)
