"""From the kind of the samples to a new network: one encoder, or one for each part."""

from __future__ import annotations

import torch
from torch import nn

from .._data._validation import GRAPHS, IMAGES, kind_of
from ..encoders import build_encoder, projection_head, to_channels_last
from ..frameworks._parts import Halves, Parts
from ._network import Network, Standardize, channel_statistics


def build_network(some, estimator, split):
    """Return a network with fresh weights, the width of its representation and of its projection.

    Parameters
    ----------
    some : Tensor of shape (n, ...) or GraphBatch
        Samples, as the encoder will get them.
    estimator : ContrastiveEmbedder
        With a fitted input scaler.
    split : Split or None
        The parts that have an encoder each.
    """
    shape = tuple(some.shape[1:])
    shapes = [shape] if split is None else split.shapes
    built = [build_encoder(estimator.encoder, part, estimator.n_components) for part in shapes]
    encoders, widths = zip(*built, strict=True)
    formats = [to_channels_last(*pair) for pair in zip(encoders, shapes, strict=True)]
    convert = None if split is None else split.convert
    n_extra = estimator.similarity_.n_extra
    projection_widths = [estimator.projection_dim or width for width in widths]
    _check_dimension(min(projection_widths), estimator)
    heads = [projection_head(width, estimator.projection_dim, n_extra) for width in widths]
    if kind_of(shape) == GRAPHS:  # whose features come standardised
        return Network(encoders[0], heads[0]).float(), widths[0], projection_widths[0]
    standardize = Standardize(*_statistics(some, shape, estimator, convert), all(formats))
    if split is None:
        network = Network(nn.Sequential(standardize, encoders[0]), heads[0])
    else:
        _check_widths(projection_widths)
        encoder = nn.Sequential(convert, standardize, Parts(split, encoders))
        network = Network(encoder, Parts(Halves(widths[0]), heads))
    return network.float(), sum(widths), sum(projection_widths)


def _statistics(some, shape, estimator, convert):
    """Return mean and standard deviation of features or channels, float32."""
    if kind_of(shape) == IMAGES:
        some = some if convert is None else convert(some)
        mean, std = channel_statistics(some) if estimator.standardize else (0.0, 1.0)
    else:
        mean, std = estimator._scaler.mean_, estimator._scaler.std_
    return [torch.as_tensor(value, dtype=torch.float32) for value in (mean, std)]


def _check_dimension(d, estimator):
    similarity = estimator.similarity_
    if d < similarity.least_dimension:
        name = "projection_dim" if estimator.projection_dim else "n_components"
        raise ValueError(
            f"The {name!r} parameter of ContrastiveEmbedder must be at least "
            f"{similarity.least_dimension} with {similarity!r}, got {d}."
        )


def _check_widths(widths):
    if len(set(widths)) > 1:
        raise ValueError(
            f"The two encoders of CMC return {' and '.join(map(str, widths))} components, which "
            "cannot be compared: pass projection_dim > 0 or n_components."
        )
