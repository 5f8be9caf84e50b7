"""The convolutional network on a dictionary of patches, for small photographs and pictures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from torch import Tensor, nn

from .._checks import POSITIVE_INT, Numbers
from .._layers._patches import PatchLayer
from .._layers._pooling import average_to
from ._base import Encoder, check_build, init_kaiming
from ._convnet import block

# Soft threshold of the code of a patch.
_THRESHOLD = 1.0
# What is learned sees each second patch of each second row, and 2×2 of their codes averaged: with
# all patches, 3×3 averaged, a fit took a third longer and was no better.
_STRIDE = 2
# Groups of channels in each block after the first, as in ResNeXt: a fit takes a third less.
_GROUPS = 4
# A map is pooled only if at least this many pixels remain.
_SMALLEST_SIDE = 4


class PatchNet(Encoder):
    """A convolutional network on a dictionary of patches: the default for 16 to 32 pixels.

    The first layer compares each patch of an image with patches of the training images, see
    :class:`~skcontrast.features.PatchDictionary` [1]_, and is not trained by gradient. Then come
    blocks of a 3×3 convolution, normalised over the batch and rectified, on the average codes of
    four patches. The last map, averaged to a small grid, is the representation. The embedder's
    default has the codes of the dictionary and oriented gradients, which keep the detail that is
    lost on the way, beside it: ``Wide(PatchNet(), [PatchDictionary(128, grid=3),
    OrientedGradients()], weights=[0.5, 0.5])``.

    Parameters
    ----------
    n_patches : int, default=128
        Patches in the dictionary.
    patch_size : int, default=6
        Height and width of a patch in pixels; at most the side of an image.
    widths : tuple of int, default=(128, 128)
        Number of channels of each block, one block or more.
    pool_size : int, default=3
        Rows and columns of the grid to which the last map is averaged, at most those of the map.

    See Also
    --------
    ConvNet : Learns its first layer too: the default of smaller images.
    ResNet : The default encoder of larger images.
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
    _parameter_constraints: dict = {
        "n_patches": POSITIVE_INT,
        "patch_size": POSITIVE_INT,
        "widths": [Numbers(POSITIVE_INT[0], min_length=1)],
        "pool_size": POSITIVE_INT,
    }

    def __init__(
        self,
        n_patches: int = 128,
        patch_size: int = 6,
        widths: Sequence[int] = (128, 128),
        pool_size: int = 3,
    ):
        self.n_patches = n_patches
        self.patch_size = patch_size
        self.widths = widths
        self.pool_size = pool_size

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
        channels, *sides = sample_shape
        height, width = (min(self.patch_size, side) for side in sides)
        dictionary = PatchLayer(self.n_patches, (channels, height, width), _THRESHOLD, _STRIDE)
        sides = [(sides[0] - height) // _STRIDE + 1, (sides[1] - width) // _STRIDE + 1]
        layers: list[nn.Module] = [dictionary]
        last = self.n_patches
        for place, next_width in enumerate(self.widths):
            down, right = (2 if side >= 2 * _SMALLEST_SIDE else 1 for side in sides)
            if max(down, right) > 1:
                pool = nn.MaxPool2d if place else nn.AvgPool2d
                layers.append(pool((down, right)))
            sides = [sides[0] // down, sides[1] // right]
            layers += [] if place else [nn.BatchNorm2d(last)]
            groups = math.gcd(_GROUPS, last, next_width) if place else 1
            layers += block(last, next_width, groups=groups)
            last = next_width
        cells = [min(side, self.pool_size) for side in sides]
        layers += [average_to(cells, sides), nn.Flatten()]
        learned_width = last * cells[0] * cells[1]
        if n_components is not None:
            layers.append(init_kaiming(nn.Linear(learned_width, n_components), "linear"))
        return nn.Sequential(*layers)

    def learn(self, module: nn.Module, batch: Tensor, rng: np.random.RandomState) -> None:
        """Fill the dictionary with patches of training images; see `Encoder.learn`."""
        cast(Any, module)[0].learn(batch, rng)
