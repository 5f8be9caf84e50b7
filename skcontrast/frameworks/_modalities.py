"""Layers that split samples into modalities, with an encoder for each modality."""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from torch import Tensor, nn

from .._data._modalities import MultimodalBatch


class Split(nn.Module):
    """Split of the features of vectors, or the channels of images, into modalities.

    Parameters
    ----------
    columns : sequence of Tensor of shape (k,), dtype int64
        Features or channels of each modality.
    sample_shape : tuple of int
        Shape of one sample.
    convert : torch.nn.Module, default=None
        Applied to the samples before they are standardised and split.

    Attributes
    ----------
    shapes : list of tuple
        Shape of a sample of each modality.
    """

    def __init__(
        self, columns: Sequence[Tensor], sample_shape: tuple, convert: nn.Module | None = None
    ):
        super().__init__()
        for position, selected in enumerate(columns):
            self.register_buffer(f"columns_{position}", selected)
        self.convert = nn.Identity() if convert is None else convert
        self.shapes = [(len(selected), *sample_shape[1:]) for selected in columns]

    @property
    def columns(self) -> list[Tensor]:
        """Features or channels of each modality."""
        return [self.get_buffer(f"columns_{position}") for position in range(len(self.shapes))]

    @property
    def is_of_channels(self) -> bool:
        """Whether the modalities are features or channels of X itself, without conversion."""
        return isinstance(self.convert, nn.Identity)

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        """Return the modalities of samples x of shape (n, ...)."""
        return tuple(x.index_select(1, columns) for columns in self.columns)


class NoSplit(nn.Module):
    """Modalities of samples that have a batch for each modality."""

    def forward(self, x: MultimodalBatch) -> tuple:
        """Return the batch of each modality."""
        return x.modalities


AnySplit: TypeAlias = Split | NoSplit | None


class ParallelNetworks(nn.Module):
    """A network for each modality; their outputs are concatenated.

    Parameters
    ----------
    split : callable
        Returns the modalities of a batch.
    networks : list of torch.nn.Module
        One for each modality.
    """

    def __init__(self, split: Callable, networks: Sequence[nn.Module]):
        super().__init__()
        self.split, self.networks = split, nn.ModuleList(networks)

    def forward(self, x: Tensor | MultimodalBatch) -> Tensor:
        """Return all networks' outputs for x, shape (n, sum of their widths)."""
        pairs = zip(self.networks, self.split(x), strict=True)
        return torch.cat([network(batch) for network, batch in pairs], 1)


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
    weights = x.new_tensor(_TO_XYZ) / x.new_tensor(_WHITE)[:, None]
    t = (x[:, None] * weights[:, :, None, None]).sum(2)
    # Below the knee the root is not used, but its infinite slope at 0 would make gradients NaN.
    root = t.clamp_min(_KNEE**3) ** (1 / 3)
    f = torch.where(t > _KNEE**3, root, t / (3 * _KNEE**2) + 4 / 29)
    lightness, red_green = 116 * f[:, 1] - 16, 500 * (f[:, 0] - f[:, 1])
    return torch.stack([lightness, red_green, 200 * (f[:, 1] - f[:, 2])], 1)


class Lab(nn.Module):
    """`rgb_to_lab` as a layer."""

    def forward(self, x: Tensor) -> Tensor:
        """Convert x of shape (n, 3, height, width)."""
        return rgb_to_lab(x)
