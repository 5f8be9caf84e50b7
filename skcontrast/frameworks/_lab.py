"""The colour space CIE L*a*b*."""

from __future__ import annotations

import torch
from torch import Tensor, nn

# Linear sRGB to CIE XYZ, IEC 61966-2-1, and the white point D65.
_TO_XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
_WHITE = (0.95047, 1.0, 1.08883)
_KNEE = 6 / 29


def rgb_to_lab(images: Tensor) -> Tensor:
    r"""Convert sRGB images to CIE L*a*b* with the white point D65.

    With linear intensities :math:`X, Y, Z` relative to white and
    :math:`f(t) = t^{1/3}` for :math:`t > (6/29)^3`, else :math:`t / (3 (6/29)^2) + 4/29`,

    .. math:: L = 116 f(Y) - 16, \qquad a = 500 (f(X) - f(Y)), \qquad b = 200 (f(Y) - f(Z)).

    Parameters
    ----------
    images : Tensor of shape (n, 3, height, width)
        Red, green and blue, uint8 or floats in [0, 1].

    Returns
    -------
    lab : Tensor of shape (n, 3, height, width), floating
        L in [0, 100], a and b in about [−110, 110].
    """
    x = images / 255 if images.dtype == torch.uint8 else images
    x = x.clamp(0, 1)
    x = torch.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4)
    # Not as a matrix product, which autocast would compute in half precision.
    t = torch.stack(
        [
            sum(weight * x[:, c] for c, weight in enumerate(row)) / white
            for row, white in zip(_TO_XYZ, _WHITE, strict=True)
        ],
        1,
    )
    # Below the knee the root is not used, but its infinite slope at 0 would make gradients NaN.
    root = t.clamp_min(_KNEE**3) ** (1 / 3)
    f = torch.where(t > _KNEE**3, root, t / (3 * _KNEE**2) + 4 / 29)
    return torch.stack(
        [116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], 1
    )


class Lab(nn.Module):
    """`rgb_to_lab` as a layer."""

    def forward(self, x: Tensor) -> Tensor:
        """Convert x of shape (n, 3, height, width)."""
        return rgb_to_lab(x)
