"""Augmentations: transformers that draw random views of samples."""

from ._base import Augmentation
from ._compose import check_augmentation, compose
from ._function import FunctionAugmentation
from ._graphs import AttributeMask, EdgePerturb, NodeDrop, RandomWalkSubgraph
from ._images import (
    ColorJitter,
    GaussianBlur,
    RandomAffine,
    RandomFlip,
    RandomGrayscale,
    RandomResizedCrop,
    SimCLRAugmentation,
)
from ._per_modality import PerModality
from ._series import MagnitudeScale, TimeCrop, TimeMask, TimeWarp
from ._symmetries import ImageSymmetries, image_symmetries
from ._vectors import GaussianNoise, MarginalCorruption
from ._views import AugmentationDropped, Unflatten, Views

__all__ = [
    "AttributeMask",
    "Augmentation",
    "AugmentationDropped",
    "ColorJitter",
    "EdgePerturb",
    "FunctionAugmentation",
    "GaussianBlur",
    "GaussianNoise",
    "ImageSymmetries",
    "MagnitudeScale",
    "MarginalCorruption",
    "NodeDrop",
    "PerModality",
    "RandomAffine",
    "RandomFlip",
    "RandomGrayscale",
    "RandomResizedCrop",
    "RandomWalkSubgraph",
    "SimCLRAugmentation",
    "TimeCrop",
    "TimeMask",
    "TimeWarp",
    "Unflatten",
    "Views",
    "check_augmentation",
    "compose",
    "image_symmetries",
]
