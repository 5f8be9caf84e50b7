"""The small convolutional network, for small images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from torch import nn

from .._parameters import PositiveInts, validate_parameters
from ._base import Encoder, check_shape, init_kaiming

# A side is halved only if at least this many pixels remain, and averaged to `_GRID` at the end.
_SMALLEST_SIDE = 4
_GRID = 2
# The default blocks; the third one only helps if two poolings leave more than a few pixels.
_WIDTHS = (32, 64, 128)
_SIDE_FOR_ALL = 16


class ConvNet(Encoder):
    """A small convolutional network: the default encoder of images of up to 32 pixels.

    Each block is a 3×3 convolution, normalised over the batch and rectified. Between two blocks
    a max-pooling halves each side of 8 pixels or more, so that small images are not pooled away.
    The last map is averaged to at most 2×2 and a linear layer gives the representation.

    Parameters
    ----------
    widths : tuple of int, default=None
        Number of channels of each block, one block or more. None is (32, 64) for images of fewer
        than 16 pixels on their shorter side, and (32, 64, 128) for larger ones.
    batch_norm : bool, default=True
        Whether the blocks are normalised over the batch.

    See Also
    --------
    ResNet : The default encoder of larger images.
    MLP : Encodes images as vectors.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.encoders import ConvNet
    >>> ConvNet(widths=(8, 16)).build((1, 8, 8))(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 128])
    """

    kind = "images"
    _parameter_constraints: dict = {
        "widths": [PositiveInts(min_length=1), None],
        "batch_norm": ["boolean"],
    }

    def __init__(self, widths: Sequence[int] | None = None, batch_norm: bool = True):
        self.widths = widths
        self.batch_norm = batch_norm

    def build(self, sample_shape: tuple, n_components: int | None = None) -> nn.Module:
        """Return a new network for images of shape `sample_shape`.

        The weights are drawn from torch's global random state.

        Parameters
        ----------
        sample_shape : tuple of int
            ``(channels, height, width)``; one pixel is enough.
        n_components : int or None, default=None
            Width of the representation; None means 128.

        Returns
        -------
        module : torch.nn.Module
            Maps a float32 batch (n, channels, height, width) to a batch (n, n_components).

        Raises
        ------
        ValueError
            If a hyperparameter lies outside its range, or the samples are not images.
        """
        validate_parameters(self)
        check_shape(self, sample_shape)
        layers: list[nn.Module] = []
        channels, *sides = sample_shape
        widths = self.widths or _WIDTHS[: 2 if min(sides) < _SIDE_FOR_ALL else 3]
        for index, width in enumerate(widths):
            if index > 0:
                steps = tuple(2 if side >= 2 * _SMALLEST_SIDE else 1 for side in sides)
                layers += [nn.MaxPool2d(steps)] if max(steps) > 1 else []
                sides = [side // step for side, step in zip(sides, steps, strict=True)]
            layers += self._block(channels, width)
            channels = width
        cells = [min(side, _GRID) for side in sides]
        layers += [_average_to(cells, sides), nn.Flatten()]
        last = nn.Linear(
            channels * cells[0] * cells[1], 128 if n_components is None else n_components
        )
        return nn.Sequential(*layers, init_kaiming(last, "linear"))

    def _block(self, channels: int, width: int) -> Iterator[nn.Module]:
        yield init_kaiming(nn.Conv2d(channels, width, 3, padding=1, bias=not self.batch_norm))
        if self.batch_norm:
            yield nn.BatchNorm2d(width)
        yield nn.ReLU(inplace=True)


def _average_to(cells: Sequence[int], sides: Sequence[int]) -> nn.Module:
    """Return the average pooling from a map of `sides` pixels to one of `cells` pixels.

    It equals AdaptiveAvgPool2d, but has a deterministic gradient on every device.
    """
    kernel = tuple(-(-side // cell) for side, cell in zip(sides, cells, strict=True))
    stride = tuple(side // cell for side, cell in zip(sides, cells, strict=True))
    return nn.AvgPool2d(kernel, stride)
