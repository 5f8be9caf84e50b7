"""Graphs of TUDataset, folders of image files, and samples that consist of several arrays."""

from .._data._parts import Parts
from ._image_folder import ImageFolder
from ._tudataset import fetch_tudataset

__all__ = ["ImageFolder", "Parts", "fetch_tudataset"]
