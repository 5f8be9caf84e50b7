"""The dot product: unbounded, and the embedding itself."""

import math

import torch

from skcontrast.similarity import Cosine, DotProduct
from tests.common import random_views


def test_is_the_dot_product_of_what_the_network_returns():
    u, v = random_views(5, 4)
    assert DotProduct().embed(u) is u
    torch.testing.assert_close(DotProduct()(u, v), u @ v.T)
    torch.testing.assert_close(DotProduct().pairs(u, v), (u @ v.T).diagonal())


def test_grows_with_the_length_of_both():
    u, v = random_views(5, 4)
    torch.testing.assert_close(DotProduct()(3 * u, 2 * v), 6 * DotProduct()(u, v))
    assert DotProduct().bounds(u.shape[1]) == (-math.inf, math.inf)


def test_of_directions_is_the_cosine():
    u, v = (torch.nn.functional.normalize(z, dim=1) for z in random_views(5, 4))
    torch.testing.assert_close(DotProduct()(u, v), Cosine(1.0)(u, v))
