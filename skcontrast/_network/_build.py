"""The network, an encoder and a projection head or several, and how a new one is built."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .._layers._images import Reduced, reduced_sides
from .._runtime import use_threads_for
from ..encoders import Encoder
from ..encoders._base import build_encoder, to_channels_last
from ..encoders._mlp import projection_head
from ..frameworks._moco import BATCH_NORM
from ..frameworks._modalities import NoSplit, ParallelNetworks, Split, SplitColumns
from ..kinds._base import Kind
from ..kinds._recognise import MultimodalKind
from ..similarity import Similarity

# Samples from which an encoder learns what gradients do not train.
_ENOUGH_SAMPLES = 2000


class Network(nn.Module):
    """Encoder and projection head: (n, ...) → (n, projection_dim).

    Parameters
    ----------
    encoder, projector : torch.nn.Module
        The two.
    own_names : dict of str to str, default={}
        How names of parameters begin here, and how they begin for the user, who knows nothing of
        the layers around the encoder.
    """

    def __init__(
        self, encoder: nn.Module, projector: nn.Module, own_names: Mapping[str, str] = {}
    ):
        super().__init__()
        self.encoder, self.projector, self.own_names = encoder, projector, own_names

    def forward(self, x: Any) -> Tensor:
        return self.projector(self.encoder(x))

    def train(self, mode: bool = True) -> Network:
        """Switch to training or inference mode; frozen parts keep their running statistics.

        Batch normalisation in a part whose parameters all have ``requires_grad=False`` stays in
        inference mode.
        """
        super().train(mode)
        if mode and not all(parameter.requires_grad for parameter in self.parameters()):
            frozen = [part for part in self.modules() if _is_frozen(part)]
            for layer in (layer for part in frozen for layer in part.modules()):
                if isinstance(layer, BATCH_NORM):
                    layer.eval()
        return self

    def own_named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield the parameters, named as in the user's modules."""
        for name, parameter in self.named_parameters():
            start = next((start for start in self.own_names if name.startswith(start)), "")
            yield self.own_names.get(start, "") + name.removeprefix(start), parameter


def _is_frozen(part: nn.Module) -> bool:
    """Return whether a module has parameters, none of which is trained."""
    parameters = list(part.parameters())
    return bool(parameters) and not any(parameter.requires_grad for parameter in parameters)


class Directions(nn.Module):
    """The vectors that ``transform`` returns for projections: for most similarities, themselves.

    Parameters
    ----------
    similarity : Similarity
        Its ``directions`` is applied to each part.
    n_parts : int
        Number of projections that are concatenated.
    """

    def __init__(self, similarity: Similarity, n_parts: int):
        super().__init__()
        self.similarity, self.n_parts = similarity, n_parts

    def forward(self, z: Tensor) -> Tensor:
        """Map (..., n_parts · (d + n_extra)) to (..., n_parts · d)."""
        return self.similarity.directions(z.unflatten(-1, (self.n_parts, -1))).flatten(-2)


@dataclass(frozen=True)
class Widths:
    """Widths of the outputs of a network.

    Attributes
    ----------
    representation, projection : int
        Components of the representation and of the projection, of all parts together.
    n_parts : int
        Number of parts of a sample, each with its own encoder and head.
    """

    representation: int
    projection: int
    n_parts: int = 1


def build_network(
    subset: Any,
    kind: Kind,
    scaler: Any,
    split: Split | NoSplit | None,
    *,
    choose_encoder: Callable[[int, Kind, tuple], Any],
    n_components: int | None,
    projection_dim: int,
    similarity: Similarity,
    owner: str,
) -> tuple[Network, Widths]:
    """Return a network with fresh weights, drawn from torch's global generator.

    Parameters
    ----------
    subset : Tensor of shape (n, ...) or any other batch
        Samples, as the network will get them.
    kind : Kind
        Their kind.
    scaler : object
        The fitted scaler that made them from X.
    split : Split, NoSplit or None
        The parts of a sample that have separate encoders; None for one encoder.
    choose_encoder : callable
        ``choose_encoder(place, kind, sample_shape)`` returns the ``encoder`` parameter for a part.
    n_components, projection_dim : int or None, int
        Parameters of the embedder.
    similarity : Similarity
        Determines how many numbers the heads return.
    owner : str
        The name of the estimator's class, for messages.
    """
    parts = _parts(subset, kind, scaler, split)
    for place, part in enumerate(parts):
        part.given = choose_encoder(place, part.kind, part.shape)
    _reduce(parts, split)
    for part in parts:
        part.build(n_components, owner)
    encoders = nn.ModuleList([part.encoder for part in parts])
    use_threads_for(encoders, *((part.kind, part.shape) for part in parts))
    widths = [projection_dim or part.width for part in parts]
    _check_widths(widths, projection_dim, similarity, owner)
    heads = [projection_head(part.width, projection_dim, similarity.n_extra) for part in parts]
    channels_last = [
        to_channels_last(part.given, part.encoder, part.kind, part.shape) for part in parts
    ]
    for part, last in zip(parts, channels_last, strict=True):
        # Parts of one array stand behind one layer.
        part.learn(all(channels_last) if isinstance(split, Split) else last)
    network = _assembled(split, parts, heads).float()
    return network, Widths(sum(part.width for part in parts), sum(widths), len(parts))


@dataclass
class _Part:
    """A part of the samples, and what is built for it.

    Attributes
    ----------
    kind, shape : Kind, tuple
        What its encoder gets.
    subset, scaler : batch, object
        Some samples as a batch, and the fitted scaler that has made it.
    split, place : Split or None, int
        How it is taken out of the batch, if that holds the others, too.
    given, encoder, width : object, torch.nn.Module, int
        The parameter `encoder` of the embedder, what it has built, and the width of that.
    layer : torch.nn.Module or None
        What stands before the encoder.
    larger : tuple of int or None
        Height and width of images that are reduced for the encoder.
    """

    kind: Kind
    shape: tuple
    subset: Any
    scaler: Any
    split: Split | None = None
    place: int = 0
    given: Any = None
    encoder: nn.Module = field(default_factory=nn.Identity)
    width: int = 0
    layer: nn.Module | None = None
    larger: tuple | None = None

    def build(self, n_components: int | None, owner: str) -> None:
        """Build the encoder, tried on zeros, or, if samples are no numbers, on some of them."""
        example = None if self.kind.float_batches else self.samples(2)
        self.encoder, self.width = build_encoder(
            self.given, self.shape, n_components, kind=self.kind, example=example, owner=owner
        )
        name = getattr(self.given, "__name__", type(self.given).__name__)
        self.kind._check_encoder(self.encoder, self.samples, name)

    def learn(self, channels_last: bool) -> None:
        """Put a layer before the encoder, which then learns what gradients do not train."""
        self.layer = self.kind._first_layer(self.subset, self.scaler, channels_last=channels_last)
        if self.larger is not None:
            self.layer = Reduced(self.layer or nn.Identity(), self.larger, self.shape[-2:])
        if isinstance(self.given, Encoder) and type(self.given).learn is not Encoder.learn:
            batch = self.samples(_ENOUGH_SAMPLES, self.layer)
            rng = np.random.RandomState(int(torch.randint(2**31, ())))
            self.given.learn(self.encoder, batch, rng)

    def samples(self, n: int, layer: nn.Module | None = None) -> Any:
        """Return at most n samples as the encoder gets them behind a layer."""
        batch = self.subset[torch.arange(0, len(self.subset), -(-len(self.subset) // n))]
        batch = batch if layer is None else layer(batch)
        return batch if self.split is None else self.split(batch)[self.place]


def _parts(subset: Any, kind: Kind, scaler: Any, split: Split | NoSplit | None) -> list[_Part]:
    """Return what each encoder is built for."""
    # Several arrays are parts already, each with its kind and scaler.
    if isinstance(kind, MultimodalKind):
        several = zip(kind.kinds_, subset.parts, scaler.scalers, strict=True)
        return [part for own, x, s in several for part in _parts(x, own, s, None)]
    shape = kind._encoded_shape(tuple(subset.shape[1:]))
    if not isinstance(split, Split):
        return [_Part(kind, shape, subset, scaler)]
    if shape[0] != subset.shape[1]:
        raise ValueError(
            f"X holds {kind.name}, whose samples cannot be split: pass a framework with one "
            "encoder, such as SimCLR() or MoCo(), or several arrays as the parts."
        )
    # Of one array, encoders see the split batch: as many channels as their part has.
    converted = split.convert(subset)
    return [
        _Part(kind, (n, *shape[1:]), converted, scaler, split, place)
        for place, (n, *_) in enumerate(split.shapes)
    ]


def _reduce(parts: Sequence[_Part], split: Split | NoSplit | None) -> None:
    """Let images of each part have at most the area that its encoder reads."""
    largest: list[Any] = [getattr(part.given, "largest_side", None) for part in parts]
    if isinstance(split, Split):  # which stands behind a layer for all parts
        largest = [None if None in largest else max(largest)] * len(parts)
    for part, most in zip(parts, largest, strict=True):
        sides = part.shape[-2:]
        is_image = part.kind._image_shape(part.shape) is not None
        if is_image and (read := reduced_sides(sides, most)) != sides:
            part.shape, part.larger = (*part.shape[:-2], *read), sides


def _assembled(
    split: Split | NoSplit | None, parts: Sequence[_Part], heads: Sequence[nn.Module]
) -> Network:
    """Return encoders, the layers before them and heads as one network.

    Parts of one array have the same layer.
    """
    encoder: nn.Module
    # One array is split after it has been converted: the layer before the encoders is shared.
    # Options name parameters as if encoders stood alone: each name in the network has a short one.
    if isinstance(split, Split):
        shared = [] if parts[0].layer is None else [parts[0].layer]
        apart = ParallelNetworks(split, [part.encoder for part in parts])
        encoder = nn.Sequential(split.convert, *shared, apart)
        names = {f"encoder.{1 + len(shared)}.networks.": "encoder."}
    else:
        whole = [
            part.encoder if part.layer is None else nn.Sequential(part.layer, part.encoder)
            for part in parts
        ]
        has_layer = [place for place, part in enumerate(parts) if part.layer is not None]
        if split is None:
            return Network(whole[0], heads[0], {"encoder.1.": "encoder."} if has_layer else {})
        encoder = ParallelNetworks(split, whole)
        names = {f"encoder.networks.{place}.1.": f"encoder.{place}." for place in has_layer}
        names["encoder.networks."] = "encoder."
    names["projector.networks."] = "projector."
    widths = SplitColumns([part.width for part in parts])
    return Network(encoder, ParallelNetworks(widths, heads), names)


def _check_widths(
    widths: list[int], projection_dim: int, similarity: Similarity, owner: str
) -> None:
    """Raise ValueError if the similarity needs wider outputs, or if those of parts differ."""
    if min(widths) < similarity.least_dimension:
        name = "projection_dim" if projection_dim else "n_components"
        raise ValueError(
            f"The {name!r} parameter of {owner} must be at least {similarity.least_dimension} "
            f"with {similarity!r}, got {min(widths)}."
        )
    if len(set(widths)) > 1:
        raise ValueError(
            f"The encoders of the parts return {' and '.join(map(str, widths))} components, which "
            "cannot be compared: pass projection_dim > 0 or n_components."
        )
