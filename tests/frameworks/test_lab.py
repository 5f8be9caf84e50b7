"""The colour space CIELAB."""

import pytest
import torch

from skcontrast.frameworks._lab import rgb_to_lab


@pytest.mark.parametrize(
    "rgb, lab",
    [
        ((0, 0, 0), (0, 0, 0)),
        ((255, 255, 255), (100, 0, 0)),
        ((255, 0, 0), (53.24, 80.09, 67.20)),
        ((0, 255, 0), (87.73, -86.18, 83.18)),
        ((0, 0, 255), (32.30, 79.19, -107.86)),
        ((119, 119, 119), (50.03, 0, 0)),
        ((1, 1, 1), (0.27, 0, 0)),
    ],
)
def test_rgb_to_lab(rgb, lab):
    image = torch.tensor(rgb, dtype=torch.uint8).view(1, 3, 1, 1).expand(2, 3, 4, 5)
    expected = torch.tensor(lab, dtype=torch.float32).view(1, 3, 1, 1).expand(2, 3, 4, 5)
    torch.testing.assert_close(rgb_to_lab(image), expected, rtol=0, atol=0.02)
    as_float = (image / 255).requires_grad_()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        converted = rgb_to_lab(as_float)
    torch.testing.assert_close(converted, rgb_to_lab(image))
    converted.sum().backward()
    assert as_float.grad.isfinite().all()
