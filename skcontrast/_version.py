"""Versions of the package and of its dependencies."""

from collections.abc import Iterable
from importlib.metadata import version

__version__ = "0.1.0"


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Return the versions of packages by name.

    That of skcontrast is ``__version__``: the metadata of an editable installation may be old.
    """
    return {name: __version__ if name == "skcontrast" else version(name) for name in packages}
