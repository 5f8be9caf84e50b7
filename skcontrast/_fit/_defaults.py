"""What suits each kind of data: an encoder, views, and the features that are compared with it."""

from __future__ import annotations

import math
from typing import Any

from sklearn.base import clone

from .._checks import POSITIVE, POSITIVE_INT, check_argument
from ..augmentation import (
    Augmentation,
    ColorJitter,
    GaussianBlur,
    GaussianNoise,
    MagnitudeScale,
    MarginalCorruption,
    NodeDrop,
    PerPart,
    RandomAffine,
    RandomFlip,
    RandomResizedCrop,
    SimCLRAugmentation,
    TimeCrop,
    TimeMask,
)
from ..augmentation._symmetries import SYMMETRIES
from ..encoders import GIN, MLP, ConvNet, Encoder, PatchNet, Pretrained, SeriesNet, Wide
from ..features import (
    Features,
    Frozen,
    GraphProfile,
    GraphSize,
    MiniRocket,
    OrientedGradients,
    PatchDictionary,
    Raw,
    WeisfeilerLehman,
)
from ..kinds._base import Kind, Schema
from ..kinds._graphs import Graphs
from ..kinds._images import Images
from ..kinds._recognise import PartsKind
from ..kinds._series import Series
from ..kinds._tables import Tables
from ..kinds._vectors import Vectors

# From so many pixels on a crop keeps what an image shows.
_LEAST_SIDE_FOR_CROPS = 16
# Larger images have enough to be told by without their colours being changed much.
_MOST_SIDE_FOR_STRONG_COLORS = 32
# Half of the images are mirrored, and all are turned, where their symmetries allow it.
_MIRROR = 0.5
_TURN = RandomAffine(
    rotation=180, translate=0.0, scale=(1.0, 1.0), shear=0.0, padding="reflection"
)
# Smaller images are little else than a patch.
_LEAST_SIDE_FOR_PATCHES = 16
# More features of a vector are not put beside what is learned of it: they would be most of the
# memory of an embedding.
_MOST_FEATURES_BESIDE = 1000


def default_encoder(kind: Kind, sample_shape: tuple, *, is_wide: bool = True) -> Encoder:
    """Return the encoder that suits samples of a kind and shape.

    Parameters
    ----------
    kind : Kind
        The kind of the samples.
    sample_shape : tuple
        Shape of one sample.
    is_wide : bool, default=True
        Whether features that are not learned may stand beside the others: a framework that
        contrasts parts of a sample, such as nodes, has no such features of these.
    """
    if isinstance(kind, Tables):
        return Wide(MLP(n_learned=16), [Raw()])
    if isinstance(kind, Vectors):
        is_narrow = math.prod(sample_shape) <= _MOST_FEATURES_BESIDE
        return Wide(MLP(), [Raw()]) if is_narrow else MLP()
    if isinstance(kind, Graphs):
        blocks = [GraphSize(), GraphProfile(), WeisfeilerLehman(n_components=256)]
        return Wide(GIN(), blocks, weights=[0.5, 1.0, 1.0]) if is_wide else GIN()
    if isinstance(kind, Series):
        # With this weight, few labels are as good as from the kernels alone.
        return Wide(SeriesNet(), [MiniRocket()], weights=[4.0]) if is_wide else SeriesNet()
    if not isinstance(kind, Images):
        raise missing("encoder", kind)
    if min(sample_shape[-2:]) < _LEAST_SIDE_FOR_PATCHES:
        return ConvNet()
    # With few labels, and for neighbours, better than weights of 1. Codes of several octaves say
    # more than those of one: of cells, more than what is learned.
    deep = PatchNet()
    weights = [1.5, 0.3] if len(deep.octaves(sample_shape[-2:])) > 1 else [0.5, 0.5]
    return Wide(deep, [PatchDictionary(128, grid=3), OrientedGradients()], weights)


def pace_of(encoder: Any, schema: Schema, n_batches: int) -> tuple[float, int]:
    """Return the rate and the epochs that suit the parameter `encoder`; see `Encoder.pace`."""
    image = schema.kind._image_shape(schema.sample_shape)
    if encoder is None and image:
        encoder = default_encoder(schema.kind, image)
    own = encoder if isinstance(encoder, Encoder) else Encoder()
    owner, found = f"{type(own).__name__}.pace", own.pace(n_batches, image[1:] if image else None)
    if not isinstance(found, (tuple, list)) or len(found) != 2:
        raise TypeError(f"{owner} must return a pair (lr, n_epochs), got {found!r}.")
    check_argument(owner, "lr", found[0], POSITIVE)
    check_argument(owner, "n_epochs", found[1], POSITIVE_INT)
    return found[0], found[1]


def beside_pretrained(encoder: Pretrained) -> Wide:
    """Return a pretrained network with what it returned before, codes and gradients beside it."""
    features = [Frozen(encoder), PatchDictionary(128, grid=3), OrientedGradients()]
    # With half of these, the linear probe of cells was behind what is not learned.
    return Wide(encoder, features, weights=[1.0, 0.5, 0.25])


def unlearned_features(kind: Kind, seed: int) -> dict[str, Features]:
    """Return features that need no training, by the names of their rows among the baselines."""
    if isinstance(kind, Images):
        patches = PatchDictionary(random_state=seed)
        return {"gradients": OrientedGradients(), "patches": patches}
    if isinstance(kind, Series):
        return {"kernels": MiniRocket(random_state=seed)}
    if isinstance(kind, Graphs):
        return {"profile": GraphProfile(), "colours": WeisfeilerLehman()}
    return {}


def default_chain(
    kind: Kind,
    sample_shape: tuple,
    *,
    mixes_channels: bool = True,
    takes_one_view: bool = False,
    symmetries: tuple[str, ...] | None = None,
) -> list[Augmentation] | None:
    """Return the augmentations that suit samples of a kind and shape, None if there are none.

    Parameters
    ----------
    kind : Kind
        The kind of the samples.
    sample_shape : tuple
        Shape of one sample.
    mixes_channels : bool, default=True
        If False, channels are contrasted with each other and must not be mixed.
    takes_one_view : bool, default=False
        Whether the framework takes one view of each graph, which needs no augmentation.
    symmetries : tuple of str, default=None
        The mirrors and turns that the images show; None where they are not known.
    """
    if isinstance(kind, PartsKind):
        parts = zip(kind.kinds_, sample_shape, strict=True)
        found = [default_chain(*part, takes_one_view=takes_one_view) for part in parts]
        chains = [chain for chain in found if chain is not None]
        return [PerPart(chains)] if len(chains) == len(found) else None
    if isinstance(kind, (Tables, Vectors)):
        return [MarginalCorruption(rate=0.3)]
    if isinstance(kind, Images):
        return _chain_of_images(sample_shape, mixes_channels, symmetries)
    if isinstance(kind, Series):
        return [TimeCrop(), GaussianNoise(), MagnitudeScale(), TimeMask()]
    if isinstance(kind, Graphs):
        return [] if takes_one_view else [NodeDrop()]
    return None


def _chain_of_images(
    sample_shape: tuple, mixes_channels: bool, symmetries: tuple[str, ...] | None
) -> list[Augmentation]:
    """Return the views of images; two views of a sample must not be alike in brightness.

    Otherwise that is all the network learns to recognise. Where the images are too few or too
    small to show their symmetries, colour ones are taken for photographs, and grey ones, which may
    be characters, are not mirrored.
    """
    channels = sample_shape[0] if len(sample_shape) == 3 else 1
    takes_colors = channels == 3 and mixes_channels
    if symmetries is None:
        symmetries = SYMMETRIES[:1] if takes_colors else ()
    mirror = _MIRROR if "left_right" in symmetries else 0.0
    upset = _MIRROR if "up_down" in symmetries else 0.0
    moves = _moves(mirror, upset, symmetries)
    if takes_colors and max(sample_shape[-2:]) > _MOST_SIDE_FOR_STRONG_COLORS:
        return [RandomResizedCrop(scale=(0.4, 1.0)), *moves, ColorJitter(0.2, 0.2, 0.2, 0.02)]
    if takes_colors:
        return [*_moves(0.0, upset, symmetries), SimCLRAugmentation(flip=mirror)]
    if channels == 3:
        return [*moves, RandomAffine()]
    jitter = ColorJitter(brightness=0.6, contrast=0.6)
    if min(sample_shape[-2:]) < _LEAST_SIDE_FOR_CROPS:
        return [*moves, RandomAffine(), jitter]
    return [*moves, RandomResizedCrop(scale=(0.5, 1.0)), jitter, GaussianBlur(p=0.3)]


def _moves(mirror: float, upset: float, symmetries: tuple[str, ...]) -> list[Augmentation]:
    """Return mirrors of these probabilities, and turns by any angle if quarters are allowed."""
    flips = [RandomFlip(horizontal=mirror, vertical=upset)] if mirror or upset else []
    return [*flips, *([clone(_TURN)] if "quarter_turn" in symmetries else [])]


def are_photographs(schema: Schema) -> bool:
    """Return whether samples are colour images large enough for a network of photographs."""
    shape = schema.sample_shape
    is_colored = isinstance(schema.kind, Images) and len(shape) == 3 and shape[0] == 3
    return is_colored and max(shape[-2:]) > _MOST_SIDE_FOR_STRONG_COLORS


def missing(parameter: str, kind: Kind) -> ValueError:
    """Return the error of a kind without a default for a parameter."""
    none = ", or [] for none" if parameter == "augmentation" else ""
    return ValueError(
        f"There is no default {parameter!r} for {kind.name} ({kind!r}): pass one{none}."
    )
