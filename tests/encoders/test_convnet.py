"""ConvNet: blocks and cells."""

import pytest
import torch
from torch import nn

from skcontrast.encoders import ConvNet
from tests.encoders.common import same_state, seeded

SIDES = [(1, 1), (3, 2), (4, 2), (7, 2), (8, 2), (15, 2), (16, 4), (28, 3), (32, 4), (33, 4)]


def blocks(module, side):
    """Return the output of the convolutional blocks, and of the pooling after them."""
    pooling = max(i for i, layer in enumerate(module) if isinstance(layer, nn.AvgPool2d))
    x = module[:pooling](torch.rand(2, 1, side, side))
    return x, module[pooling](x)


def test_convnet_averages_to_a_grid_and_pools_no_side_below_four():
    for side, cells in SIDES:
        last, grid = blocks(seeded(ConvNet(), (1, side, side)), side)
        assert last.shape[-1] >= min(side, 4)
        assert grid.shape[-2:] == (cells, cells)


def test_every_cell_of_the_last_map_is_in_the_grid():
    for side in [5, 9, 28, 33, 38]:
        for pool_size in [1, 2, 3, 4, 5]:
            module = seeded(ConvNet(pool_size=pool_size, widths=(2, 3)), (1, side, side))
            pooling = next(layer for layer in module if isinstance(layer, nn.AvgPool2d))
            last, _ = blocks(module, side)
            last = last.detach().requires_grad_()
            pooling(last).sum().backward()
            assert (last.grad > 0).all()
            assert pooling(last).shape[-1] == min(pool_size, last.shape[-1])


def test_n_components_adds_a_linear_layer_to_the_grid():
    with_layer = ConvNet().build((1, 28, 28), 7)
    assert with_layer(torch.zeros(2, 1, 28, 28)).shape == (2, 7)
    assert with_layer[-1].in_features == 128 * 3**2


@pytest.mark.parametrize("shape, widths", [((1, 8, 8), (32, 64)), ((3, 16, 28), (32, 64, 128))])
def test_convnet_has_a_third_block_by_default_from_16_pixels(shape, widths):
    assert same_state(seeded(ConvNet(), shape), seeded(ConvNet(widths=widths), shape))
