"""Graphs: many of them, packed into a few arrays."""

from ._batch import GraphBatch
from ._convert import pack_graphs
from ._features import NodeFeatures
from ._packed import PackedGraphs

__all__ = ["GraphBatch", "NodeFeatures", "PackedGraphs", "pack_graphs"]
