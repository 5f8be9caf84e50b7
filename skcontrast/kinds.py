"""Kinds of data: what X holds, and how it becomes batches.

The kind of X is guessed by default. It is declared by ``ContrastiveEmbedder(kind=...)``, by an
augmentation or by an encoder.
"""

from __future__ import annotations

from ._data._graphs import Graphs
from ._data._images import Images
from ._data._kinds import Kind
from ._data._pairs import Pairs
from ._data._vectors import Vectors

__all__ = ["Graphs", "Images", "Kind", "Pairs", "Vectors"]
