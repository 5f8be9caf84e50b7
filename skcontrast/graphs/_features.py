"""Features of nodes: numbers from their attributes, their label or their degree."""

from __future__ import annotations

import torch
from torch import Tensor

from .._arguments import StrOptions, check_arguments
from .._statistics import FARTHEST, mean_and_std
from ._batch import GraphBatch
from ._packed import PackedGraphs

_KIND = [StrOptions({"auto", "attributes", "degree", "constant"})]
# Degrees from here on share a code.
_LARGEST_DEGREE = 64


class NodeFeatures:
    """The map from packed graphs to the node features that encoders and augmentations see.

    Attributes are standardised over all nodes of the training set, except columns of zeros and
    ones, and clipped at a million standard deviations. Labels become one-hot codes of the
    categories of the training set; any other category is all zeros. Graphs with neither get the
    in-degree d as a cumulative code, whose component k = 0, 1, … is 1 if d ≥ k. It ends at the
    largest degree of the training set, or at 64. So near degrees have near codes, however rare
    they are.

    Parameters
    ----------
    kind : {"auto", "attributes", "degree", "constant"}, default="auto"
        "attributes" are attributes and labels; "degree" and "constant", a single 1, replace
        them; "auto" is "attributes" if graphs have any, else "degree".
    standardize : bool, default=True
        Whether attributes are standardised.

    See Also
    --------
    GraphBatch : The graphs with these features.

    Examples
    --------
    >>> import networkx as nx
    >>> from skcontrast.graphs import NodeFeatures, pack_graphs
    >>> graphs = pack_graphs([nx.star_graph(2), nx.path_graph(2)])
    >>> NodeFeatures().fit(graphs).to_tensor(graphs, "cpu").x  # degrees 2 and 1
    tensor([[1., 1., 1.],
            [1., 1., 0.],
            [1., 1., 0.],
            [1., 1., 0.],
            [1., 1., 0.]])
    """

    def __init__(self, kind: str = "auto", standardize: bool = True):
        self.kind = kind
        self.standardize = standardize

    finds_nonfinite = False
    # False for the one-hot codes of degrees of version 0.1.0.
    ordinal_ = True

    def fit(self, graphs: PackedGraphs) -> NodeFeatures:
        """Learn the map from the training graphs."""
        has_any = graphs.attributes is not None or graphs.labels is not None
        check_arguments("NodeFeatures", {"kind": _KIND}, {"kind": self.kind})
        if self.kind == "attributes" and not has_any:
            raise ValueError(
                "node_features='attributes', but the nodes of X have neither an attribute 'x' "
                "nor 'label': pass node_features='degree' or 'constant'."
            )
        self.kind_ = self.kind
        if self.kind == "auto":
            self.kind_ = "attributes" if has_any else "degree"
        self.codes_: dict | None = None
        if self.kind_ == "degree":
            largest = int(graphs.topology.in_degrees.max())
            self.n_codes_ = min(largest, _LARGEST_DEGREE) + 1
        elif self.kind_ == "attributes" and graphs.labels is not None:
            present = graphs.labels.unique().tolist()
            self.codes_ = {graphs.categories[k]: code for code, k in enumerate(present)}
            self.n_codes_ = len(present)
        self.mean_, self.std_ = self._statistics(graphs.attributes)
        return self

    def to_tensor(self, graphs: PackedGraphs, device: torch.device | str) -> GraphBatch:
        """Return packed graphs as a GraphBatch on a device."""
        n_nodes = graphs.topology.n_nodes
        dense, codes, n_codes = torch.empty(n_nodes, 0), None, 0
        if self.kind_ == "constant":
            dense = torch.ones(n_nodes, 1)
        elif self.kind_ == "degree":
            n_codes = self.n_codes_
            codes = graphs.topology.in_degrees.clamp_max(n_codes - 1)
        else:
            if self.mean_ is not None and graphs.attributes is not None:
                dense = (graphs.attributes.double() - self.mean_) / self.std_
                dense = dense.clamp_(-FARTHEST, FARTHEST).float()
            if (self.codes_ is not None) != (graphs.labels is not None):
                had = "had" if self.codes_ is not None else "had no"
                raise ValueError(f"The graphs in fit {had} node labels ('label'), X is different.")
            if self.codes_ is not None:
                n_codes, codes = self.n_codes_, self._coded(graphs)
        ordinal = self.kind_ == "degree" and self.ordinal_
        return GraphBatch(graphs.topology, dense, codes, n_codes, ordinal).to(device)

    def from_tensor(self, batch: GraphBatch, X: PackedGraphs) -> PackedGraphs:
        """Return views of graphs with attributes and labels as in X.

        A label that is masked or was not seen in `fit` is None. Graphs that are described by
        their degrees or a constant have neither attributes nor labels.
        """
        if self.kind_ != "attributes":
            return PackedGraphs(batch.topology)
        graphs = PackedGraphs(batch.topology)
        if self.mean_ is not None and batch.dense.shape[1]:
            graphs.attributes = (batch.dense.double() * self.std_ + self.mean_).float()
        if batch.codes is not None:
            graphs.labels = batch.codes % (batch.n_codes + 1)
            graphs.categories = (*(self.codes_ or {}), None)
        return graphs

    def _coded(self, graphs: PackedGraphs) -> Tensor:
        codes = self.codes_ or {}
        table = [codes.get(category, -1) for category in graphs.categories]
        return torch.tensor(table)[graphs.labels]

    def _statistics(self, attributes: Tensor | None) -> tuple[Tensor | None, Tensor | None]:
        """Return mean and standard deviation of each attribute, None if there are none."""
        if attributes is None or self.kind_ != "attributes":
            return None, None
        mean, std = map(torch.from_numpy, mean_and_std(attributes.numpy()))
        is_kept = ((attributes == 0) | (attributes == 1)).all(0)
        if not self.standardize:
            is_kept = torch.ones_like(is_kept)
        return mean.masked_fill(is_kept, 0.0), std.masked_fill(is_kept, 1.0)
