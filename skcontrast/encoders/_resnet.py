"""Residual networks, for images."""

from __future__ import annotations

from numbers import Integral
from typing import Literal

from torch import Tensor, nn

from .._checks import POSITIVE_INT, Options, parameter
from ._base import Encoder, check_build, init_kaiming, last_layer


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
