"""Training-free features, as transformers."""

from ._base import Features, Frozen, Raw
from ._graphs import GraphProfile, WeisfeilerLehman
from ._signals import MiniRocket, OrientedGradients, PatchDictionary
from ._whitening import PartialWhitening

__all__ = [
    "Features",
    "Frozen",
    "GraphProfile",
    "MiniRocket",
    "OrientedGradients",
    "PartialWhitening",
    "PatchDictionary",
    "Raw",
    "WeisfeilerLehman",
]
