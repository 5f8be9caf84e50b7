"""Features that need no training: the cheap rivals of an embedding, as transformers."""

from ._base import Features
from ._gradients import OrientedGradients
from ._graphs import GraphProfile, WeisfeilerLehman
from ._patches import PatchDictionary
from ._series import MiniRocket
from ._whitening import PartialWhitening

__all__ = [
    "Features",
    "GraphProfile",
    "MiniRocket",
    "OrientedGradients",
    "PartialWhitening",
    "PatchDictionary",
    "WeisfeilerLehman",
]
