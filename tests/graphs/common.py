"""Graphs, an embedder of graphs, and comparisons of packed graphs with those of NetworkX."""

from collections import Counter

import networkx as nx
import numpy as np
import torch

from skcontrast import ContrastiveEmbedder
from skcontrast.encoders import GIN
from skcontrast.frameworks import InfoGraph, MoCo, SimCLR
from skcontrast.graphs._packed import assemble, is_symmetric  # private: graphs from arrays


def packed_arrays(edges, node_ptr, **columns):
    """Return packed graphs of directed edges, which are undirected where each has its reverse."""
    edges, node_ptr = torch.as_tensor(edges).long(), torch.as_tensor(node_ptr)
    of_edges = [column for name, column in columns.items() if isinstance(column, torch.Tensor)]
    return assemble(edges, node_ptr, is_symmetric(edges, int(node_ptr[-1]), *of_edges), **columns)


def edges_of(graph):
    """Count the directed edges of a graph of networkx, each undirected one as two."""
    edges = Counter(list(graph.edges()))
    if not graph.is_directed():
        edges += Counter((v, u) for u, v in graph.edges() if u != v)
    return edges


def check_topology(topology, graphs):
    """Assert that a topology is that of these graphs, whose nodes are 0, 1, …."""
    assert all(t.dtype == torch.int64 for t in topology[:3])
    assert topology.n_graphs == len(graphs)
    assert topology.sizes.tolist() == [len(graph) for graph in graphs]
    assert topology.n_nodes == sum(map(len, graphs)) == topology.node_ptr[-1]
    starts = topology.node_ptr.tolist()
    expected = Counter()
    for graph, start in zip(graphs, starts, strict=False):
        expected += Counter({(u + start, v + start): k for (u, v), k in edges_of(graph).items()})
    assert Counter(map(tuple, topology.edge_index.T.tolist())) == expected
    assert topology.targets.equal(topology.targets.sort().values)
    assert topology.in_degrees.sum() == len(topology.sources) == topology.edge_ptr[-1]
    owners = np.repeat(np.arange(len(graphs)), topology.sizes.tolist())
    assert topology.graph_of_node.tolist() == owners.tolist()


def with_attributes(graph, x=None, label=None):
    """Return a copy with attributes: values, or dicts of them by node."""
    graph = graph.copy()
    for name, values in (("x", x), ("label", label)):
        if values is not None:
            nx.set_node_attributes(graph, values, name)
    return graph


FRAMEWORKS = [SimCLR(), MoCo(), InfoGraph(), InfoGraph("contrastive")]
N = 24
Y = np.arange(N) % 2


def attributed(graph, x=None, label=None):
    """Return a copy whose nodes have attributes, functions of their place in the graph."""
    graph = graph.copy()
    for name, function in (("x", x), ("label", label)):
        if function is not None:
            values = {node: function(k) for k, node in enumerate(graph)}
            nx.set_node_attributes(graph, values, name)
    return graph


def make_graphs(n=N, seed=0):
    """Return sparse and dense graphs, with nodes of odd names, some isolated, some directed."""
    graphs = []
    for k in range(n):
        graph = nx.gnp_random_graph(6 + k % 5, 0.15 + 0.4 * (k % 2), seed=seed + k)
        graph.add_node(("alone", k))
        graphs.append(nx.relabel_nodes(graph, {0: "zero", 1: 1.5, 2: frozenset([2])}))
    return graphs


GRAPHS = make_graphs()
N_DEGREES = 1 + max(degree for graph in GRAPHS for _, degree in graph.degree)


def small(**kwargs):
    """Return an embedder that trains in a moment."""
    defaults = {
        "encoder": GIN(n_layers=2, width=8),
        "projection_dim": 6,
        "max_epochs": 2,
        "batch_size": 8,
        "random_state": 0,
        "device": "cpu",
    }
    return ContrastiveEmbedder(**{**defaults, **kwargs})


def embedded(X=GRAPHS, **kwargs):
    return small(**kwargs).fit(X).transform(X)
