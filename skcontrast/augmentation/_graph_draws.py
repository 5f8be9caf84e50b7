"""Random choices within each graph of a batch, drawn for all graphs at once."""

from __future__ import annotations

import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra
from torch import Generator, Tensor

from ..graphs import GraphBatch
from ..graphs._topology import Topology, offsets, ranges

# Random keys and times are integers of so many bits, so that sums and comparisons are exact.
_RANDOM_BITS = 31
_UNIT_OF_TIME = 2**20
TIME_BITS = 40
NEVER = 2**TIME_BITS - 1


def rounded(rate: float, sizes: Tensor) -> Tensor:
    """Return ``round(rate * size)`` for each of the integers."""
    return (sizes.float() * rate).round().long()


def random_nodes(batch: GraphBatch, rate: float, generator: Generator, spared: int = 0) -> Tensor:
    """Return a mask of round(rate · n) nodes of each graph, which spares at least `spared`."""
    sizes = batch.topology.sizes
    counts = torch.minimum(rounded(rate, sizes), sizes - spared)
    return random_subset(batch.batch, batch.topology.node_ptr, counts, generator)


def random_subset(owners: Tensor, ptr: Tensor, counts: Tensor, generator: Generator) -> Tensor:
    """Return a mask (n,) that is true for `counts` items of each group, chosen uniformly."""
    keys = (owners << _RANDOM_BITS) | _random_bits(owners, generator)
    return first_of_each(keys, owners, ptr, counts)


def first_of_each(keys: Tensor, owners: Tensor, ptr: Tensor, counts: Tensor) -> Tensor:
    """Return a mask (n,) that is true for the `counts` items with the least keys of each group.

    Groups follow one another, in `owners` (n,) and `ptr` (n_groups + 1,), and so do their keys.
    """
    order = keys.argsort()
    ranks = torch.arange(len(keys), device=keys.device)
    is_first = ranks < (ptr[:-1] + counts)[owners]
    return torch.empty_like(is_first).index_put_((order,), is_first)


def _random_bits(like: Tensor, generator: Generator) -> Tensor:
    return torch.randint(2**_RANDOM_BITS, like.shape, generator=generator, device=like.device)


def random_below(limits: Tensor, generator: Generator) -> Tensor:
    """Return a random integer from 0 to limit − 1 for each of the limits, shape (n,)."""
    return (_random_bits(limits, generator) * limits) >> _RANDOM_BITS


def edges_once(topology: Topology) -> tuple[Tensor, Tensor]:
    """Return a mask of edges, undirected ones in one direction, and the first of each graph.

    They are in the order of the graphs: graph g has ``ptr[g]`` to ``ptr[g + 1] - 1``.
    """
    ptr = topology.edge_ptr[topology.node_ptr]
    if not topology.symmetric:
        return torch.ones_like(topology.sources, dtype=torch.bool), ptr
    once = topology.sources <= topology.targets
    return once, offsets(once)[ptr]


def random_pairs(node_ptr: Tensor, counts: Tensor, generator: Generator) -> Tensor:
    """Return pairs (2, m) of different nodes, `counts` in each graph of at least two nodes."""
    counts = counts * (node_ptr.diff() > 1)
    starts = node_ptr[:-1].repeat_interleave(counts)
    sizes = node_ptr.diff().repeat_interleave(counts)
    first = random_below(sizes, generator)
    further = random_below(sizes - 1, generator) + 1
    return starts + torch.stack([first, (first + further) % sizes])


def arrival_times(topology: Topology, starts: Tensor, generator: Generator) -> Tensor:
    """Return when each node (n,) is reached from the start of its graph, NEVER if it is not.

    Entering a node takes an exponential time, an integer of at least 1 and of mean _UNIT_OF_TIME.
    """
    outwards = topology.reversed()
    delays = torch.empty(topology.n_nodes, dtype=torch.float32, device=starts.device)
    delays.exponential_(generator=generator).mul_(_UNIT_OF_TIME)
    find = shortest_in_turn if starts.device.type == "cpu" else shortest_in_rounds
    return find(outwards, starts, delays.long().add_(1))


def shortest_in_turn(outwards: Topology, starts: Tensor, delays: Tensor) -> Tensor:
    """Return the lengths of shortest paths, node after node: Dijkstra's algorithm, of SciPy.

    Parameters
    ----------
    outwards : Topology
        The edges that end in a node are those that paths leave it by.
    starts : Tensor of shape (n_graphs,), dtype int64
        Where paths start, a node of each graph.
    delays : Tensor of shape (n_nodes,), dtype int64
        How long it takes to enter a node.
    """
    n, ends = outwards.n_nodes, outwards.sources
    # Graphs of SciPy have indices of 32 bits; before its version 1.15 they must be given as such.
    content = delays[ends].double().numpy(), ends.int().numpy(), outwards.edge_ptr.int().numpy()
    graph = csr_array(content, shape=(n, n))
    lengths = torch.from_numpy(dijkstra(graph, indices=starts.numpy(), min_only=True))
    return lengths.nan_to_num(posinf=NEVER).long()


def shortest_in_rounds(outwards: Topology, starts: Tensor, delays: Tensor) -> Tensor:
    """Return the same, for all nodes that are a step further at once, as a GPU needs it."""
    _, first_edges, neighbours, _ = outwards
    degrees = first_edges.diff()
    times = torch.full_like(delays, NEVER)
    times[starts] = 0
    nodes = starts
    while len(nodes):
        n_edges = degrees[nodes]
        ends = neighbours[ranges(first_edges[nodes], n_edges, offsets(n_edges))]
        arrivals = times[nodes].repeat_interleave(n_edges) + delays[ends]
        before = times
        times = before.scatter_reduce(0, ends, arrivals, "amin")
        nodes = (times < before).nonzero()[:, 0]
    return times
