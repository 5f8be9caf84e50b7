"""Defaults of each kind of data: encoder, views, training-free features and pictures."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from sklearn.base import clone

from ..augmentation import (
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
from ..augmentation._base import Chain
from ..augmentation._symmetries import SYMMETRIES
from ..encoders import GIN, MLP, ConvNet, Encoder, PatchNet, SeriesNet
from ..features._base import Features, Raw
from ..features._graphs import GraphProfile, WeisfeilerLehman
from ..features._signals import MiniRocket, OrientedGradients, PatchDictionary
from ..kinds import Graphs, Images, Kind, MultimodalKind, Series, Vectors
from ..kinds._base import Schema

# In smaller images, a random crop does not keep the content.
_MIN_SIDE_FOR_CROPS = 16
# In smaller images, a dictionary of patches is less accurate than a trained first layer.
_MIN_SIDE_FOR_PATCHES = 24
# In larger images, strong changes of colour are not needed to distinguish samples by content.
_MAX_SIDE_FOR_STRONG_COLORS = 32
# If symmetries allow it, half of the images are flipped, and all are rotated.
_FLIP_PROBABILITY = 0.5
_ROTATION = RandomAffine(
    rotation=180, translate=0.0, scale=(1.0, 1.0), shear=0.0, padding="reflection"
)


@dataclass(frozen=True)
class Defaults:
    """Defaults of a kind of data.

    Attributes
    ----------
    encoder : callable, default=None
        Returns an encoder for the shape of a sample; None has no default.
    views : callable
        Returns augmentations for a kind, a shape and the conditions of `default_chain`.
    features : callable
        Returns training-free features for a seed, by their names as baselines.
    blocks : tuple of str, default=()
        The features that a classifier concatenates with the embedding.
    whitened : str or None, default=None
        The features that are whitened within views.
    embedding : float, default=1.0
        The weight of the embedding in a classifier, relative to a block with the same agreement.
    picture : {"images", "series"} or None, default=None
        How samples and their views are plotted; None cannot be plotted.
    """

    encoder: Callable[[tuple], Encoder] | None = None
    views: Callable[..., Chain | None] = lambda *_, **__: None
    features: Callable[[int], dict[str, Features]] = lambda seed: {}
    blocks: tuple[str, ...] = ()
    whitened: str | None = None
    embedding: float = 1.0
    picture: Literal["images", "series"] | None = None


def defaults_of(kind: Kind) -> Defaults:
    """Return the defaults of a kind's class, or of its nearest base class."""
    return next(DEFAULTS[base] for base in type(kind).__mro__ if base in DEFAULTS)


def default_encoder(kind: Kind, sample_shape: tuple) -> Encoder:
    """Return the default encoder for samples of a kind and shape.

    Parameters
    ----------
    kind : Kind
        The kind of the samples.
    sample_shape : tuple
        Shape of one sample.
    """
    if (choose := defaults_of(kind).encoder) is None:
        raise no_default_error("encoder", kind)
    return choose(sample_shape)


def default_chain(kind: Kind, sample_shape: tuple, **conditions: Any) -> Chain | None:
    """Return the default augmentations for samples of a kind and shape, None without default.

    Parameters
    ----------
    kind : Kind
        The kind of the samples.
    sample_shape : tuple
        Shape of one sample.
    **conditions : dict
        `mixes_channels`, False if channels are contrasted and must not be mixed;
        `takes_one_view`, whether the framework takes one view of each graph, which needs no
        augmentation; `symmetries`, a tuple of the flips and rotations that the images allow, None
        if they are unknown.
    """
    return defaults_of(kind).views(kind, sample_shape, **conditions)


def fit_defaults(encoder: Any, schema: Schema, n_batches: int) -> tuple[float, int]:
    """Return the default learning rate and epochs of `Encoder.defaults` for `encoder`."""
    image = schema.kind.image_shape(schema.sample_shape)
    if encoder is None and image:
        encoder = default_encoder(schema.kind, image)
    encoder = encoder if isinstance(encoder, Encoder) else Encoder()
    return encoder.defaults(n_batches, image[1:] if image else None)


def _encoder_of_images(shape: tuple) -> Encoder:
    """Return the default encoder of images: PatchNet, or ConvNet for small ones."""
    shorter, longer = min(shape[-2:]), max(shape[-2:])
    is_small = shorter < _MIN_SIDE_FOR_CROPS or longer < _MIN_SIDE_FOR_PATCHES
    return ConvNet() if is_small else PatchNet()


def _features_of_images(seed: int) -> dict[str, Features]:
    """Return training-free features of images."""
    return {"patches": PatchDictionary(random_state=seed), "gradients": OrientedGradients()}


def _views_of_modalities(
    kind: MultimodalKind, sample_shape: tuple, *, takes_one_view: bool = False, **_: object
) -> Chain | None:
    """Return the augmentations of all modalities, None if one has no default."""
    modalities = zip(kind.kinds_, sample_shape, strict=True)
    chains = [default_chain(*modality, takes_one_view=takes_one_view) for modality in modalities]
    known_chains = [chain for chain in chains if chain is not None]
    return [PerModality(known_chains)] if len(known_chains) == len(chains) else None


def _views_of_images(
    kind: Kind,
    shape: tuple,
    *,
    mixes_channels: bool = True,
    symmetries: tuple[str, ...] | None = None,
    **_: object,
) -> Chain:
    """Return the augmentations of images.

    They change the brightness, by which a network could recognise a sample. If symmetries are
    unknown, because images are few or small, colour images are flipped horizontally, as
    photographs are, and grey images, which may be characters, are not.
    """
    channels = shape[0] if len(shape) == 3 else 1
    takes_colors = channels == 3 and mixes_channels
    if symmetries is None:
        symmetries = SYMMETRIES[:1] if takes_colors else ()
    horizontal = _FLIP_PROBABILITY if "left_right" in symmetries else 0.0
    vertical = _FLIP_PROBABILITY if "up_down" in symmetries else 0.0
    flips = _flips_and_rotations(horizontal, vertical, symmetries)
    if takes_colors and max(shape[-2:]) > _MAX_SIDE_FOR_STRONG_COLORS:
        return [RandomResizedCrop(scale=(0.4, 1.0)), *flips, ColorJitter(0.2, 0.2, 0.2, 0.02)]
    if takes_colors:
        return [
            *_flips_and_rotations(0.0, vertical, symmetries),
            SimCLRAugmentation(flip=horizontal),
        ]
    if channels == 3:
        return [*flips, RandomAffine()]
    jitter = ColorJitter(brightness=0.6, contrast=0.6)
    if min(shape[-2:]) < _MIN_SIDE_FOR_CROPS:
        return [*flips, RandomAffine(), jitter]
    return [*flips, RandomResizedCrop(scale=(0.5, 1.0)), jitter, GaussianBlur(p=0.3)]


def _flips_and_rotations(horizontal: float, vertical: float, symmetries: tuple[str, ...]) -> Chain:
    """Return flips with two probabilities, and rotations if quarter turns are allowed."""
    flips = [RandomFlip(horizontal, vertical)] if horizontal or vertical else []
    return [*flips, *([clone(_ROTATION)] if "quarter_turn" in symmetries else [])]


def no_default_error(parameter: str, kind: Kind) -> ValueError:
    """Return the error for a kind without a default for a parameter."""
    or_none = ", or [] for none" if parameter == "augmentation" else ""
    return ValueError(
        f"There is no default {parameter!r} for {kind.name} ({kind!r}): pass one{or_none}."
    )


DEFAULTS: dict[type[Kind], Defaults] = {
    Vectors: Defaults(
        lambda _: MLP(),
        lambda *_, **__: [MarginalCorruption(rate=0.3)],
        lambda seed: {"raw": Raw()},
        blocks=("raw",),
    ),
    Images: Defaults(
        _encoder_of_images,
        _views_of_images,
        _features_of_images,
        blocks=("patches",),
        whitened="patches",
        picture="images",
    ),
    Series: Defaults(
        lambda _: SeriesNet(),
        lambda *_, **__: [TimeCrop(), GaussianNoise(), MagnitudeScale(), TimeMask()],
        lambda seed: {"kernels": MiniRocket(random_state=seed)},
        blocks=("kernels",),
        whitened="kernels",
        # Chosen on MedicalImages. With equal shares of the embedding, whitened and plain
        # MiniRocket, the classifier was .026 behind whitened MiniRocket. The record is in commit
        # 9548591a, benchmarks/studies/results/classifier.md.
        embedding=0.25,
        picture="series",
    ),
    Graphs: Defaults(
        lambda _: GIN(),
        lambda *_, takes_one_view=False, **__: [] if takes_one_view else [NodeDrop()],
        lambda seed: {"profile": GraphProfile(), "colours": WeisfeilerLehman()},
        blocks=("profile", "colours"),
        whitened="profile",
    ),
    MultimodalKind: Defaults(views=_views_of_modalities),
    Kind: Defaults(),  # custom kinds
}
