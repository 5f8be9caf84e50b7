"""InfoGraph: nodes against graphs."""

from __future__ import annotations

import copy

from torch import nn

from .._objective._functional import Contrast
from .._parameters import StrOptions
from ..similarity import Cosine, DotProduct
from ._base import Framework, Session

__all__ = ["InfoGraph"]


class InfoGraph(Framework):
    r"""Contrast of the nodes of graphs with whole graphs.

    Every node of a batch is an anchor. Its positive is the graph that it belongs to, its candidate
    negatives are the other graphs of the batch: N = ``batch_size − 1`` [1]_. Nodes and graphs have
    a projection head each.

    With the Jensen–Shannon objective, the loss is the mean over the nodes of

    .. math:: L_v = \operatorname{softplus}(-s_v^+) + \hat E_v^-[\operatorname{softplus}]

    where the estimate over true negatives is that of the embedder's loss: ``InfoNCE`` gives the
    original InfoGraph, up to a constant. With the contrastive objective it is
    :math:`-\log(e^{s^+} / (e^{s^+} + N \hat E^-[\exp]))`, as in other frameworks.

    One view is drawn of each graph, of which both nodes and graph are taken; without augmentation
    it is the graph itself. So `n_views` does not matter.

    Parameters
    ----------
    objective : {"jensen-shannon", "contrastive"}, default="jensen-shannon"
        What is made of the scores. If the embedder's `similarity` is None, they are dot products
        for the first, cosines for the second.

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
    (20, 96)
    """

    _parameter_constraints: dict = {"objective": [StrOptions({"jensen-shannon", "contrastive"})]}

    draws_random_numbers = False
    n_views = 1

    def __init__(self, objective="jensen-shannon"):
        self.objective = objective

    @property
    def default_similarity(self):
        """Dot products for the Jensen–Shannon objective, else cosines."""
        return DotProduct if self.objective == "jensen-shannon" else Cosine

    def start(self, fit):
        """Return a session with a projection head for nodes.

        Raises
        ------
        ValueError
            If the samples are no graphs.
        """
        return _InfoGraphSession(self, fit)


class _InfoGraphSession(Session):
    """The projection head of the nodes."""

    def __init__(self, framework, fit):
        super().__init__(fit)
        if not hasattr(fit.module.encoder, "nodes"):
            raise ValueError(
                "InfoGraph contrasts the nodes of graphs with the graphs: it needs X to be a list "
                "of graphs."
            )
        self.objective = framework.objective
        self.head = copy.deepcopy(fit.module.projector)
        for part in self.head.modules():
            # What starts from zero does so here too.
            if isinstance(part, nn.Linear) and part.weight.any():
                part.reset_parameters()
        self.head.to(fit.device)
        self.network = fit.prepare(self._nodes_and_graphs)

    def _nodes_and_graphs(self, graphs):
        """Return the projections of the nodes and of the graphs."""
        encoder, projector = self.fit.module.encoder, self.fit.module.projector
        nodes = encoder.nodes(graphs)
        return self.head(nodes), projector(encoder.pool(nodes, graphs))

    def contrast(self, views, similarity, batch):
        """Contrast the nodes with the graphs."""
        (graphs,) = views
        nodes, wholes = (z.float() for z in self.network(graphs))
        anchors, candidates = similarity.embed(nodes), similarity.embed(wholes)
        owner = graphs.batch
        weights = batch.anchor_weights(wholes[None])
        return Contrast(
            anchors,
            candidates,
            owner[:, None],
            owner[:, None],
            None if weights is None else weights[0, owner],
            None if batch.labels is None else batch.labels[owner],
            batch.labels,
        )
