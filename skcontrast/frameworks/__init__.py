"""Frameworks: who is contrasted with whom."""

from ._base import Framework
from .simclr import SimCLR

__all__ = ["Framework", "SimCLR"]
