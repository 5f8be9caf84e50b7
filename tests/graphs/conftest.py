"""Graphs of NetworkX of all kinds, and the same packed."""

import networkx as nx
import pytest

from skcontrast.graphs import pack_graphs
from tests.graphs.common import with_attributes


@pytest.fixture
def undirected():
    loops = nx.path_graph(6)
    loops.add_edges_from([(0, 0), (3, 3)])
    random = [nx.gnp_random_graph(n, 0.3, seed=n) for n in (4, 9, 17, 30)]
    parallel = nx.MultiGraph([(0, 1), (0, 1), (1, 2), (2, 2), (2, 2)])
    return [*random, nx.empty_graph(1), nx.empty_graph(5), loops, parallel, nx.star_graph(8)]


@pytest.fixture
def directed():
    random = [nx.gnp_random_graph(n, 0.3, seed=n, directed=True) for n in (4, 9, 17)]
    return [*random, nx.empty_graph(2, nx.DiGraph), nx.MultiDiGraph([(0, 1), (0, 1), (1, 1)])]


@pytest.fixture(params=["undirected", "directed"])
def graphs(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def packed(undirected):
    """Graphs whose nodes carry the number of their graph, and a category."""
    graphs = [
        with_attributes(graph, x=float(k), label=f"graph {k}")
        for k, graph in enumerate(undirected)
    ]
    return pack_graphs(graphs)
