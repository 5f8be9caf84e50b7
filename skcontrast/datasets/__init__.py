"""Loaders of public data sets, in the manner of ``sklearn.datasets``."""

from .tudataset import fetch_tudataset

__all__ = ["fetch_tudataset"]
