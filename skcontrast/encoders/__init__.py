"""Encoders: what turns a sample into its representation."""

from __future__ import annotations

from ._base import Encoder
from .convnet import ConvNet
from .mlp import MLP
from .resnet import ResNet

__all__ = ["MLP", "ConvNet", "Encoder", "ResNet"]
