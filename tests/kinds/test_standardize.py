"""The layer that standardises vectors and images."""

import pytest
import torch

from skcontrast.kinds._standardize import Standardize, channel_statistics


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_channels_get_zero_mean_and_unit_variance(dtype):
    generator = torch.Generator().manual_seed(0)
    images = torch.randint(0, 256, (50, 3, 6, 5), generator=generator).to(torch.uint8)
    if dtype == torch.float32:
        images = images / 255
    out = Standardize(*channel_statistics(images))(images)
    torch.testing.assert_close(out.mean((0, 2, 3)), torch.zeros(3), atol=1e-5, rtol=0)
    torch.testing.assert_close(out.std((0, 2, 3)), torch.ones(3), atol=1e-3, rtol=0)


def test_constant_channels_become_zero():
    images = torch.full((4, 1, 3, 3), 0.5)
    assert Standardize(*channel_statistics(images))(images).abs().max() == 0


def test_input_is_not_changed():
    x = torch.ones(3, 2)
    Standardize(torch.ones(2), torch.ones(2))(x)
    assert x.equal(torch.ones(3, 2))
