"""InfoGraph: the nodes of graphs are contrasted with whole graphs."""

import copy
from typing import Any

from torch import Tensor, nn

from .._checks import parameter
from .._data._batches import Batch, Metadata
from .._objective._contrast import Contrast
from .._objective._mean_loss import ObjectiveName
from ..graphs import GraphBatch
from ..similarity import Cosine, DotProduct, Similarity
from ._base import FitContext, Framework, Session


class InfoGraph(Framework):
    r"""Contrast of the nodes of graphs with whole graphs.

    Every node of a batch is an anchor. Its positive is the graph that it belongs to, and its
    candidate negatives are the other graphs of the batch: N = ``batch_size − 1`` [1]_. Nodes and
    graphs have separate projection heads.

    With the Jensen–Shannon objective, the loss is the mean over the nodes of

    .. math:: L_v = \operatorname{softplus}(-s_v^+) + \hat E_v^-[\operatorname{softplus}]

    where the embedder's loss supplies the estimate over true negatives: ``InfoNCE`` gives the
    original InfoGraph, up to a constant. With the contrastive objective, the loss is
    :math:`-\log(e^{s^+} / (e^{s^+} + N \hat E^-[\exp]))`, as in other frameworks.

    Nodes and graphs are represented in the same width: with :class:`~skcontrast.encoders.GIN`, a
    node by its features and the outputs of the layers, a graph by the logarithm of their sum.

    Each graph has a single view, which has both the nodes and the graph; without augmentation, it
    is the graph itself. The embedder's `n_views` has no effect.

    Parameters
    ----------
    objective : {"jensen-shannon", "contrastive"}, default="jensen-shannon"
        The loss that is computed from the scores. If the embedder's `similarity` is None, scores
        are dot products for the Jensen–Shannon objective and cosines for the contrastive one.

    See Also
    --------
    SimCLR : Contrasts whole graphs with each other, by two views of each.
    MoCo : Contrasts whole graphs with those of earlier batches.
    skcontrast.encoders.GIN : The default encoder of graphs.

    References
    ----------
    .. [1] F.-Y. Sun, J. Hoffmann, V. Verma, J. Tang, "InfoGraph: Unsupervised and Semi-supervised
       Graph-Level Representation Learning via Mutual Information Maximization", ICLR 2020.

    Examples
    --------
    >>> import networkx as nx
    >>> from skcontrast import ContrastiveEmbedder
    >>> from skcontrast.frameworks import InfoGraph
    >>> from skcontrast.losses import DCL
    >>> graphs = [nx.gnp_random_graph(12, 0.1 * (1 + k % 4), seed=k) for k in range(20)]
    >>> embedder = ContrastiveEmbedder(
    ...     framework=InfoGraph(), loss=DCL(tau_plus=0.1), max_epochs=2, random_state=0
    ... )
    >>> embedder.fit_transform(graphs).shape
    (20, 105)
    """

    objective: ObjectiveName = parameter(
        {"jensen-shannon", "contrastive"}, default="jensen-shannon"
    )

    n_views = 1

    @property
    def default_similarity(self) -> type[Similarity]:
        """Dot products for the Jensen–Shannon objective, cosines for the contrastive one."""
        return DotProduct if self.objective == "jensen-shannon" else Cosine

    def start(self, context: FitContext) -> Session:
        """Return a session with a projection head for nodes.

        Raises
        ------
        ValueError
            If the samples are not graphs.
        """
        return _InfoGraphSession(self, context)


class _InfoGraphSession(Session):
    """The projection head of the nodes."""

    def __init__(self, framework: InfoGraph, context: FitContext):
        super().__init__(context)
        module: Any = context.module
        if not hasattr(module.encoder, "nodes"):
            raise ValueError(
                "InfoGraph contrasts the nodes of graphs with whole graphs: it needs X to be a "
                "list of graphs, and an encoder of nodes, such as GIN()."
            )
        self.objective = framework.objective
        self.head = copy.deepcopy(module.projector)
        for layer in self.head.modules():
            # Layers that start from zero remain zero.
            if isinstance(layer, nn.Linear) and layer.weight.any():
                layer.reset_parameters()
        self.head.to(context.device)
        self.network = context.prepare(self._nodes_and_graphs)

    def _nodes_and_graphs(self, graphs: GraphBatch) -> tuple[Tensor, Tensor]:
        """Return the projections of the nodes and of the graphs."""
        module: Any = self.context.module
        nodes = module.encoder.nodes(graphs)
        return self.head(nodes), module.projector(module.encoder.pool(nodes, graphs))

    def contrast(self, views: list[GraphBatch], similarity: Similarity, batch: Batch) -> Contrast:
        """Contrast the nodes with the graphs."""
        (graphs,) = views
        z_nodes, z_graphs = (z.float() for z in self.network(graphs))
        # A node is an anchor with the metadata of its graph, which is its positive and excluded.
        known = batch.metadata(z_graphs[None]).take(graphs.batch)
        return Contrast(
            anchors=similarity.embed(z_nodes),
            candidates=similarity.embed(z_graphs),
            positives=graphs.batch,
            excluded=graphs.batch,
            **known.of_anchors(Metadata(batch.labels, batch.groups)),
        )
