"""The default encoder and augmentations of each kind of data."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

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
from ..kinds._parts import PartsKind
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


class Defaults(NamedTuple):
    """The defaults of a kind.

    Attributes
    ----------
    encoder : callable
        Returns an encoder for samples of a shape.
    chain : callable
        Returns the augmentations of samples of a shape, which mix channels or do not.
    one_view : list of Augmentation or None
        What draws the view for a framework that takes one of each sample; None as for others.
    """

    encoder: Callable[[tuple], Encoder]
    chain: Callable[[tuple, bool], list[Augmentation]]
    one_view: list[Augmentation] | None = None


_DEFAULTS = {
    Tables: Defaults(lambda shape: MLP(), lambda shape, mixes: [MarginalCorruption(rate=0.3)]),
    Vectors: Defaults(lambda shape: MLP(), lambda shape, mixes: [MarginalCorruption(rate=0.3)]),
    Images: Defaults(_encoder_of_images, _chain_of_images),
    Graphs: Defaults(lambda shape: GIN(), lambda shape, mixes: [NodeDrop()], one_view=[]),
}


def _defaults_of(kind: Kind) -> Defaults | None:
    return next((own for known, own in _DEFAULTS.items() if isinstance(kind, known)), None)


def _missing(parameter: str, kind: Kind) -> ValueError:
    none = ", or [] for none" if parameter == "augmentation" else ""
    return ValueError(
        f"There is no default {parameter!r} for {kind.name} ({kind!r}): pass one{none}."
    )


def default_encoder(kind: Kind, sample_shape: tuple) -> Encoder:
    """Return the encoder that suits samples of a kind and shape."""
    defaults = _defaults_of(kind)
    if defaults is None:
        raise _missing("encoder", kind)
    return defaults.encoder(sample_shape)


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
    if isinstance(kind, PartsKind):
        several = zip(kind.kinds_, sample_shape, strict=True)
        return [PerPart([default_chain(own, shape, framework) for own, shape in several])]
    defaults = _defaults_of(kind)
    if defaults is None:
        raise _missing("augmentation", kind)
    if framework.n_views == 1 and defaults.one_view is not None:
        return defaults.one_view
    return defaults.chain(sample_shape, mixes_channels)


def scored_chain(
    kind: Kind, sample_shape: tuple, chain: list[Augmentation], *, mixes_channels: bool = True
) -> list[Augmentation]:
    """Return the augmentations that draw the views of `score`: the default, whatever the chain.

    So embedders that were trained with different augmentations can be compared. A kind without a
    default is scored by the chain.
    """
    if isinstance(kind, PartsKind):
        if any(_defaults_of(own) is None for own in kind.kinds_):
            return chain
        several = zip(kind.kinds_, sample_shape, strict=True)
        return [PerPart([scored_chain(own, shape, []) for own, shape in several])]
    defaults = _defaults_of(kind)
    return chain if defaults is None else defaults.chain(sample_shape, mixes_channels)
