"""Features that need no training: the cheap rivals of an embedding, as transformers."""

from ._base import Features
from ._graphs import GraphProfile, GraphSize, WeisfeilerLehman
from ._images import OrientedGradients, PatchDictionary
from ._raw import Frozen, Raw
from ._series import MiniRocket
from ._whitening import PartialWhitening

__all__ = [
    "Features",
    "Frozen",
    "GraphProfile",
    "GraphSize",
    "MiniRocket",
    "OrientedGradients",
    "PartialWhitening",
    "PatchDictionary",
    "Raw",
    "WeisfeilerLehman",
]
