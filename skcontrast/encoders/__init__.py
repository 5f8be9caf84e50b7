"""Encoders: networks that turn samples into representations."""

from __future__ import annotations

from ._base import Encoder
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
]
