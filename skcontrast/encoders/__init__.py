"""Encoders: networks that map samples to representations."""

from ._base import Encoder, check_encoder
from ._convnet import ConvNet, PatchNet, ResNet
from ._graph import GIN
from ._mlp import MLP
from ._pretrained import Pretrained
from ._series_net import SeriesNet

__all__ = [
    "GIN",
    "MLP",
    "ConvNet",
    "Encoder",
    "PatchNet",
    "Pretrained",
    "ResNet",
    "SeriesNet",
    "check_encoder",
]
