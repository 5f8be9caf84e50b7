"""The default encoder and augmentations of each kind of data."""

from __future__ import annotations

from ..augmentation import (
    Augmentation,
    ColorJitter,
    GaussianBlur,
    MarginalCorruption,
    NodeDrop,
    PerPart,
    RandomAffine,
    RandomResizedCrop,
    SimCLRAugmentation,
)
from ..encoders import GIN, MLP, ConvNet, Encoder, ResNet
from ..frameworks import Framework
from ..kinds._base import Kind
from ..kinds._graphs import Graphs
from ..kinds._images import Images
from ..kinds._recognise import PartsKind
from ..kinds._tables import Tables
from ..kinds._vectors import Vectors


def _encoder_of_images(sample_shape: tuple) -> Encoder:
    side = max(sample_shape[-2:])
    if side <= 32:
        return ConvNet()
    return ResNet(depth=18, stem="imagenet" if side > 64 else "cifar")


# From so many pixels on a crop keeps what an image shows.
_LEAST_SIDE_FOR_CROPS = 16


def _chain_of_images(sample_shape: tuple, mixes_channels: bool) -> list[Augmentation]:
    """Return the views of images; two views of a sample must not be alike in brightness.

    Otherwise that is all the network learns to recognise. Flips are for colour images alone, which
    are photographs: grey ones may be characters.
    """
    channels = sample_shape[0] if len(sample_shape) == 3 else 1
    if channels == 3 and mixes_channels:
        return [SimCLRAugmentation()]
    if channels != 1:
        return [RandomAffine()]
    jitter = ColorJitter(brightness=0.6, contrast=0.6)
    if min(sample_shape[-2:]) < _LEAST_SIDE_FOR_CROPS:
        return [RandomAffine(), jitter]
    return [RandomResizedCrop(scale=(0.5, 1.0)), jitter, GaussianBlur(p=0.3)]


def _missing(parameter: str, kind: Kind) -> ValueError:
    none = ", or [] for none" if parameter == "augmentation" else ""
    return ValueError(
        f"There is no default {parameter!r} for {kind.name} ({kind!r}): pass one{none}."
    )


def default_encoder(kind: Kind, sample_shape: tuple) -> Encoder:
    """Return the encoder that suits samples of a kind and shape."""
    if isinstance(kind, (Tables, Vectors)):
        return MLP()
    if isinstance(kind, Images):
        return _encoder_of_images(sample_shape)
    if isinstance(kind, Graphs):
        return GIN()
    raise _missing("encoder", kind)


def default_chain(
    kind: Kind, sample_shape: tuple, framework: Framework, *, mixes_channels: bool = True
) -> list[Augmentation]:
    """Return the augmentations that suit samples of a kind and shape.

    Parameters
    ----------
    kind : Kind
        The kind of the samples.
    sample_shape : tuple
        Shape of one sample.
    framework : Framework
        A framework that takes one view of each graph needs no augmentation.
    mixes_channels : bool, default=True
        If False, channels are contrasted with each other and must not be mixed.
    """
    chain = _chain(kind, sample_shape, mixes_channels, takes_one_view=framework.n_views == 1)
    if chain is None:
        raise _missing("augmentation", kind)
    return chain


def scored_chain(
    kind: Kind, sample_shape: tuple, chain: list[Augmentation], *, mixes_channels: bool = True
) -> list[Augmentation]:
    """Return the augmentations that draw the views of `score`: the default, whatever the chain.

    So embedders that were trained with different augmentations can be compared. A kind without a
    default is scored by the chain.
    """
    default = _chain(kind, sample_shape, mixes_channels)
    return chain if default is None else default


def _chain(
    kind: Kind, sample_shape: tuple, mixes_channels: bool = True, takes_one_view: bool = False
) -> list[Augmentation] | None:
    """Return the default augmentations, None for a kind without any."""
    if isinstance(kind, PartsKind):
        parts = zip(kind.kinds_, sample_shape, strict=True)
        chains = [_chain(part, shape, takes_one_view=takes_one_view) for part, shape in parts]
        found = [chain for chain in chains if chain is not None]
        return [PerPart(found)] if len(found) == len(chains) else None
    if isinstance(kind, (Tables, Vectors)):
        return [MarginalCorruption(rate=0.3)]
    if isinstance(kind, Images):
        return _chain_of_images(sample_shape, mixes_channels)
    if isinstance(kind, Graphs):
        return [] if takes_one_view else [NodeDrop()]
    return None
