"""Encoders: what turns a sample into its representation."""

from __future__ import annotations

from ._base import Encoder
from ._build import build_encoder, to_channels_last
from ._projection import projection_head
from .convnet import ConvNet
from .graph import GCN, GIN
from .mlp import MLP
from .resnet import ResNet

__all__ = [
    "GCN",
    "GIN",
    "MLP",
    "ConvNet",
    "Encoder",
    "ResNet",
    "build_encoder",
    "projection_head",
    "to_channels_last",
]
