"""Convolutional networks: on pixels, for small images, and on dictionaries of patches."""

import math
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Literal, cast

import numpy as np
from torch import Tensor, nn

from .._checks import POSITIVE_INT, Options, parameter
from .._layers._images import (
    GridMeans,
    Octaves,
    PatchLayer,
    average_to,
    bounded_grid,
    octave_sides,
    reduced_sides,
)
from ._base import LAYER_WIDTHS, Encoder, check_build, default_epochs, init_kaiming, last_layer

# A side is halved only if at least this many pixels remain.
_SMALLEST_SIDE = 4
# Images of this many pixels have a third block, and the grid of the last map is the
# representation. Smaller images gain by a linear layer after the grid.
_LARGE_SIDE = 16
_WIDTHS = (32, 64, 128)
_SMALL_GRID, _LARGE_GRID = 2, 4
_SMALL_COMPONENTS = 128
# The threshold of patch-dictionary features.
_THRESHOLD = 1.0
# Patches have a stride of 2, and means of 2×2 patches are the input: all patches, with means of
# 3×3, took a third longer and were no better. Then the number of patches along the side of an
# octave, the side of the common grid of several octaves, and the most cells of elongated images.
_STRIDE, _N_PATCHES, _GRID, _MOST_CELLS = 2, 22, 5, 100
# Groups of channels in each block after the first, as in ResNeXt: a fit takes a third less time.
_GROUPS = 4


class ConvNet(Encoder):
    """A small convolutional network: the default encoder of images of fewer than 24 pixels.

    Each block is a 3×3 convolution, normalised over the batch and rectified. Between two blocks
    a max-pooling halves each side of 8 pixels or more, so that small images are not pooled away.
    The last map is averaged to a small grid, which is the representation of images of 16 pixels
    or more on their shorter side. For smaller images, or with `n_components`, a linear layer
    follows.

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
            ``(channels, height, width)``.
        n_components : int or None, default=None
            Width of a last linear layer. None is 128 for images of fewer than 16 pixels, and no
            such layer for larger ones: the width is then the last of `widths` times
            ``pool_size**2``.

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
        """Return the rows and columns of the grid, which overlap unless they divide the map."""
        if self.pool_size is not None:
            return self.pool_size
        if not is_large:
            return _SMALL_GRID
        return _LARGE_GRID if all(side % _LARGE_GRID == 0 for side in sides) else _LARGE_GRID - 1


class PatchNet(Encoder):
    """A convolutional network on a patch dictionary: the default for images from 24 pixels on.

    The first layer compares the patches of an image with patches of the training images, see
    :class:`~skcontrast.features.PatchDictionary` [1]_, and is not trained by gradients. Images of
    48 pixels or more have several octaves, each with its own dictionary: full size, half of it,
    and so on down to 24 pixels. The features of all octaves are averaged to a common grid. Then
    come blocks of a 3×3 convolution, normalised over the batch and rectified.
    The last map, averaged to a small grid, is the representation.

    Parameters
    ----------
    n_patches : int, default=128
        Size of the dictionary, divided equally among octaves.
    patch_size : int, default=6
        Height and width of a patch in pixels; at most the side of an image.
    widths : tuple of int, default=(128, 128)
        Number of channels of each block, one block or more.
    pool_size : int, default=3
        Rows and columns of the grid to which the last map is averaged, at most those of the map.
    largest_side : int, default=96
        Images of more pixels than a square of this side are reduced to its area before
        augmentation and before the network, which bounds the cost. If the shorter side would be
        below half of this, only the longer one shrinks. None does not resize.

    See Also
    --------
    ConvNet : The default encoder of smaller images.
    ResNet : Trains all layers, which takes many more images and much longer.
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
            Width of a last linear layer. With None there is no such layer, and the width is the
            last of `widths` times ``pool_size**2``.

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
        dictionary, n_maps, sides = self._dictionary(*sample_shape)
        layers, sides = _blocks(n_maps, sides, self.widths, is_normal=True, n_groups=_GROUPS)
        last = _read_out(self.widths[-1], sides, self.pool_size, n_components)
        return nn.Sequential(dictionary, nn.BatchNorm2d(n_maps), *layers, *last)

    def _dictionary(self, channels: int, *full_sides: int) -> tuple[Octaves, int, list[int]]:
        """Return the layer of all octaves on a common grid, its number of maps, and the grid."""
        # In larger octaves, the stride is larger, so that all take about the same time.
        octaves = octave_sides(*full_sides)
        n_patches = max(1, self.n_patches // len(octaves))
        layers = []
        for sides in octaves:
            height, width = (min(int(self.patch_size), side) for side in sides)
            stride = max(_STRIDE, min(sides) // _N_PATCHES)
            layers.append(PatchLayer(n_patches, (channels, height, width), _THRESHOLD, stride))
        # All octaves are averaged to the grid of the last, which is the smallest.
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
        """Return the sizes of the octaves of an image.

        Parameters
        ----------
        sides : sequence of int
            Height and width of the images.

        Returns
        -------
        octaves : list of tuple (int, int)
            Height and width of the (reduced) image, half of them, and so on.
        """
        return octave_sides(*reduced_sides(sides, self.largest_side))

    def defaults(self, n_batches: int, sides: Sequence[int] | None = None) -> tuple[float, int]:
        """Return the default learning rate and number of epochs.

        With several octaves, these are .002 and at most 160 epochs, to save time; see
        `Encoder.defaults` for the others.
        """
        if sides is None or len(self.octaves(sides)) == 1:
            return super().defaults(n_batches)
        return 2e-3, default_epochs(n_batches, most=160)


def _blocks(
    channels: int, sides: list[int], widths: Sequence[int], *, is_normal: bool, n_groups: int = 1
) -> tuple[list[nn.Module], list[int]]:
    """Return blocks of convolution, batch normalisation and ReLU, and the sides of their output.

    All but the first have groups of channels, and start with a max-pooling that halves each side
    of 8 pixels or more.
    """
    layers: list[nn.Module] = []
    for k, width in enumerate(widths):
        steps = tuple(2 if k and side >= 2 * _SMALLEST_SIDE else 1 for side in sides)
        sides = [side // step for side, step in zip(sides, steps, strict=True)]
        layers += [nn.MaxPool2d(steps)] if max(steps) > 1 else []
        groups = math.gcd(n_groups, channels, width) if k else 1
        conv = nn.Conv2d(channels, width, 3, padding=1, bias=not is_normal, groups=groups)
        normal = [nn.BatchNorm2d(width)] if is_normal else []
        layers += [init_kaiming(conv), *normal, nn.ReLU(inplace=True)]
        channels = width
    return layers, sides


def _read_out(
    channels: int, sides: Sequence[int], grid: int, n_components: int | None
) -> list[nn.Module]:
    """Return layers that average maps over a grid, flatten it, and apply the last layer."""
    cells = [min(side, grid) for side in sides]
    last = last_layer(channels * cells[0] * cells[1], n_components)
    return [average_to(cells, sides), nn.Flatten(), last]


class ResNet(Encoder):
    """A residual network of 18, 34 or 50 layers, for many images.

    The network has four stages of residual blocks of widths w, 2w, 4w and 8w, and then a global
    average, as in table 1 of [1]_. Each stage except the first halves the side. With 50 layers,
    the 3×3 convolutions have the stride. The CIFAR stem is a 3×3 convolution without stride and
    without pooling, as in appendix B.9 of [2]_. Every block starts as the identity: the scale of
    its last batch normalisation is 0 [3]_.

    Parameters
    ----------
    depth : {18, 34, 50}, default=18
        Number of layers.
    stem : {"cifar", "imagenet"}, default="cifar"
        "cifar" keeps the resolution, for small images; "imagenet" reduces it to a quarter, with a
        7×7 convolution of stride 2 and a max-pooling.
    width : int, default=64
        Width w of the first stage, at least 1.

    See Also
    --------
    PatchNet : The default encoder of images of 24 pixels or more.
    ConvNet : The default encoder of smaller images.
    MLP : Encodes images as vectors.

    Notes
    -----
    Parameters are named as in torchvision, so that weights trained there can be loaded::

        encoder = ResNet(depth=50, stem="imagenet").build((3, 224, 224))
        encoder.load_state_dict(state, strict=False)  # strict=False ignores the classifier "fc"

    References
    ----------
    .. [1] K. He, X. Zhang, S. Ren, J. Sun, "Deep Residual Learning for Image Recognition", 2016.
    .. [2] T. Chen, S. Kornblith, M. Norouzi, G. Hinton, "A Simple Framework for Contrastive
       Learning of Visual Representations", 2020.
    .. [3] P. Goyal et al., "Accurate, Large Minibatch SGD: Training ImageNet in 1 Hour", 2017,
       section 5.1.

    Examples
    --------
    >>> import torch
    >>> from skcontrast.encoders import ResNet
    >>> ResNet(depth=18, width=8).build((3, 32, 32))(torch.zeros(2, 3, 32, 32)).shape
    torch.Size([2, 64])
    """

    kind = "images"
    depth: Literal[18, 34, 50] = parameter([Options(Integral, {18, 34, 50})], default=18)
    stem: Literal["cifar", "imagenet"] = parameter({"cifar", "imagenet"}, default="cifar")
    width: int = parameter(POSITIVE_INT, default=64)

    @property
    def _channels_last(self) -> bool:  # type: ignore[override]
        """Whether the module runs in channels-last memory format.

        On processors without AVX-512, PyTorch 2.13 writes out of bounds in this format, in the
        backward pass of a strided 1×1 convolution with two to seven input channels.
        """
        return self.width >= 8

    def build(self, sample_shape: tuple, n_components: int | None = None) -> nn.Module:
        """Return a new residual network for images of shape `sample_shape`.

        The weights are drawn from torch's global random state.

        Parameters
        ----------
        sample_shape : tuple of int
            ``(channels, height, width)``.
        n_components : int or None, default=None
            Width of a last linear layer. With None there is no such layer, and the width is 8
            times `width`, or 32 times with 50 layers.

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
        module = _ResNet(sample_shape[0], self.depth, self.stem, self.width, n_components)
        for layer in module.modules():
            if isinstance(layer, nn.Conv2d):
                init_kaiming(layer)
            elif isinstance(layer, _Block):
                nn.init.zeros_(getattr(layer, f"bn{layer.n_layers}").weight)
        return module


class _Block(nn.Module):
    """Convolutions, each normalised and all but the last rectified, and a shortcut.

    Two convolutions of 3×3 pixels, or 1×1, 3×3 and a wider 1×1.
    """

    def __init__(self, in_width: int, width: int, out_width: int, stride: int, kernels: tuple):
        super().__init__()
        self.n_layers = len(kernels)
        widths = [in_width, *[width] * (self.n_layers - 1), out_width]
        for k, kernel in enumerate(kernels):
            # The first convolution of 3×3 pixels has the stride.
            step = stride if k == kernels.index(3) else 1
            setattr(self, f"conv{k + 1}", _conv(widths[k], widths[k + 1], kernel, step))
            setattr(self, f"bn{k + 1}", nn.BatchNorm2d(widths[k + 1]))
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or in_width != out_width:
            shortcut = _conv(in_width, out_width, 1, stride)
            self.downsample = nn.Sequential(shortcut, nn.BatchNorm2d(out_width))

    def forward(self, x: Tensor) -> Tensor:
        out = x
        for k in range(1, self.n_layers + 1):
            out = getattr(self, f"bn{k}")(getattr(self, f"conv{k}")(out))
            out = self.relu(out) if k < self.n_layers else out
        return self.relu(out + (x if self.downsample is None else self.downsample(x)))


# Kernels of a block, its expansion, and the number of blocks of each stage.
_BLOCKS: dict[int, tuple] = {
    18: ((3, 3), 1, (2, 2, 2, 2)),
    34: ((3, 3), 1, (3, 4, 6, 3)),
    50: ((1, 3, 1), 4, (3, 4, 6, 3)),
}


class _ResNet(nn.Module):
    """Stem, four stages, global average and, if `n_components` is given, a linear layer."""

    def __init__(self, channels: int, depth: int, stem: str, width: int, n_components: int | None):
        super().__init__()
        kernels, expansion, repeats = _BLOCKS[depth]
        imagenet = stem == "imagenet"
        # The ImageNet stem reduces the sides to a quarter, which is too small for small images.
        self.conv1 = _conv(channels, width, 7, 2) if imagenet else _conv(channels, width, 3)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1) if imagenet else nn.Identity()
        in_width = width
        for k, n_blocks in enumerate(repeats):
            # Each stage but the first halves the sides, in its first block, and doubles the width.
            inner, outer, stride = width * 2**k, width * 2**k * expansion, 2 if k else 1
            blocks = [_Block(in_width, inner, outer, stride, kernels)]
            blocks += [_Block(outer, inner, outer, 1, kernels) for _ in range(n_blocks - 1)]
            in_width = outer
            setattr(self, f"layer{k + 1}", nn.Sequential(*blocks))
        self.fc = last_layer(in_width, n_components)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        for k in range(4):
            x = getattr(self, f"layer{k + 1}")(x)
        return self.fc(x.mean(dim=(2, 3)))


def _conv(in_width: int, width: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(in_width, width, kernel, stride=stride, padding=kernel // 2, bias=False)
