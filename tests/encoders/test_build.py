"""An encoder from a module, a callable or nothing; the memory format of convolutions."""

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast.encoders import MLP, ResNet, to_channels_last
from tests.common import small


class Views(nn.Module):
    """A convolution whose output is flattened in a way that channels-last tensors refuse."""

    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.convolution(x).view(len(x), -1)


def test_convolutions_run_channels_last_and_give_the_same():
    module = ResNet(width=8).build((3, 16, 16)).eval()
    x = torch.randn(5, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    expected = module(x)
    assert to_channels_last(module, (3, 16, 16))
    assert module.conv1.weight.is_contiguous(memory_format=torch.channels_last)
    actual = module(x.contiguous(memory_format=torch.channels_last))
    torch.testing.assert_close(actual, expected, rtol=1e-4, atol=1e-5)


def test_a_strided_convolution_of_few_channels_is_not_tried():
    """Its backward pass in channels-last format ends the process on some processors."""
    module = ResNet(width=4).build((3, 16, 16))
    assert not to_channels_last(module, (3, 16, 16))
    assert module.conv1.weight.is_contiguous()
    assert to_channels_last(ResNet(width=8).build((3, 16, 16)), (3, 16, 16))


def test_vectors_have_no_channels():
    assert not to_channels_last(MLP().build((5,)), (5,))


def test_a_module_that_needs_contiguous_tensors_keeps_them():
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, size=(20, 3, 6, 6), dtype=np.uint8)
    embedder = small(encoder=Views()).fit(images)
    assert embedder.transform(images).shape == (20, 64)
    assert embedder.encoder_[1].convolution.weight.is_contiguous()


class ViewsInTraining(Views):
    def forward(self, x):
        h = self.convolution(x)
        return h.view(len(x), -1) if self.training else h.flatten(1)


class FiveDimensional(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv3d(1, 4, 3)

    def forward(self, x):
        return self.convolution(x[:, None]).flatten(1)


@pytest.mark.parametrize("module", [ViewsInTraining, FiveDimensional])
def test_modules_that_cannot_be_brought_to_another_format_train(module):
    images = np.random.default_rng(0).integers(0, 256, size=(20, 3, 6, 6), dtype=np.uint8)
    assert np.isfinite(small(encoder=module()).fit_transform(images)).all()
