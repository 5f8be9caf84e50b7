"""What suits each kind of data, a table: encoder, views, features to compare with, and picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from sklearn.base import clone

from ..augmentation import (
    Augmentation,
    ColorJitter,
    GaussianBlur,
    GaussianNoise,
    MagnitudeScale,
    MarginalCorruption,
    NodeDrop,
    PerModality,
    RandomAffine,
    RandomFlip,
    RandomResizedCrop,
    SimCLRAugmentation,
    TimeCrop,
    TimeMask,
)
from ..augmentation._symmetries import SYMMETRIES
from ..encoders import GIN, MLP, ConvNet, Encoder, PatchNet, SeriesNet
from ..features import (
    Features,
    GraphProfile,
    MiniRocket,
    OrientedGradients,
    PatchDictionary,
    WeisfeilerLehman,
)
from ..kinds import Graphs, Images, Kind, MultimodalKind, Series, Vectors
from ..kinds._base import Schema

# Smaller images are little else than a patch, and a crop does not keep what they show.
_LEAST_SIDE = 16
# In smaller ones, a dictionary of patches is behind a network that learns its first layer.
_LEAST_SIDE_OF_PATCHES = 24
# Larger images have enough to be told by without their colours being changed much.
_MOST_SIDE_FOR_STRONG_COLORS = 32
# Half of the images are mirrored, and all are turned, where their symmetries allow it.
_MIRROR = 0.5
_TURN = RandomAffine(
    rotation=180, translate=0.0, scale=(1.0, 1.0), shear=0.0, padding="reflection"
)


@dataclass(frozen=True)
class Defaults:
    """What suits a kind; what is left out there is none of.

    Attributes
    ----------
    encoder : callable, default=None
        Returns an encoder for a shape of samples; see `default_encoder`.
    views : callable
        Returns augmentations for a kind and a shape, by the conditions of `default_chain`.
    features : callable
        Returns, for a seed, training-free features, by the names of their rows among the
        baselines.
    picture : {"images", "series"} or None, default=None
        How samples and their views are drawn.
    """

    encoder: Callable[[tuple], Encoder] | None = None
    views: Callable[..., list[Augmentation] | None] = lambda *_, **__: None
    features: Callable[[int], dict[str, Features]] = lambda seed: {}
    picture: Literal["images", "series"] | None = None


def defaults_of(kind: Kind) -> Defaults:
    """Return what suits a kind: the entry of its class, or of the nearest that it derives from."""
    return next(DEFAULTS[base] for base in type(kind).__mro__ if base in DEFAULTS)


def default_encoder(kind: Kind, sample_shape: tuple) -> Encoder:
    """Return the encoder that suits samples of a kind and shape.

    Parameters
    ----------
    kind : Kind
        The kind of the samples.
    sample_shape : tuple
        Shape of one sample.
    """
    if (choose := defaults_of(kind).encoder) is None:
        raise missing("encoder", kind)
    return choose(sample_shape)


def default_chain(kind: Kind, sample_shape: tuple, **conditions: Any) -> list[Augmentation] | None:
    """Return the augmentations that suit samples of a kind and shape, None if there are none.

    Parameters
    ----------
    kind : Kind
        The kind of the samples.
    sample_shape : tuple
        Shape of one sample.
    **conditions : dict
        What may change the views: `mixes_channels`, False if channels are contrasted with each
        other and must not be mixed; `takes_one_view`, whether the framework takes one view of
        each graph, which needs no augmentation; `symmetries`, a tuple of the flips and rotations
        that the images allow, None where they are not known.
    """
    return defaults_of(kind).views(kind, sample_shape, **conditions)


def pace_of(encoder: Any, schema: Schema, n_batches: int) -> tuple[float, int]:
    """Return the rate and the epochs that suit the parameter `encoder`; see `Encoder.pace`."""
    image = schema.kind._image_shape(schema.sample_shape)
    if encoder is None and image:
        encoder = default_encoder(schema.kind, image)
    own = encoder if isinstance(encoder, Encoder) else Encoder()
    return own.pace(n_batches, image[1:] if image else None)


def _encoder_of_images(shape: tuple) -> Encoder:
    """Return the encoder of images, which looks for patches in all but small ones."""
    least, most = min(shape[-2:]), max(shape[-2:])
    return ConvNet() if least < _LEAST_SIDE or most < _LEAST_SIDE_OF_PATCHES else PatchNet()


def _features_of_images(seed: int) -> dict[str, Features]:
    """Return what is compared with embeddings of images."""
    return {"gradients": OrientedGradients(), "patches": PatchDictionary(random_state=seed)}


def _views_of_parts(
    kind: MultimodalKind, sample_shape: tuple, *, takes_one_view: bool = False, **_: Any
) -> list[Augmentation] | None:
    """Return the views of each part, None unless there are some for all."""
    parts = zip(kind.kinds_, sample_shape, strict=True)
    found = [default_chain(*part, takes_one_view=takes_one_view) for part in parts]
    chains = [chain for chain in found if chain is not None]
    return [PerModality(chains)] if len(chains) == len(found) else None


def _views_of_images(
    kind: Kind, shape: tuple, *, mixes_channels: bool = True, symmetries: Any = None, **_: Any
) -> list[Augmentation]:
    """Return the views of images; two views of a sample must not be alike in brightness.

    Otherwise that is all the network learns to recognise. Where the images are too few or too
    small to show their symmetries, colour ones are flipped like photographs, and grey ones, which
    may be characters, are not.
    """
    channels = shape[0] if len(shape) == 3 else 1
    takes_colors = channels == 3 and mixes_channels
    if symmetries is None:
        symmetries = SYMMETRIES[:1] if takes_colors else ()
    mirror = _MIRROR if "left_right" in symmetries else 0.0
    upset = _MIRROR if "up_down" in symmetries else 0.0
    moves = _moves(mirror, upset, symmetries)
    if takes_colors and max(shape[-2:]) > _MOST_SIDE_FOR_STRONG_COLORS:
        return [RandomResizedCrop(scale=(0.4, 1.0)), *moves, ColorJitter(0.2, 0.2, 0.2, 0.02)]
    if takes_colors:
        return [*_moves(0.0, upset, symmetries), SimCLRAugmentation(flip=mirror)]
    if channels == 3:
        return [*moves, RandomAffine()]
    jitter = ColorJitter(brightness=0.6, contrast=0.6)
    if min(shape[-2:]) < _LEAST_SIDE:
        return [*moves, RandomAffine(), jitter]
    return [*moves, RandomResizedCrop(scale=(0.5, 1.0)), jitter, GaussianBlur(p=0.3)]


def _moves(mirror: float, upset: float, symmetries: tuple[str, ...]) -> list[Augmentation]:
    """Return mirrors of these probabilities, and turns by any angle if quarters are allowed."""
    flips = [RandomFlip(horizontal=mirror, vertical=upset)] if mirror or upset else []
    return [*flips, *([clone(_TURN)] if "quarter_turn" in symmetries else [])]


def missing(parameter: str, kind: Kind) -> ValueError:
    """Return the error of a kind without a default for a parameter."""
    none = ", or [] for none" if parameter == "augmentation" else ""
    return ValueError(
        f"There is no default {parameter!r} for {kind.name} ({kind!r}): pass one{none}."
    )


DEFAULTS: dict[type[Kind], Defaults] = {
    Vectors: Defaults(lambda _: MLP(), lambda *_, **__: [MarginalCorruption(rate=0.3)]),
    Images: Defaults(_encoder_of_images, _views_of_images, _features_of_images, "images"),
    Series: Defaults(
        lambda _: SeriesNet(),
        lambda *_, **__: [TimeCrop(), GaussianNoise(), MagnitudeScale(), TimeMask()],
        lambda seed: {"kernels": MiniRocket(random_state=seed)},
        "series",
    ),
    Graphs: Defaults(
        lambda _: GIN(),
        lambda *_, takes_one_view=False, **__: [] if takes_one_view else [NodeDrop()],
        lambda seed: {"profile": GraphProfile(), "colours": WeisfeilerLehman()},
    ),
    MultimodalKind: Defaults(views=_views_of_parts),
    Kind: Defaults(),  # a kind of one's own
}
