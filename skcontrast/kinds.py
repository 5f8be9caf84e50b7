"""Kinds of data: what X holds, and how it becomes batches.

The kind of X is guessed by default. To declare it, pass ``ContrastiveEmbedder(kind=...)``, or set
`kind` on an augmentation or an encoder of your own.
"""

from __future__ import annotations

from ._data._graphs import Graphs
from ._data._images import Images
from ._data._kinds import Kind
from ._data._pairs import Pairs
from ._data._vectors import Vectors

__all__ = ["Graphs", "Images", "Kind", "Pairs", "Vectors"]
