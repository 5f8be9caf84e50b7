"""Augmentations: transformers that tell the embedder how to draw views of a sample."""

from ._compose import compose
from ._views import Augmentation, AugmentationDropped, Views
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
from .unflatten import Unflatten
from .vectors import FeatureDropout, MarginalCorruption

__all__ = [
    "Augmentation",
    "AugmentationDropped",
    "ColorJitter",
    "FeatureDropout",
    "GaussianBlur",
    "GaussianNoise",
    "MarginalCorruption",
    "RandomAffine",
    "RandomFlip",
    "RandomGrayscale",
    "RandomResizedCrop",
    "SimCLRAugmentation",
    "Unflatten",
    "Views",
    "compose",
]
