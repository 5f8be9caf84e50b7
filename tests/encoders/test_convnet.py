"""ConvNet: blocks and cells."""

import pytest
import torch
from torch import nn

from skcontrast.encoders import ConvNet
from tests.encoders.common import same_state, seeded


@pytest.mark.parametrize("side, cells", [(1, 1), (3, 2), (4, 2), (7, 2), (8, 2), (28, 2), (33, 2)])
def test_convnet_keeps_at_most_two_by_two_cells_and_pools_no_side_below_four(side, cells):
    module = seeded(ConvNet(widths=(2, 3, 4, 5, 6)), (1, side, side))
    smallest = min(
        module[:index](torch.zeros(2, 1, side, side)).shape[-1]
        for index, layer in enumerate(module)
        if isinstance(layer, nn.Conv2d)
    )
    assert smallest >= min(side, 4)
    assert module[-1].in_features == 6 * cells**2


@pytest.mark.parametrize("shape, widths", [((1, 8, 8), (32, 64)), ((3, 16, 28), (32, 64, 128))])
def test_convnet_has_a_third_block_by_default_from_16_pixels(shape, widths):
    assert same_state(seeded(ConvNet(), shape), seeded(ConvNet(widths=widths), shape))
