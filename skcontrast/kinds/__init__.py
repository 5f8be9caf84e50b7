"""Kinds of data: validation of X, and batches.

The kind of X is detected by default. To declare it, pass ``ContrastiveEmbedder(kind=...)``, or set
`kind` on a custom augmentation or encoder.
"""

from .._data._modalities import TensorBatch
from ._base import Kind, check_kind
from ._graphs import Graphs
from ._images import Images
from ._recognise import MultimodalKind
from ._series import Series
from ._vectors import Vectors

# The public module, in messages and pickles.
Kind.__module__ = TensorBatch.__module__ = __name__

__all__ = [
    "Graphs",
    "Images",
    "Kind",
    "MultimodalKind",
    "Series",
    "TensorBatch",
    "Vectors",
    "check_kind",
]
