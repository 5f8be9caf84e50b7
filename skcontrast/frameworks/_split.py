"""Two parts of every sample, each with an encoder of its own."""

from __future__ import annotations

import torch
from torch import nn

__all__ = ["Lab", "Parts", "Split", "rgb_to_lab"]

# Linear sRGB to CIE XYZ, IEC 61966-2-1, and the white point D65.
_TO_XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
_WHITE = (0.95047, 1.0, 1.08883)
_KNEE = 6 / 29


def rgb_to_lab(images):
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
    # No matrix product: autocast would take it in half precision.
    t = torch.stack(
        [
            sum(weight * x[:, c] for c, weight in enumerate(row)) / white
            for row, white in zip(_TO_XYZ, _WHITE, strict=True)
        ],
        1,
    )
    # The root of the smaller ones is not used, but its slope at 0 would be infinite.
    root = t.clamp_min(_KNEE**3) ** (1 / 3)
    f = torch.where(t > _KNEE**3, root, t / (3 * _KNEE**2) + 4 / 29)
    return torch.stack(
        [116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1]), 200 * (f[:, 1] - f[:, 2])], 1
    )


class Lab(nn.Module):
    """`rgb_to_lab` as a layer."""

    def forward(self, x):
        return rgb_to_lab(x)


class Split(nn.Module):
    """Which features of a vector, or channels of an image, belong to which of two parts.

    Parameters
    ----------
    first, second : Tensor of shape (k,), dtype int64
        Features or channels of the parts.
    sample_shape : tuple of int
        Shape of one sample.
    convert : torch.nn.Module, default=None
        Applied to the samples before they are standardised and split.
    """

    def __init__(self, first, second, sample_shape, convert=None):
        super().__init__()
        self.register_buffer("first", first)
        self.register_buffer("second", second)
        self.convert = nn.Identity() if convert is None else convert
        self.shapes = [(len(part), *sample_shape[1:]) for part in (first, second)]

    @property
    def is_of_channels(self):
        """Whether the parts are features or channels of the samples as they are."""
        return isinstance(self.convert, nn.Identity)

    @property
    def border(self):
        """Where the second part begins, None if the first are not the first features."""
        n = len(self.first)
        return n if self.is_of_channels and self.first.tolist() == list(range(n)) else None

    def forward(self, x):
        """Return the parts of x, shape (n, ...)."""
        return x.index_select(1, self.first), x.index_select(1, self.second)


class Parts(nn.Module):
    """Two networks side by side, each for a part; what they return is concatenated.

    Parameters
    ----------
    split : callable
        Returns the two parts of a batch.
    networks : list of torch.nn.Module
        One for each part.
    """

    def __init__(self, split, networks):
        super().__init__()
        self.split, self.networks = split, nn.ModuleList(networks)

    def forward(self, x):
        """Return both networks' outputs of x, shape (n, sum of their widths)."""
        parts = self.split(x)
        return torch.cat([net(part) for net, part in zip(self.networks, parts, strict=True)], 1)


class Halves(nn.Module):
    """Cut vectors at a place."""

    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, h):
        """Return the first `width` numbers and the others."""
        return h[:, : self.width], h[:, self.width :]
