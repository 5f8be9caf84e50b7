"""The default encoder and augmentations of each kind of data."""

from __future__ import annotations

from ..augmentation import (
    Augmentation,
    MarginalCorruption,
    NodeDrop,
    RandomAffine,
    SimCLRAugmentation,
)
from ..encoders import GIN, MLP, ConvNet, Encoder, ResNet
from ..frameworks import Framework
from ..kinds._base import Kind
from ..kinds.graphs import Graphs
from ..kinds.images import Images
from ..kinds.vectors import Vectors


def _encoder_of_images(sample_shape):
    side = max(sample_shape[-2:])
    if side <= 32:
        return ConvNet()
    return ResNet(depth=18, stem="imagenet" if side > 64 else "cifar")


def _augmentation_of_images(sample_shape, mixes_channels):
    is_colour = len(sample_shape) == 3 and sample_shape[0] == 3 and mixes_channels
    return SimCLRAugmentation() if is_colour else RandomAffine()


# kind: (encoder by the shape of a sample, augmentation by that shape and whether channels may mix)
_DEFAULTS = {
    Vectors: (lambda shape: MLP(), lambda shape, mixes: MarginalCorruption()),
    Images: (_encoder_of_images, _augmentation_of_images),
    Graphs: (lambda shape: GIN(), lambda shape, mixes: NodeDrop()),
}


def _defaults_of(kind, parameter):
    for known, defaults in _DEFAULTS.items():
        if isinstance(kind, known):
            return defaults
    raise ValueError(
        f"There is no default {parameter!r} for {kind.name} ({kind!r}): pass one"
        f"{', or [] for none' if parameter == 'augmentation' else ''}."
    )


def default_encoder(kind: Kind, sample_shape: tuple) -> Encoder:
    """Return the encoder that suits samples of a kind and shape."""
    return _defaults_of(kind, "encoder")[0](sample_shape)


def default_chain(
    kind: Kind, sample_shape: tuple, framework: Framework, *, mixes_channels: bool = True
) -> list[Augmentation]:
    """Return the augmentations that suit samples of a kind and shape.

    Parameters
    ----------
    kind : Kind
        What the samples are.
    sample_shape : tuple
        Shape of one sample.
    framework : Framework
        A framework that takes one view of each graph needs no augmentation.
    mixes_channels : bool, default=True
        If False, channels are contrasted with each other and must not be mixed.
    """
    if isinstance(kind, Graphs) and framework.n_views == 1:
        return []
    return [_defaults_of(kind, "augmentation")[1](sample_shape, mixes_channels)]


def scored_chain(kind: Kind, chain: list[Augmentation]) -> list[Augmentation]:
    """Return the chain that draws the views of `score`; graphs are always augmented."""
    return chain or ([NodeDrop()] if isinstance(kind, Graphs) else [])
