"""Batches of graphs that the tests of encoders share."""

import networkx as nx
import torch
from torch import nn

from skcontrast.graphs import GraphBatch, pack_graphs

WIDTH = 3
KINDS = ["undirected", "directed", "edgeless", "loops", "parallel"]


def graphs_of(kind):
    """Return graphs with some isolated nodes."""
    directed = kind == "directed"
    graphs = [nx.gnp_random_graph(n, 0.3, seed=n, directed=directed) for n in (4, 9, 6)]
    if kind == "edgeless":
        graphs = [nx.empty_graph(n) for n in (1, 3)]
    if kind == "loops":
        graphs[1].add_edges_from([(0, 0), (3, 3)])
    if kind == "parallel":
        graphs.append(nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 2), (2, 2)]))
    return [*graphs, nx.empty_graph(2, type(graphs[0]))]


def as_batch(graphs, seed=0, dtype=torch.float64):
    """Return graphs with random features as a batch."""
    topology = pack_graphs(graphs).topology
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(topology.n_nodes, WIDTH, generator=generator, dtype=dtype)
    return GraphBatch(topology, x)


def membership(topology):
    """Return M, with M[g, v] whether node v belongs to graph g."""
    return (torch.arange(topology.n_graphs)[:, None] == topology.graph_of_node).double()


def seeded(build, seed=0):
    """Return a new module with all parameters drawn again, so that none is zero."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module = build().double()
        for parameter in module.parameters():
            nn.init.normal_(parameter, std=0.5)
    return module


def adjacency(topology):
    """Return A, with A[v, u] the number of edges from u to v."""
    matrix = torch.zeros(topology.n_nodes, topology.n_nodes, dtype=torch.float64)
    ones = torch.ones(len(topology.sources), dtype=torch.float64)
    return matrix.index_put_((topology.targets, topology.sources), ones, accumulate=True)
