"""Augmentations: transformers that tell the embedder how to draw views of a sample."""

from ._base import Augmentation
from ._compose import compose
from ._views import AugmentationDropped, Views
from .function import FunctionAugmentation
from .graphs import AttributeMask, EdgePerturb, NodeDrop, RandomWalkSubgraph
from .images import (
    ColorJitter,
    GaussianBlur,
    GaussianNoise,
    RandomAffine,
    RandomFlip,
    RandomGrayscale,
    RandomResizedCrop,
    SimCLRAugmentation,
)
from .per_part import PerPart
from .unflatten import Unflatten
from .vectors import FeatureDropout, MarginalCorruption

__all__ = [
    "AttributeMask",
    "Augmentation",
    "AugmentationDropped",
    "ColorJitter",
    "EdgePerturb",
    "FeatureDropout",
    "FunctionAugmentation",
    "GaussianBlur",
    "GaussianNoise",
    "MarginalCorruption",
    "NodeDrop",
    "PerPart",
    "RandomAffine",
    "RandomFlip",
    "RandomGrayscale",
    "RandomResizedCrop",
    "RandomWalkSubgraph",
    "SimCLRAugmentation",
    "Unflatten",
    "Views",
    "compose",
]
