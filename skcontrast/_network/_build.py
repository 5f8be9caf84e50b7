"""A new network: an encoder and a projection head, or one of each for each part of a sample."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from ..encoders._build import build_encoder, to_channels_last
from ..encoders._projection import projection_head
from ..frameworks._parts import Halves, Parts, Split
from ..kinds._base import Kind
from ..similarity import Similarity
from ._network import Network


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
    some: Any,
    kind: Kind,
    scaler: Any,
    split: Split | None,
    *,
    choose_encoder: Callable[[tuple], Any],
    n_components: int | None,
    projection_dim: int,
    similarity: Similarity,
    parameters: Mapping[str, Any],
    owner: str,
) -> tuple[Network, Widths]:
    """Return a network with fresh weights, drawn from torch's global generator.

    Parameters
    ----------
    some : Tensor of shape (n, ...) or any other batch
        Samples, as the network will get them.
    kind : Kind
        Their kind.
    scaler : object
        The fitted scaler that made them from X.
    split : Split or None
        The parts of a sample that have separate encoders; None for one encoder.
    choose_encoder : callable
        ``choose_encoder(sample_shape)`` returns the ``encoder`` parameter for a part.
    n_components, projection_dim : int or None, int
        Parameters of the embedder.
    similarity : Similarity
        Determines how many numbers the heads return.
    parameters : dict
        All parameters of the embedder, of which the kind takes what concerns it.
    owner : str
        The name of the estimator's class, for messages.
    """
    shape = kind.encoded_shape(tuple(some.shape[1:]))
    if split is not None and shape != tuple(some.shape[1:]):
        raise ValueError(
            f"X holds {kind.name}, whose samples cannot be split in two: pass a framework with "
            "one encoder, such as SimCLR() or MoCo()."
        )
    shapes = [shape] if split is None else split.shapes
    # An encoder of numbers is tried on zeros, of anything else on what it will get.
    tried_on = None if kind.float_batches else some[torch.arange(2)]
    chosen = [choose_encoder(part) for part in shapes]
    built = [
        build_encoder(own, part, n_components, kind=kind, tried_on=tried_on, owner=owner)
        for own, part in zip(chosen, shapes, strict=True)
    ]
    encoders, widths = zip(*built, strict=True)
    for encoder, own in zip(encoders, chosen, strict=True):
        kind._check_encoder(encoder, some, getattr(own, "__name__", type(own).__name__))
    channels_last = [
        to_channels_last(encoder, kind, part)
        for encoder, part in zip(encoders, shapes, strict=True)
    ]
    projections = [projection_dim or width for width in widths]
    _check_dimension(min(projections), projection_dim, similarity, owner)
    heads = [projection_head(width, projection_dim, similarity.n_extra) for width in widths]
    first = kind.first_layer(
        some if split is None else split.convert(some),
        scaler,
        parameters=parameters,
        channels_last=all(channels_last),
    )
    if split is None:
        encoder = encoders[0] if first is None else nn.Sequential(first, encoders[0])
        names = {} if first is None else {"encoder.1.": "encoder."}
        network = Network(encoder, heads[0], names)
    else:
        _check_widths(projections)
        encoder = nn.Sequential(split.convert, first, Parts(split, encoders))
        names = {"encoder.2.networks.": "encoder.", "projector.networks.": "projector."}
        network = Network(encoder, Parts(Halves(widths[0]), heads), names)
    return network.float(), Widths(sum(widths), sum(projections), len(shapes))


def _check_dimension(d: int, projection_dim: int, similarity: Similarity, owner: str) -> None:
    """Raise ValueError if the similarity needs more than d components."""
    if d < similarity.least_dimension:
        name = "projection_dim" if projection_dim else "n_components"
        raise ValueError(
            f"The {name!r} parameter of {owner} must be at least {similarity.least_dimension} "
            f"with {similarity!r}, got {d}."
        )


def _check_widths(widths: list[int]) -> None:
    """Raise ValueError if the outputs for the parts have different widths."""
    if len(set(widths)) > 1:
        raise ValueError(
            f"The two encoders return {' and '.join(map(str, widths))} components, which cannot "
            "be compared: pass projection_dim > 0 or n_components."
        )
