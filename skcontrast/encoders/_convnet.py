"""Convolutional networks: on pixels, for small images, and on dictionaries of patches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from torch import Tensor, nn

from .._checks import POSITIVE_INT, parameter
from .._layers._images import (
    GridMeans,
    Octaves,
    PatchLayer,
    average_to,
    bounded_grid,
    octave_sides,
    reduced_sides,
)
from ._base import LAYER_WIDTHS, Encoder, check_build, epochs_of, init_kaiming, last_layer

# A side is halved only if at least this many pixels remain.
_SMALLEST_SIDE = 4
# From this many pixels on, images have a third block, which only helps if two poolings leave more
# than a few pixels, and the grid of the last map is the representation. Smaller images, whose grid
# is little else than a copy of them, gain by a linear layer after it.
_LARGE_SIDE = 16
_WIDTHS = (32, 64, 128)
_SMALL_GRID, _LARGE_GRID = 2, 4
_SMALL_COMPONENTS = 128
# Soft threshold of the code of a patch.
_THRESHOLD = 1.0
# The layers read each second patch of each second row, and 2×2 of their codes averaged: with
# all patches, 3×3 averaged, a fit took a third longer and was no better. Along a side of an octave
# about this many patches begin. The codes of several octaves are averaged to one grid. The grid
# of elongated images of one octave has no more cells than that of 47×47 pixels.
_STRIDE, _PLACES, _GRID, _MOST_CELLS = 2, 22, 5, 100
# Groups of channels in each block after the first, as in ResNeXt: a fit takes a third less.
_GROUPS = 4


class ConvNet(Encoder):
    """A small convolutional network: the default encoder of images of fewer than 24 pixels.

    Each block is a 3×3 convolution, normalised over the batch and rectified. Between two blocks
    a max-pooling halves each side of 8 pixels or more, so that small images are not pooled away.
    The last map is averaged to a small grid, which is the representation of images of 16 pixels
    or more on their shorter side: what the loss gets is the projection head's, so that nothing of
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
    PatchNet : The default encoder of images of 24 pixels or more.
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
    _channels_last = True
    widths: Sequence[int] | None = parameter([LAYER_WIDTHS, None], default=None)
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
        channels, *sides = sample_shape
        is_large = min(sides) >= _LARGE_SIDE
        widths = _WIDTHS[: 3 if is_large else 2] if self.widths is None else self.widths
        layers, sides = _blocks(channels, sides, widths, is_normal=self.batch_norm)
        if n_components is None and not is_large:
            n_components = _SMALL_COMPONENTS
        grid = self._grid(sides, is_large)
        return nn.Sequential(*layers, *_read_out(widths[-1], sides, grid, n_components))

    def _grid(self, sides: Sequence[int], is_large: bool) -> int:
        """Return the rows and columns of the grid; where they divide a map, it has no overlaps."""
        if self.pool_size is not None:
            return self.pool_size
        if not is_large:
            return _SMALL_GRID
        divides = all(side % _LARGE_GRID == 0 for side in sides)
        return _LARGE_GRID if divides else _LARGE_GRID - 1


class PatchNet(Encoder):
    """A convolutional network on dictionaries of patches: the default from 24 pixels on.

    The first layer compares the patches of an image with patches of the training images, see
    :class:`~skcontrast.features.PatchDictionary` [1]_, and is not trained by gradient. Images of
    48 pixels or more are compared at several octaves, each with its own dictionary: their own
    size, half of it, and so on down to 24 pixels or more. The codes of all octaves are averaged to
    a common grid. Then come blocks of a 3×3 convolution, normalised over the batch and rectified.
    The last map, averaged to a small grid, is the representation.

    Parameters
    ----------
    n_patches : int, default=128
        Patches in the dictionary; those of several octaves have equal shares of them.
    patch_size : int, default=6
        Height and width of a patch in pixels; at most the side of an image.
    widths : tuple of int, default=(128, 128)
        Number of channels of each block, one block or more.
    pool_size : int, default=3
        Rows and columns of the grid to which the last map is averaged, at most those of the map.
    largest_side : int, default=96
        Images of more pixels than a square of this side are reduced to as many, before their views
        are drawn and before the network, so that the cost is bounded. Where the shorter side would
        have less than half of this, the longer one shrinks alone. None leaves them as they are.

    See Also
    --------
    ConvNet : Learns its first layer too: the default of smaller images.
    ResNet : Learns all of its layers, which takes many more images and much longer.
    skcontrast.features.PatchDictionary : The dictionary alone, as a transformer.

    References
    ----------
    .. [1] A. Coates, A. Y. Ng, "Learning Feature Representations with K-Means", Neural Networks:
       Tricks of the Trade, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.encoders import PatchNet
    >>> X = np.random.default_rng(0).uniform(size=(40, 3, 16, 16))
    >>> encoder = PatchNet(n_patches=16, widths=(8,))
    >>> ContrastiveEmbedder(encoder, max_epochs=1, random_state=0).fit_transform(X).shape
    (40, 72)
    """

    kind = "images"
    _channels_last = True
    n_patches: int = parameter(POSITIVE_INT, default=128)
    patch_size: int = parameter(POSITIVE_INT, default=6)
    widths: Sequence[int] = parameter([LAYER_WIDTHS], default=(128, 128))
    pool_size: int = parameter(POSITIVE_INT, default=3)
    largest_side: int | None = parameter(  # type: ignore[misc]
        [*POSITIVE_INT, None], default=96
    )

    def build(self, sample_shape: tuple, n_components: int | None = None) -> nn.Module:
        """Return a new network for images of shape `sample_shape`, with an empty dictionary.

        The weights are drawn from torch's global random state.

        Parameters
        ----------
        sample_shape : tuple of int
            ``(channels, height, width)``.
        n_components : int or None, default=None
            Width of the representation, which a last linear layer gives. None leaves this layer
            out; the width is then the last of `widths` times ``pool_size**2``.

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
        codes, n_codes, sides = self._codes(*sample_shape)
        layers, sides = _blocks(n_codes, sides, self.widths, is_normal=True, n_groups=_GROUPS)
        last = _read_out(self.widths[-1], sides, self.pool_size, n_components)
        return nn.Sequential(codes, nn.BatchNorm2d(n_codes), *layers, *last)

    def _codes(self, channels: int, *whole: int) -> tuple[Octaves, int, list[int]]:
        """Return the codes of all octaves on a common grid, their number, and the grid's sides."""
        # All octaves share the patches that were asked for. In larger ones these lie further
        # apart, so that no octave takes much longer than another.
        octaves = octave_sides(*whole)
        n_patches = max(1, self.n_patches // len(octaves))
        layers = []
        for sides in octaves:
            height, width = (min(int(self.patch_size), side) for side in sides)
            stride = max(_STRIDE, min(sides) // _PLACES)
            layers.append(PatchLayer(n_patches, (channels, height, width), _THRESHOLD, stride))
        # The last octave is the smallest, and the others are averaged to its cells.
        grid = layers[-1].map_sides(octaves[-1])
        if len(octaves) > 1:
            grid = [min(_GRID, side) for side in grid]
        else:
            halved = [side // 2 if side >= 2 * _SMALLEST_SIDE else side for side in grid]
            grid = bounded_grid(halved, _MOST_CELLS)
        maps = [
            nn.Sequential(layer, GridMeans(grid, layer.map_sides(sides)))
            for layer, sides in zip(layers, octaves, strict=True)
        ]
        return Octaves(maps), n_patches * len(octaves), grid

    def learn(self, module: nn.Module, batch: Tensor, rng: np.random.RandomState) -> None:
        """Fill the dictionaries with patches of training images; see `Encoder.learn`."""
        cast(Any, module)[0].learn(batch, rng)

    def octaves(self, sides: Sequence[int]) -> list[tuple[int, int]]:
        """Return the sizes at which images are compared with a dictionary each.

        Parameters
        ----------
        sides : sequence of int
            Height and width of the images.

        Returns
        -------
        octaves : list of tuple (int, int)
            The height and width that are read, half of them, and so on.
        """
        return octave_sides(*reduced_sides(sides, self.largest_side))

    def pace(self, n_batches: int, sides: Sequence[int] | None = None) -> tuple[float, int]:
        """Return a rate of .002, and 800 steps for few images, if there are several octaves.

        These steps take up to 160 epochs. All else is as of any encoder, see `Encoder.pace`.
        """
        lr, n_epochs = super().pace(n_batches)
        if sides is None or len(self.octaves(sides)) == 1:
            return lr, n_epochs
        return 2 * lr, max(n_epochs, epochs_of(800, n_batches, fewest=1, most=160))


def _blocks(
    channels: int, sides: list[int], widths: Sequence[int], *, is_normal: bool, n_groups: int = 1
) -> tuple[list[nn.Module], list[int]]:
    """Return 3×3 convolutions, normalised over the batch and rectified, and the sides after them.

    A max-pooling before each but the first halves each side of 8 pixels or more; each but the
    first has groups of channels.
    """
    layers: list[nn.Module] = []
    for place, width in enumerate(widths):
        steps = tuple(2 if place and side >= 2 * _SMALLEST_SIDE else 1 for side in sides)
        sides = [side // step for side, step in zip(sides, steps, strict=True)]
        layers += [nn.MaxPool2d(steps)] if max(steps) > 1 else []
        groups = math.gcd(n_groups, channels, width) if place else 1
        conv = nn.Conv2d(channels, width, 3, padding=1, bias=not is_normal, groups=groups)
        normal = [nn.BatchNorm2d(width)] if is_normal else []
        layers += [init_kaiming(conv), *normal, nn.ReLU(inplace=True)]
        channels = width
    return layers, sides


def _read_out(
    channels: int, sides: Sequence[int], grid: int, n_components: int | None
) -> list[nn.Module]:
    """Return the average over a grid of cells, as a row, and the last layer."""
    cells = [min(side, grid) for side in sides]
    last = last_layer(channels * cells[0] * cells[1], n_components)
    return [average_to(cells, sides), nn.Flatten(), last]
