"""Versions of the package and of its dependencies."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version

__version__ = "0.1.0"


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of packages by name; that of skcontrast is the one that runs.

    An editable installation keeps the metadata of the day it was made.
    """
    return {name: __version__ if name == "skcontrast" else version(name) for name in packages}
