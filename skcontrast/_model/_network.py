"""Construction of the network: encoders, the layers before them and projection heads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from .._layers._images import Reduced, reduced_sides
from .._runtime import on_threads, threads_for
from ..encoders import Encoder
from ..encoders._base import build_encoder, to_channels_last
from ..encoders._mlp import projection_head
from ..frameworks._moco import BATCH_NORM
from ..frameworks._modalities import AnySplit, ParallelNetworks, Split
from ..kinds._base import Kind, Scaler
from ..kinds._recognise import MultimodalKind
from ..similarity import Similarity
from ._adapt import adapt

# Samples from which an encoder computes what gradients do not train, such as filters.
_ENOUGH_SAMPLES = 2000


class Network(nn.Module):
    """Encoder and projection head: (n, ...) → (n, projection_dim).

    Parameters
    ----------
    encoder, projector : torch.nn.Module
        The encoder and the projection head.
    user_names : dict of str to str, default={}
        Maps prefixes of parameter names in this network to those that users write, which leave
        out the layers around the encoder.
    """

    def __init__(
        self, encoder: nn.Module, projector: nn.Module, user_names: Mapping[str, str] = {}
    ):
        super().__init__()
        self.encoder, self.projector, self.user_names = encoder, projector, user_names

    def forward(self, x: Any) -> Tensor:
        return self.projector(self.encoder(x))

    def train(self, mode: bool = True) -> Network:
        """Switch to training or inference mode; frozen modules keep their running statistics.

        Batch normalisation in a module whose parameters all have ``requires_grad=False`` stays in
        inference mode.
        """
        super().train(mode)
        if mode and not all(parameter.requires_grad for parameter in self.parameters()):
            frozen = [module for module in self.modules() if _is_frozen(module)]
            for layer in (layer for module in frozen for layer in module.modules()):
                if isinstance(layer, BATCH_NORM):
                    layer.eval()
        return self

    def user_named_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield the parameters with the names that they have in the user's modules."""
        for name, parameter in self.named_parameters():
            start = next((start for start in self.user_names if name.startswith(start)), "")
            yield self.user_names.get(start, "") + name.removeprefix(start), parameter


def _is_frozen(module: nn.Module) -> bool:
    """Return whether a module has parameters, none of which is trained."""
    parameters = list(module.parameters())
    return bool(parameters) and not any(parameter.requires_grad for parameter in parameters)


class Directions(nn.Module):
    """The last layer of ``transform`` for projections: the similarity's ``directions``.

    Parameters
    ----------
    similarity : Similarity
        Its ``directions`` is applied to each projection.
    n_modalities : int
        Number of projections that are concatenated.
    """

    def __init__(self, similarity: Similarity, n_modalities: int):
        super().__init__()
        self.similarity, self.n_modalities = similarity, n_modalities

    def forward(self, z: Tensor) -> Tensor:
        """Map (..., n_modalities · (d + n_extra)) to (..., n_modalities · d)."""
        return self.similarity.directions(z.unflatten(-1, (self.n_modalities, -1))).flatten(-2)


@dataclass(frozen=True)
class Widths:
    """Widths of the outputs of a network.

    Attributes
    ----------
    representation, projection : int
        Components of the representation and of the projection, of all modalities together.
    n_modalities : int
        Number of modalities, each with its own encoder and head.
    """

    representation: int
    projection: int
    n_modalities: int = 1


class Built(NamedTuple):
    """A new network, and what is known of it; the attributes are those of `Model`."""

    network: Network
    widths: Widths
    adaptation: Any
    n_threads: int
    work: float


def build_network(
    subset: Any,
    kind: Kind,
    scaler: Scaler,
    split: AnySplit,
    *,
    choose_encoder: Callable[[int, Kind, tuple], Any],
    n_components: int | None,
    projection_dim: int,
    similarity: Similarity,
    owner: str,
    batch_size: int,
    relations: str | None = None,
) -> Built:
    """Return a network with fresh weights, drawn from torch's global generator.

    Parameters
    ----------
    subset : Tensor of shape (n, ...) or any other batch
        Samples in the form that the network takes.
    kind : Kind
        The kind of the samples.
    scaler : object
        The fitted scaler that converted X to `subset`.
    split : Split, NoSplit or None
        How samples are split into modalities with separate encoders; None for one encoder.
    choose_encoder : callable
        ``choose_encoder(index, kind, sample_shape)`` returns the ``encoder`` of a modality.
    n_components, projection_dim : int or None, int
        Parameters of the embedder.
    similarity : Similarity
        Determines the width of the heads' output.
    owner : str
        The name of the estimator's class, for messages.
    batch_size : int
        Samples in a batch of the training, which determine the number of threads.
    relations : {"labels", "groups"} or None, default=None
        What the training knows about samples beyond their views.
    """
    branches = _branches(subset, kind, scaler, split)
    for index, branch in enumerate(branches):
        branch.parameter = choose_encoder(index, branch.kind, branch.shape)
    _reduce(branches, split)
    for branch in branches:
        branch.build(n_components, owner)
    work = sum(branch.work for branch in branches)
    widths = [projection_dim or branch.width for branch in branches]
    _check_widths(widths, projection_dim, similarity, owner)
    heads = [projection_head(b.width, projection_dim, similarity.n_extra) for b in branches]
    channels_last = [to_channels_last(b.parameter, b.encoder, b.kind, b.shape) for b in branches]
    with on_threads(threads_for(batch_size * work)):
        n_threads = torch.get_num_threads()
        for branch, last in zip(branches, channels_last, strict=True):
            # Modalities in one array share one layer.
            branch.learn(all(channels_last) if isinstance(split, Split) else last, relations)
    network = _assemble(split, branches, heads).float()
    width = sum(branch.width for branch in branches)
    decisions = [branch.adaptation for branch in branches]
    adaptation = decisions if len(decisions) > 1 and any(decisions) else decisions[0]
    return Built(network, Widths(width, sum(widths), len(branches)), adaptation, n_threads, work)


@dataclass
class _Branch:
    """An encoder, the samples that it is built for, and the layer before it.

    Attributes
    ----------
    kind, shape : Kind, tuple
        Kind and shape of the samples that the encoder takes.
    subset, scaler : batch, object
        A batch of samples, and the fitted scaler that converted them.
    split, index : Split or None, int
        How the modality is split off the batch, if that holds several.
    parameter, encoder, width : object, torch.nn.Module, int
        The parameter `encoder` of the embedder, the module built from it, and its width.
    layer : torch.nn.Module or None
        The layer before the encoder.
    work : float
        Multiplications of the encoder for a sample.
    larger : tuple of int or None
        Height and width of images before they are reduced for the encoder.
    adaptation : dict or None
        The decision on a pretrained network.
    """

    kind: Kind
    shape: tuple
    subset: Any
    scaler: Any
    split: Split | None = None
    index: int = 0
    parameter: Any = None
    encoder: nn.Module = field(default_factory=nn.Identity)
    width: int = 0
    work: float = 0
    layer: nn.Module | None = None
    larger: tuple | None = None
    adaptation: dict[str, Any] | None = None

    def build(self, n_components: int | None, owner: str) -> None:
        """Build the encoder and try it on zeros, or on two samples if they are not numbers."""
        example = None if self.kind.float_batches else self.samples(2)
        options: Any = {"kind": self.kind, "example": example, "owner": owner}
        with FlopCounterMode(display=False) as counter:
            built = build_encoder(self.parameter, self.shape, n_components, **options)
        self.encoder, self.width = built
        self.work = counter.get_total_flops() / 4  # two samples; sums count, too

    def learn(self, channels_last: bool, relations: str | None) -> None:
        """Build the layer before the encoder, and compute what gradients do not train."""
        self.layer = self.kind.first_layer(self.subset, self.scaler, channels_last=channels_last)
        if self.larger is not None:
            self.layer = Reduced(self.layer or nn.Identity(), self.larger, self.shape[-2:])
        if isinstance(self.parameter, Encoder) and type(self.parameter).learn is not Encoder.learn:
            batch = self.samples(_ENOUGH_SAMPLES, self.layer)
            rng = np.random.RandomState(int(torch.randint(2**31, ())))
            self.parameter.learn(self.encoder, batch, rng)
            if self.parameter.adapts:
                self.adaptation = adapt(self.parameter, self.encoder, batch, rng, relations)

    def samples(self, n: int, layer: nn.Module | None = None) -> Any:
        """Return at most n samples, after a layer if one is passed."""
        batch = self.subset[torch.arange(0, len(self.subset), -(-len(self.subset) // n))]
        batch = batch if layer is None else layer(batch)
        return batch if self.split is None else self.split(batch)[self.index]


def _branches(subset: Any, kind: Kind, scaler: Any, split: AnySplit) -> list[_Branch]:
    """Return a branch for each encoder, not built yet."""
    # Several arrays are modalities already, each with its kind and scaler.
    if isinstance(kind, MultimodalKind):
        modalities = zip(subset.modalities, kind.kinds_, scaler.scalers, strict=True)
        return [branch for modality in modalities for branch in _branches(*modality, None)]
    shape = kind.encoded_shape(tuple(subset.shape[1:]))
    if not isinstance(split, Split):
        return [_Branch(kind, shape, subset, scaler)]
    if shape[0] != subset.shape[1]:
        raise ValueError(
            f"X holds {kind.name}, whose samples cannot be split: pass a framework with one "
            "encoder, such as SimCLR() or MoCo(), or several arrays."
        )
    # One array is split by channels: each encoder takes those of its modality.
    converted = split.convert(subset)
    shapes = [(n, *shape[1:]) for n, *_ in split.shapes]
    return [_Branch(kind, s, converted, scaler, split, k) for k, s in enumerate(shapes)]


def _reduce(branches: Sequence[_Branch], split: AnySplit) -> None:
    """Reduce images to the largest area that their encoder reads."""
    largest: list[Any] = [getattr(branch.parameter, "largest_side", None) for branch in branches]
    if isinstance(split, Split):  # all share the layer that reduces
        largest = [None if None in largest else max(largest)] * len(branches)
    for branch, most in zip(branches, largest, strict=True):
        sides = branch.shape[-2:]
        is_image = branch.kind.image_shape(branch.shape) is not None
        if is_image and (read := reduced_sides(sides, most)) != sides:
            branch.shape, branch.larger = (*branch.shape[:-2], *read), sides


def _assemble(split: AnySplit, branches: Sequence[_Branch], heads: Sequence[nn.Module]) -> Network:
    """Return encoders, the layers before them and heads as one network.

    Modalities in one array share the layer before their encoders.
    """
    encoder: nn.Module
    # One array is split after its conversion, so the layer before the encoders is shared. Users
    # name parameters without the layers around encoders: each prefix has a short one.
    if isinstance(split, Split):
        shared = [] if branches[0].layer is None else [branches[0].layer]
        parallel = ParallelNetworks(split, [branch.encoder for branch in branches])
        encoder = nn.Sequential(split.convert, *shared, parallel)
        names = {f"encoder.{1 + len(shared)}.networks.": "encoder."}
    else:
        pairs = [(branch.layer, branch.encoder) for branch in branches]
        networks = [net if layer is None else nn.Sequential(layer, net) for layer, net in pairs]
        has_layer = [index for index, branch in enumerate(branches) if branch.layer is not None]
        if split is None:
            return Network(networks[0], heads[0], {"encoder.1.": "encoder."} if has_layer else {})
        encoder = ParallelNetworks(split, networks)
        names = {f"encoder.networks.{index}.1.": f"encoder.{index}." for index in has_layer}
        names["encoder.networks."] = "encoder."
    names["projector.networks."] = "projector."
    widths = [branch.width for branch in branches]
    columns = Split(torch.arange(sum(widths)).split(widths), ())
    return Network(encoder, ParallelNetworks(columns, heads), names)


def _check_widths(
    widths: list[int], projection_dim: int, similarity: Similarity, owner: str
) -> None:
    """Raise ValueError if the similarity needs wider outputs, or if modalities differ in width."""
    if min(widths) < similarity.least_dimension:
        name = "projection_dim" if projection_dim else "n_components"
        raise ValueError(
            f"The {name!r} parameter of {owner} must be at least {similarity.least_dimension} "
            f"with {similarity!r}, got {min(widths)}."
        )
    if len(set(widths)) > 1:
        raise ValueError(
            f"The encoders return {' and '.join(map(str, widths))} components, which "
            "cannot be compared: pass projection_dim > 0 or n_components."
        )
