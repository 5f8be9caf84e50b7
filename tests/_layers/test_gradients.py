"""GradientLayer: which way edges run, in each cell."""

import numpy as np
import torch

from skcontrast._layers._gradients import GradientLayer
from tests.common import images

X = torch.from_numpy(images(20, side=16).astype(np.float32) / 255)


def layer(n_orientations=8):
    return GradientLayer((16, 16), 4, n_orientations)


def test_a_negative_has_the_same_edges():
    assert torch.allclose(layer()(-X), layer()(X), atol=1e-5)


def test_a_turned_image_has_turned_cells_and_directions():
    turned = layer()(X.rot90(1, (2, 3)))
    assert torch.allclose(turned, layer()(X).rot90(1, (2, 3)).roll(4, 1), atol=1e-5)


def test_twice_the_contrast_hardly_matters():
    strong = 10 * X
    assert torch.allclose(layer()(2 * strong), layer()(strong), atol=0.02)


def test_an_upright_edge_has_the_first_direction_alone():
    edge = torch.zeros(1, 3, 16, 16)
    edge[:, 1, :, 6:] = 1  # in one of three channels
    found = layer()(edge)[0]
    assert (found[0, :, 1] > 0.5).all() and not found[1:].any()
    assert not found[:, :, [0, 2, 3]].any()


def test_an_even_image_has_no_edges():
    assert not layer()(torch.full((2, 3, 16, 16), 0.7)).any()
