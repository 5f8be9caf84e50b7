"""The convolutional network on dictionaries of patches, for images of any size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from torch import Tensor, nn

from .._checks import POSITIVE_INT, Numbers, parameter
from .._layers._patches import Octaves, PatchLayer, octave_sides
from ._base import Encoder, check_build
from ._convnet import SMALLEST_SIDE, block, pool, read_out

# Soft threshold of the code of a patch.
_THRESHOLD = 1.0
# What is learned sees each second patch of each second row, and 2×2 of their codes averaged: with
# all patches, 3×3 averaged, a fit took a third longer and was no better. Along a side of an octave
# about so many patches begin, and the codes of several octaves are averaged to one grid.
_STRIDE, _PLACES, _GRID = 2, 22, 5
# Groups of channels in each block after the first, as in ResNeXt: a fit takes a third less.
_GROUPS = 4


class PatchNet(Encoder):
    """A convolutional network on dictionaries of patches: the default from 16 pixels on.

    The first layer compares the patches of an image with patches of the training images, see
    :class:`~skcontrast.features.PatchDictionary` [1]_, and is not trained by gradient. Images of
    48 pixels or more are compared at several octaves, each with its own dictionary: their own
    size, half of it, and so on down to 24 pixels or more. The codes of all octaves are averaged to
    a common grid. Then come blocks of a 3×3 convolution, normalised over the batch and rectified.
    The last map, averaged to a small grid, is the representation. The embedder's default has codes
    of such dictionaries and oriented gradients, which keep the detail that is lost on the way,
    beside it: ``Wide(PatchNet(), [PatchDictionary(128, grid=3), OrientedGradients()],
    weights=[0.5, 0.5])``, or weights of 2 and .5 where there are several octaves.

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
        are drawn and before the network, so that the cost is bounded; None leaves them as they
        are.

    See Also
    --------
    ConvNet : Learns its first layer too: the default of smaller images.
    ResNet : Learns all of its layers, which takes many more images and much longer.
    skcontrast.features.PatchDictionary : The dictionary alone, as a transformer.
    skcontrast.features.OrientedGradients : The gradients alone.

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
    n_patches: int = parameter(POSITIVE_INT, default=128)
    patch_size: int = parameter(POSITIVE_INT, default=6)
    widths: Sequence[int] = parameter([Numbers(POSITIVE_INT[0], min_length=1)], default=(128, 128))
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
        codes, last, sides = self._codes(*sample_shape)
        layers: list[nn.Module] = [codes, nn.BatchNorm2d(last)]
        for place, next_width in enumerate(self.widths):
            if place:
                sides = pool(layers, sides)
            groups = math.gcd(_GROUPS, last, next_width) if place else 1
            layers += block(last, next_width, groups=groups)
            last = next_width
        return nn.Sequential(*layers, *read_out(last, sides, self.pool_size, n_components))

    def _codes(self, channels: int, *whole: int) -> tuple[Octaves, int, list[int]]:
        """Return the codes of all octaves on a common grid, their number, and the grid's sides."""
        octaves = octave_sides(*whole)
        n_patches = max(1, self.n_patches // len(octaves))
        layers = []
        for sides in octaves:
            height, width = (min(int(self.patch_size), side) for side in sides)
            stride = max(_STRIDE, min(sides) // _PLACES)
            layers.append(PatchLayer(n_patches, (channels, height, width), _THRESHOLD, stride))
        grid = layers[-1].places(octaves[-1])
        if len(octaves) > 1:
            grid = [min(_GRID, side) for side in grid]
        else:
            grid = [side // 2 if side >= 2 * SMALLEST_SIDE else side for side in grid]
        # Windows that overlap by a pixel at most; its gradient, which is not always
        # deterministic, is not needed.
        maps = [nn.Sequential(layer, nn.AdaptiveAvgPool2d((grid[0], grid[1]))) for layer in layers]
        return Octaves(maps), n_patches * len(octaves), grid

    def learn(self, module: nn.Module, batch: Tensor, rng: np.random.RandomState) -> None:
        """Fill the dictionaries with patches of training images; see `Encoder.learn`."""
        cast(Any, module)[0].learn(batch, rng)
