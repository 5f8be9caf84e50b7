"""ResNet: shapes, parameters, stems, as published."""

import pytest
import torch

from skcontrast.encoders import ResNet
from tests.encoders.common import n_parameters, random_batch, seeded


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
