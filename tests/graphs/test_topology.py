"""Edges of many graphs in one array."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch

from skcontrast.graphs import pack_graphs
from skcontrast.graphs._packed import Topology, offsets, ranges  # private: the index arithmetic
from tests.graphs.common import check_topology


def renumbered(graph):
    return nx.convert_node_labels_to_integers(graph)


def test_offsets_and_ranges():
    ptr = offsets(torch.tensor([2, 0, 3]))
    assert ptr.tolist() == [0, 2, 2, 5]
    starts, counts = torch.tensor([10, 20, 30]), torch.tensor([2, 0, 3])
    assert ranges(starts, counts, ptr).tolist() == [10, 11, 30, 31, 32]
    assert offsets(torch.tensor([True, False])).tolist() == [0, 1, 1]
    assert offsets(torch.tensor([], dtype=torch.int64)).tolist() == [0]


def test_edges_may_come_in_any_order(graphs):
    topology = pack_graphs(graphs).topology
    order = torch.randperm(len(topology.sources), generator=torch.Generator().manual_seed(0))
    shuffled = topology.edge_index[:, order]
    again = Topology.from_edges(shuffled, topology.node_ptr, topology.symmetric)
    check_topology(again, graphs)


def test_reversal_turns_every_edge_round(graphs):
    topology = pack_graphs(graphs).topology
    turned = [graph.reverse() if graph.is_directed() else graph for graph in graphs]
    check_topology(topology.reversed(), turned)
    check_topology(topology.reversed().reversed(), graphs)


@pytest.mark.parametrize("rows", [[0], [3, 1], [2, 2, 0, 2], [4, 3, 2, 1, 0], []])
def test_taking_gathers_graphs_in_any_order(graphs, rows):
    packed = pack_graphs(graphs)
    topology, nodes, edges = packed.topology.take(torch.tensor(rows, dtype=torch.int64))
    check_topology(topology, [graphs[row] for row in rows])
    assert nodes[topology.edge_index].equal(packed.topology.edge_index[:, edges])
    starts = packed.topology.node_ptr
    assert nodes.tolist() == [n for row in rows for n in range(starts[row], starts[row + 1])]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
def test_keeping_nodes_leaves_the_induced_subgraphs(graphs, share):
    topology = pack_graphs(graphs).topology
    generator = torch.Generator().manual_seed(1)
    kept = torch.rand(topology.n_nodes, generator=generator) < share
    parts = kept.split(topology.sizes.tolist())
    expected = [
        renumbered(graph.subgraph(np.flatnonzero(part).tolist()).copy())
        for graph, part in zip(graphs, parts, strict=True)
    ]
    rest, edges = topology.keep(kept)
    check_topology(rest, expected)
    assert rest.symmetric == topology.symmetric
    assert rest.edge_index.equal((kept.cumsum(0) - 1)[topology.edge_index[:, edges]])


def test_topologies_are_joined(undirected, directed):
    parts = [undirected[:3], undirected[3:4], undirected[4:]]
    joined = Topology.cat([pack_graphs(part).topology for part in parts])
    check_topology(joined, undirected)
    assert joined.symmetric
    mixed = Topology.cat([pack_graphs(part).topology for part in (undirected, directed)])
    check_topology(mixed, undirected + directed)
    assert not mixed.symmetric
