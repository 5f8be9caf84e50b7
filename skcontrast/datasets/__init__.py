"""Folders of image files, and samples that consist of several arrays."""

from .._data._parts import Parts
from ._image_folder import ImageFolder

__all__ = ["ImageFolder", "Parts"]
