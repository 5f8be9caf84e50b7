"""Probabilities that random walks return."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch

from skcontrast.graphs import NodeFeatures, _walks, pack_graphs
from skcontrast.graphs._walks import return_probabilities
from skcontrast.kinds import Graphs
from tests.graphs.common import GRAPHS, attributed, small


def by_powers(graph, n_steps):
    """Return the diagonals of the powers of the matrix of transitions."""
    A = nx.to_numpy_array(graph, weight=None)
    P = A / np.maximum(A.sum(1, keepdims=True), 1)
    return np.stack([np.diag(np.linalg.matrix_power(P, k + 1)) for k in range(n_steps)], 1)


@pytest.mark.parametrize("n_steps", [1, 4, 7])
@pytest.mark.parametrize("small_until", [512, 6])
def test_they_are_the_diagonals_of_powers(graphs, n_steps, small_until, monkeypatch):
    monkeypatch.setattr(_walks, "_SMALL", small_until)
    monkeypatch.setattr(_walks, "_MOST_NUMBERS", 300)
    found = return_probabilities(pack_graphs(graphs).topology, n_steps)
    expected = np.concatenate([by_powers(graph, n_steps) for graph in graphs])
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_cycle_returns_after_its_length_and_a_bipartite_graph_after_even_steps():
    p = return_probabilities(pack_graphs([nx.cycle_graph(5, nx.DiGraph)]).topology, 6)
    assert p.tolist() == [[0, 0, 0, 0, 1, 0]] * 5
    p = return_probabilities(pack_graphs([nx.star_graph(4)]).topology, 6)
    assert not p[:, ::2].any() and p[0].tolist() == [0, 1, 0, 1, 0, 1]


def test_they_do_not_depend_on_the_order_of_nodes():
    graph = nx.gnp_random_graph(12, 0.3, seed=0)
    order = np.random.default_rng(0).permutation(12)
    turned = nx.Graph()
    turned.add_nodes_from(order.tolist())
    turned.add_edges_from(graph.edges)
    one, other = (return_probabilities(pack_graphs([g]).topology, 8) for g in (graph, turned))
    torch.testing.assert_close(one[torch.from_numpy(order)], other)


def test_they_tell_graphs_apart_that_message_passing_does_not():
    triangles = nx.disjoint_union(nx.cycle_graph(3), nx.cycle_graph(3))
    pair = [triangles, nx.cycle_graph(6)]
    embedder = small(max_epochs=1)
    one, other = embedder.fit(GRAPHS).transform(pair)
    np.testing.assert_allclose(one, other, atol=1e-5)
    one, other = (
        embedder.set_params(kind=Graphs(node_features="walks")).fit(GRAPHS).transform(pair)
    )
    assert abs(one - other).max() > 0.01


def test_they_stand_behind_attributes_or_degrees():
    packed = pack_graphs(GRAPHS)
    plain = NodeFeatures("degree").fit(packed).to_tensor(packed, "cpu")
    scaler = NodeFeatures("walks").fit(packed)
    batch = scaler.to_tensor(packed, "cpu")
    assert batch.dense.shape[1] == 16 and batch.codes.equal(plain.codes)
    assert batch.dense.mean(0).abs().max() < 1e-4
    assert scaler.from_tensor(batch, packed).attributes is None
    labelled = pack_graphs([attributed(g, lambda k: [k, 1.0], lambda k: k % 3) for g in GRAPHS])
    scaler = NodeFeatures("walks").fit(labelled)
    batch = scaler.to_tensor(labelled, "cpu")
    assert batch.shape == (len(GRAPHS), None, 2 + 16 + 3)
    torch.testing.assert_close(scaler.from_tensor(batch, labelled).attributes, labelled.attributes)
