"""Graphs, packed into a few arrays."""

from ._batch import GraphBatch
from ._convert import pack_graphs
from ._packed import PackedGraphs

__all__ = ["GraphBatch", "PackedGraphs", "pack_graphs"]
