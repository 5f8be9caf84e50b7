"""Frameworks: who is contrasted with whom."""

from ..objective import Contrast
from ._base import FitContext, Framework, Session
from ._memory import KeyQueue
from ._momentum import MomentumNetwork
from .cmc import CMC
from .infograph import InfoGraph
from .moco import MoCo
from .simclr import SimCLR

__all__ = [
    "CMC",
    "Contrast",
    "FitContext",
    "Framework",
    "InfoGraph",
    "KeyQueue",
    "MoCo",
    "MomentumNetwork",
    "Session",
    "SimCLR",
]
