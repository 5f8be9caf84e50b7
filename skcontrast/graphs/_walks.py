"""How often random walks return to the node where they started."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from ._topology import Topology

# Graphs of up to so many nodes are computed together, as dense matrices of one size.
_SMALL = 512
_MOST_NUMBERS = 2**22


def return_probabilities(topology: Topology, n_steps: int) -> Tensor:
    r"""Return how probable it is that a walk is back where it started, after 1, 2, … steps.

    .. math:: p_k(v) = (P^k)_{vv}, \qquad P_{uv} = n_{uv} / d_u

    with n the number of edges from u to v, and d the number of edges that leave u [1]_. A walk
    that has reached a node without such edges does not return.

    Parameters
    ----------
    topology : Topology
        Nodes and edges. Memory is needed for three matrices of the size of the largest graph.
    n_steps : int
        The number of steps up to which walks are followed.

    Returns
    -------
    probabilities : Tensor of shape (n_nodes, n_steps)

    References
    ----------
    .. [1] V. P. Dwivedi, A. T. Luu, T. Laurent, Y. Bengio, X. Bresson, "Graph Neural Networks with
       Learnable Structural and Positional Representations", ICLR 2022.
    """
    found = torch.zeros(topology.n_nodes, n_steps)
    for graphs in _of_similar_size(topology.sizes):
        part, nodes, _ = topology.take(graphs)
        place, step, identity = _transitions(part)
        before = identity
        for k in range(1, n_steps + 1, 2):
            after = step(before)
            found[nodes, k - 1] = _returns(before, after)[place]
            if k < n_steps:
                found[nodes, k] = _returns(after, after)[place]
            before = after
    return found


def _of_similar_size(sizes: Tensor) -> Iterator[Tensor]:
    """Yield graphs, of similar sizes, whose matrices are computed together."""
    order = sizes.argsort()
    start = 0
    while start < len(order):
        stop = start + 1
        # The last graph of a part is the largest.
        while stop < len(order) and sizes[order[stop]] <= _SMALL:
            if (stop + 1 - start) * int(sizes[order[stop]]) ** 2 > _MOST_NUMBERS:
                break
            stop += 1
        yield order[start:stop]
        start = stop


def _transitions(topology: Topology) -> tuple[Tensor, Callable[[Tensor], Tensor], Tensor]:
    """Return where nodes stand in padded graphs, a step of walks, and walks of no steps.

    The first is a mask of shape (n_graphs, n); the step maps P^k to P^(k + 1), which have shape
    (n_graphs, n, n) with n the size of the largest graph.
    """
    n_graphs, n = topology.n_graphs, int(topology.sizes.max())
    place = torch.arange(n) < topology.sizes[:, None]
    sources, targets = topology.edge_index
    leaving = torch.bincount(sources, minlength=topology.n_nodes).clamp_min(1)
    values = 1.0 / leaving[sources]
    owner = topology.graph_of_node
    starts = topology.node_ptr[owner]
    number = torch.arange(topology.n_nodes) - starts
    places = (owner[sources], number[sources], number[targets])
    identity = torch.eye(n).expand(n_graphs, n, n)
    if n > _SMALL:
        edges = torch.stack(places[1:])
        matrix = torch.sparse_coo_tensor(edges, values, (n, n), check_invariants=False)
        return place, lambda walks: torch.sparse.mm(matrix, walks[0])[None], identity
    dense = torch.zeros(n_graphs, n, n).index_put_(places, values, accumulate=True)
    return place, lambda walks: torch.bmm(dense, walks), identity


def _returns(walks: Tensor, more: Tensor) -> Tensor:
    """Return the diagonals of the products of two powers of P, shape (n_graphs, n)."""
    return (walks * more.transpose(1, 2)).sum(2)
