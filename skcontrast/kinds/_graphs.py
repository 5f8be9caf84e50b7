"""Graphs: of networkx, of PyTorch Geometric, or packed."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from .._checks import parameter
from .._data._array_like import refuse_unordered
from .._warnings import warn
from ..graphs import GraphBatch, pack_graphs
from ..graphs._batch import EdgeColumns
from ..graphs._features import NodeFeatures
from ..graphs._networks import ForeignNetwork, GraphNetwork
from ..graphs._packed import Topology
from ._base import Kind, Request, Schema

_NODES_PER_CALL = 2**15


# In smaller graphs, each node may have its own category.
_FEWEST_NAMED = 6


class Graphs(Kind):
    """Graphs: a list of networkx graphs or of PyTorch Geometric's ``Data``, or `PackedGraphs`.

    The shape of a sample is ``(None, n_node_attributes)``: graphs have any number of nodes.

    Parameters
    ----------
    node_features : {"auto", "degree", "constant"}, default="auto"
        The description of nodes. "auto": their attributes ``x``, standardised except for
        columns of 0 and 1, and a one-hot code of ``label``, which is zero for categories that
        were not seen in `fit`; without any, the degree. "degree": a cumulative code of the
        in-degree d, with component k equal to 1 if d ≥ k, up to the largest degree in `fit`, at
        most 64. "constant": a single 1.
    edge_features : "auto" or None, default="auto"
        The description of edges. "auto": their attributes ``x`` and ``weight``, standardised
        except for columns of 0 and 1, and a one-hot code of ``label``, if they have any of these.
        None: nothing.
    standardize : bool, default=True
        Whether to scale the attributes of nodes and edges to zero mean and unit variance.

    See Also
    --------
    skcontrast.graphs.pack_graphs : Packs graphs once, before several fits.
    Kind : The base class.

    Examples
    --------
    >>> import networkx as nx
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.kinds import Graphs
    >>> graphs = [nx.cycle_graph(5 + k % 4) for k in range(20)]
    >>> embedder = ContrastiveEmbedder(kind=Graphs(), max_epochs=1, random_state=0)
    >>> embedder.fit_transform(graphs).shape
    (20, 99)
    """

    name = "graphs"
    expected = "graphs, X as a list of networkx graphs"

    node_features: Literal["auto", "degree", "constant"] = parameter(
        {"auto", "degree", "constant"}, default="auto"
    )
    edge_features: Literal["auto"] | None = parameter({"auto", None}, default="auto")
    standardize: bool = parameter(["boolean"], default=True)

    def describes(self, sample_shape: tuple) -> bool:
        """Return whether this is ``(None, n_node_features)``, or also has ``n_edge_features``."""
        return len(sample_shape) in (2, 3) and sample_shape[0] is None

    def read(self, X: Any, request: Request) -> tuple[Any, Schema]:
        refuse_unordered(X)
        X = pack_graphs(X)
        request.check_length(X)
        return X, Schema(self, X.shape[1:])

    def check_unusual(self, X: Any, *, is_declared: bool) -> None:
        """Warn about attributes that are ignored, and about labels that are names of nodes."""
        if X.labels is not None and _are_names(X):
            warn(
                "The node attribute 'label' has another value at every node of each graph, as "
                "names have. To remove it: for g in X: [d.pop('label') for _, d in "
                "g.nodes(data=True)], and of PyTorch Geometric: del g.label."
            )
        if X.ignored:
            warn(
                f"Some attributes of graphs in X are ignored: {', '.join(X.ignored)}. Remove or "
                "rename them: 'x' (numbers), 'label' (a category) or, for edges only, 'weight'."
            )

    def scaler(self) -> NodeFeatures:
        """Return the unfitted map from graphs to batches; see `Kind.scaler`."""
        return NodeFeatures(self.node_features, self.standardize, self.edge_features)

    def example_batch(self, sample_shape: tuple) -> GraphBatch:
        """Return a path of three nodes and one of two."""
        edges = torch.tensor([[0, 1, 1, 2, 3, 4], [1, 0, 2, 1, 4, 3]])
        topology = Topology.from_edges(edges, torch.tensor([0, 3, 5]), True)
        columns = EdgeColumns(torch.zeros(6, sample_shape[2])) if len(sample_shape) == 3 else None
        return GraphBatch(topology, torch.zeros(5, sample_shape[1]), edges=columns)

    def adapt(self, module: nn.Module) -> nn.Module:
        """Return a module in the style of PyTorch Geometric as one that takes a GraphBatch."""
        return module if isinstance(module, GraphNetwork) else ForeignNetwork(module)

    def rows_per_call(self, X: Any) -> int:
        """Return the number of graphs that have about 32,768 nodes together."""
        return max(1, int(_NODES_PER_CALL / X.sizes.mean()))

    def nbytes(self, X: Any) -> float:
        """Return 0: packed graphs stay in memory."""
        return 0

    def arrays(self, X: Any) -> Sequence[np.ndarray]:
        """Return edges, sizes, and the features of nodes and edges."""
        return X.arrays()


def _are_names(X: Any) -> bool:
    """Return whether no two nodes have one label, in all graphs of three nodes or more."""
    sizes, graph_of_node = np.asarray(X.sizes), X.topology.graph_of_node.numpy()
    labels = X.labels.numpy()[sizes[graph_of_node] > 2]
    pairs = np.stack([graph_of_node[sizes[graph_of_node] > 2], labels])
    return sizes.max() >= _FEWEST_NAMED and len(np.unique(pairs, axis=1).T) == pairs.shape[1]
