"""Residual networks, for images."""

from __future__ import annotations

from numbers import Integral
from typing import Literal

from torch import Tensor, nn

from .._parameters import Interval, IntOptions, StrOptions
from ._base import Encoder, check_build, init_kaiming


class ResNet(Encoder):
    """A residual network of 18, 34 or 50 layers: the default encoder of images over 32 pixels.

    The network has four stages of residual blocks of widths w, 2w, 4w and 8w, and then a global
    average, as in table 1 of [1]_. Each stage except the first halves the side. With 50 layers,
    the 3×3 convolutions have the stride. The CIFAR stem is a 3×3 convolution without stride and
    without pooling, as in appendix B.9 of [2]_.

    Parameters
    ----------
    depth : {18, 34, 50}, default=18
        Number of layers.
    stem : {"cifar", "imagenet"}, default="cifar"
        "cifar" keeps the resolution, for small images; "imagenet" reduces it to a quarter, with a
        7×7 convolution of stride 2 and a max-pooling.
    width : int, default=64
        Width w of the first stage, at least 1.
    zero_init_residual : bool, default=True
        Whether every block begins as the identity: the scale of its last batch normalisation
        starts at 0 [3]_.

    See Also
    --------
    ConvNet : The default encoder of small images.
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
    _parameter_constraints: dict = {
        "depth": [IntOptions(18, 34, 50)],
        "stem": [StrOptions({"cifar", "imagenet"})],
        "width": [Interval(Integral, 1, None, closed="left")],
        "zero_init_residual": ["boolean"],
    }

    def __init__(
        self,
        depth: Literal[18, 34, 50] = 18,
        stem: Literal["cifar", "imagenet"] = "cifar",
        width: int = 64,
        zero_init_residual: bool = True,
    ):
        self.depth = depth
        self.stem = stem
        self.width = width
        self.zero_init_residual = zero_init_residual

    def build(self, sample_shape: tuple, n_components: int | None = None) -> nn.Module:
        """Return a new residual network for images of shape `sample_shape`.

        The weights are drawn from torch's global random state.

        Parameters
        ----------
        sample_shape : tuple of int
            ``(channels, height, width)``.
        n_components : int or None, default=None
            Width of the representation, which a last linear layer gives. None leaves this layer
            out; the width is then 8 times `width`, or 32 times with 50 layers.

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
            elif isinstance(layer, (_BasicBlock, _Bottleneck)) and self.zero_init_residual:
                nn.init.zeros_(layer.last_norm.weight)
        return module


class _BasicBlock(nn.Module):
    """Two 3×3 convolutions and a shortcut."""

    expansion = 1

    def __init__(self, in_width: int, width: int, stride: int):
        super().__init__()
        self.conv1 = _conv(in_width, width, 3, stride)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _conv(width, width, 3)
        self.bn2 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(in_width, width * self.expansion, stride)

    @property
    def last_norm(self) -> nn.Module:
        return self.bn2

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.relu(out + shortcut)


class _Bottleneck(nn.Module):
    """A 3×3 convolution between two 1×1 ones, and a shortcut."""

    expansion = 4

    def __init__(self, in_width: int, width: int, stride: int):
        super().__init__()
        self.conv1 = _conv(in_width, width, 1)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = _conv(width, width, 3, stride)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = _conv(width, width * self.expansion, 1)
        self.bn3 = nn.BatchNorm2d(width * self.expansion)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = _shortcut(in_width, width * self.expansion, stride)

    @property
    def last_norm(self) -> nn.Module:
        return self.bn3

    def forward(self, x: Tensor) -> Tensor:
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.relu(self.bn2(self.conv2(out)))
        out = self.bn3(self.conv3(out))
        shortcut = x if self.downsample is None else self.downsample(x)
        return self.relu(out + shortcut)


_BLOCKS: dict = {
    18: (_BasicBlock, (2, 2, 2, 2)),
    34: (_BasicBlock, (3, 4, 6, 3)),
    50: (_Bottleneck, (3, 4, 6, 3)),
}


class _ResNet(nn.Module):
    """Stem, four stages, global average and, if `n_components` is given, a linear layer."""

    def __init__(self, channels: int, depth: int, stem: str, width: int, n_components: int | None):
        super().__init__()
        block, repeats = _BLOCKS[depth]
        imagenet = stem == "imagenet"
        self.conv1 = _conv(channels, width, 7, 2) if imagenet else _conv(channels, width, 3)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1) if imagenet else nn.Identity()
        self.layer1 = _stage(block, width, width, repeats[0], stride=1)
        for index in (1, 2, 3):
            in_width = width * 2 ** (index - 1) * block.expansion
            stage = _stage(block, in_width, width * 2**index, repeats[index], stride=2)
            setattr(self, f"layer{index + 1}", stage)
        features = 8 * width * block.expansion
        self.fc = nn.Identity()
        if n_components is not None:
            self.fc = init_kaiming(nn.Linear(features, n_components), "linear")

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean(dim=(2, 3)))


def _conv(in_width: int, width: int, kernel: int, stride: int = 1) -> nn.Conv2d:
    return nn.Conv2d(in_width, width, kernel, stride=stride, padding=kernel // 2, bias=False)


def _shortcut(in_width: int, width: int, stride: int) -> nn.Module | None:
    if stride == 1 and in_width == width:
        return None
    return nn.Sequential(_conv(in_width, width, 1, stride), nn.BatchNorm2d(width))


def _stage(
    block: type[_BasicBlock | _Bottleneck], in_width: int, width: int, repeats: int, stride: int
) -> nn.Module:
    blocks = [block(in_width, width, stride)]
    blocks += [block(width * block.expansion, width, 1) for _ in range(repeats - 1)]
    return nn.Sequential(*blocks)
