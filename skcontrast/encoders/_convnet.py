"""The small convolutional network, for small images."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from .._checks import POSITIVE_INT, Numbers, parameter
from .._layers._pooling import average_to
from ._base import Encoder, check_build, init_kaiming

# A side is halved only if at least this many pixels remain.
SMALLEST_SIDE = 4
# From so many pixels on, images have a third block, which only helps if two poolings leave more
# than a few pixels, and the grid of the last map is the representation. Smaller images, whose grid
# is little else than a copy of them, gain by a linear layer after it.
_LARGE_SIDE = 16
_WIDTHS = (32, 64, 128)
_SMALL_GRID, _LARGE_GRID = 2, 4
_SMALL_COMPONENTS = 128


class ConvNet(Encoder):
    """A small convolutional network: the default encoder of images of fewer than 16 pixels.

    Each block is a 3×3 convolution, normalised over the batch and rectified. Between two blocks
    a max-pooling halves each side of 8 pixels or more, so that small images are not pooled away.
    The last map is averaged to a small grid, which is the representation of images of 16 pixels
    or more on their shorter side: what the loss sees is the projection head's, so that nothing of
    the grid need be lost. For smaller images, or if a width is asked for, a linear layer follows.

    Parameters
    ----------
    widths : tuple of int, default=None
        Number of channels of each block, one block or more. None is (32, 64) for images of fewer
        than 16 pixels on their shorter side, and (32, 64, 128) for larger ones.
    batch_norm : bool, default=True
        Whether the blocks are normalised over the batch.
    pool_size : int, default=None
        Rows and columns of the grid to which the last map is averaged, at most those of the map.
        None is 2 for images of fewer than 16 pixels on their shorter side, and 4, or 3 if the
        map's sides are not divisible by 4, for larger ones.

    See Also
    --------
    PatchNet : The default encoder of images of 16 pixels or more.
    ResNet : A deeper one, for many images.
    MLP : Encodes images as vectors.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.encoders import ConvNet
    >>> ConvNet(widths=(8, 16)).build((1, 8, 8))(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 128])
    """

    kind = "images"
    widths: Sequence[int] | None = parameter(
        [Numbers(POSITIVE_INT[0], min_length=1), None], default=None
    )
    batch_norm: bool = parameter(["boolean"], default=True)
    pool_size: int | None = parameter([*POSITIVE_INT, None], default=None)

    def build(self, sample_shape: tuple, n_components: int | None = None) -> nn.Module:
        """Return a new network for images of shape `sample_shape`.

        The weights are drawn from torch's global random state.

        Parameters
        ----------
        sample_shape : tuple of int
            ``(channels, height, width)``; one pixel is enough.
        n_components : int or None, default=None
            Width of the representation, which a last linear layer gives. None leaves this layer
            out for images of 16 pixels or more, whose width is then that of the grid, the last of
            `widths` times ``pool_size**2``; it is 128 for smaller images.

        Returns
        -------
        module : torch.nn.Module
            Maps a float32 batch (n, channels, height, width) to a batch (n, n_components).

        Raises
        ------
        ValueError
            If a hyperparameter is outside its range, or the samples are not images.
        """
        check_build(self, sample_shape, n_components)
        layers: list[nn.Module] = []
        channels, *sides = sample_shape
        is_large = min(sides) >= _LARGE_SIDE
        widths = _WIDTHS[: 3 if is_large else 2] if self.widths is None else self.widths
        for index, width in enumerate(widths):
            if index > 0:
                sides = pool(layers, sides)
            layers += block(channels, width, batch_norm=self.batch_norm)
            channels = width
        if n_components is None and not is_large:
            n_components = _SMALL_COMPONENTS
        layers += read_out(channels, sides, self._grid(sides, is_large), n_components)
        return nn.Sequential(*layers)

    def _grid(self, sides: Sequence[int], is_large: bool) -> int:
        """Return the rows and columns of the grid; where they divide a map, it has no overlaps."""
        if self.pool_size is not None:
            return self.pool_size
        if not is_large:
            return _SMALL_GRID
        divides = all(side % _LARGE_GRID == 0 for side in sides)
        return _LARGE_GRID if divides else _LARGE_GRID - 1


def block(
    channels: int, width: int, *, batch_norm: bool = True, groups: int = 1
) -> list[nn.Module]:
    """Return a 3×3 convolution, in groups, normalised over the batch, and rectified."""
    convolution = nn.Conv2d(channels, width, 3, padding=1, bias=not batch_norm, groups=groups)
    normal = [nn.BatchNorm2d(width)] if batch_norm else []
    return [init_kaiming(convolution), *normal, nn.ReLU(inplace=True)]


def pool(layers: list[nn.Module], sides: Sequence[int]) -> list[int]:
    """Add a max-pooling that halves each side of 8 pixels or more; return the sides after it."""
    steps = tuple(2 if side >= 2 * SMALLEST_SIDE else 1 for side in sides)
    if max(steps) > 1:
        layers.append(nn.MaxPool2d(steps))
    return [side // step for side, step in zip(sides, steps, strict=True)]


def read_out(
    channels: int, sides: Sequence[int], grid: int, n_components: int | None
) -> list[nn.Module]:
    """Return the average over a grid of cells, as a row, and a linear layer if it has a width."""
    cells = [min(side, grid) for side in sides]
    layers = [average_to(cells, sides), nn.Flatten()]
    if n_components is not None:
        last = nn.Linear(channels * cells[0] * cells[1], n_components)
        layers.append(init_kaiming(last, "linear"))
    return layers
