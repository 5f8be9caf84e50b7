"""Frameworks: which vectors are anchors, positives and candidate negatives."""

from .._data._batches import Batch
from .._objective._contrast import Contrast, in_batch
from ._base import FitContext, Framework, Session
from ._checks import check_framework
from ._cmc import CMC
from ._infograph import InfoGraph
from ._moco import KeyQueue, MoCo, MomentumNetwork
from ._simclr import SimCLR

__all__ = [
    "CMC",
    "Batch",
    "Contrast",
    "FitContext",
    "Framework",
    "InfoGraph",
    "KeyQueue",
    "MoCo",
    "MomentumNetwork",
    "Session",
    "SimCLR",
    "check_framework",
    "in_batch",
]
