"""ConvNet: blocks and cells."""

import pytest
import torch
from torch import nn

from skcontrast.encoders import ConvNet, ResNet
from tests.encoders.common import n_parameters, random_batch, same_state, seeded

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


# ResNet


@pytest.mark.parametrize(
    "depth, published", [(18, 11_689_512), (34, 21_797_672), (50, 25_557_032)]
)
def test_resnets_have_the_published_number_of_parameters(depth, published):
    encoder = ResNet(depth=depth, stem="imagenet")
    with torch.device("meta"):
        classifier = encoder.build((3, 224, 224), 1000)
        headless = encoder.build((3, 224, 224))
    features = 2048 if depth == 50 else 512
    assert n_parameters(classifier) == published
    assert n_parameters(headless) == published - 1000 * (features + 1)


def test_cifar_stem_only_replaces_the_first_convolution():
    with torch.device("meta"):
        counts = [
            n_parameters(ResNet(stem=stem).build((3, 32, 32))) for stem in ("imagenet", "cifar")
        ]
    assert counts[0] - counts[1] == 3 * 64 * (7 * 7 - 3 * 3)


@pytest.mark.parametrize("stem, side", [("cifar", 4), ("imagenet", 1)])
def test_resnet_reduces_32_pixels_by_8_after_the_cifar_stem_and_by_32_after_imagenets(stem, side):
    module = seeded(ResNet(stem=stem, width=4), (3, 32, 32)).eval()
    maps = []
    module.layer4.register_forward_hook(lambda layer, args, output: maps.append(output))
    module(torch.zeros(1, 3, 32, 32))
    assert maps[0].shape == (1, 32, side, side)


def test_resnet_parameters_have_the_names_of_torchvision():
    names = set(seeded(ResNet(depth=50, width=4), (3, 8, 8), 2).state_dict())
    assert {
        "conv1.weight",
        "bn1.running_mean",
        "layer1.0.downsample.0.weight",
        "layer3.5.conv3.weight",
        "layer4.2.bn3.bias",
        "fc.weight",
    } <= names


@pytest.mark.parametrize("depth", [18, 34, 50])
def test_each_block_begins_as_the_rectified_shortcut(depth):
    module = seeded(ResNet(depth=depth, width=4), (3, 8, 8))
    block, x = module.layer2[1], random_batch(4, (4 * 2 * (4 if depth == 50 else 1), 4, 4))
    assert torch.equal(block(x), x.relu())
