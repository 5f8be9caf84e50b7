"""Features that need no training: the cheap rivals of an embedding, as transformers."""

from ._base import Features
from ._frozen import Frozen
from ._gradients import OrientedGradients
from ._graphs import GraphProfile, GraphSize, WeisfeilerLehman
from ._patches import PatchDictionary
from ._raw import Raw
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
