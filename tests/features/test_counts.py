"""Blocks beside a graph network: their weights, and counts as few numbers that vary alike."""

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.preprocessing import StandardScaler

from skcontrast import ContrastiveEmbedder, load, save
from skcontrast.encoders import GIN, Wide
from skcontrast.features import GraphProfile, GraphSize, WeisfeilerLehman
from skcontrast.features._graphs import ColourCounts, Components
from skcontrast.graphs import pack_graphs
from skcontrast.graphs._features import NodeFeatures

TREES = [nx.random_labeled_tree(4 + k % 9, seed=k) for k in range(60)]


def labelled(graphs):
    """Return copies of graphs whose nodes have one of three labels."""
    graphs = [graph.copy() for graph in graphs]
    for graph in graphs:
        nx.set_node_attributes(graph, {v: "abc"[v * len(graph) % 3] for v in graph}, "label")
    return graphs


def counts_of(graphs):
    """Return graphs as a batch, and what counts their colours."""
    graphs = pack_graphs(graphs)
    batch = NodeFeatures().fit(graphs).to_tensor(graphs, "cpu")
    return batch, ColourCounts.of(batch, n_rounds=2, min_share=0.0, max_features=4000)


def test_components_keep_distances_and_all_vary_alike():
    batch, counts = counts_of(TREES)
    found, expected = Components.of(counts, batch)(batch), counts(batch)
    distances = [torch.cdist(x.double(), x.double()) for x in (found, expected)]
    torch.testing.assert_close(*distances, rtol=1e-4, atol=1e-4)
    variance = found.var(0)
    torch.testing.assert_close(variance, variance.mean().expand_as(variance), rtol=1e-3, atol=0)
    assert found.shape[1].bit_count() == 1


def test_components_are_centred_by_the_training_graphs():
    batch, counts = counts_of(TREES)
    components = Components.of(counts, batch)
    torch.testing.assert_close(components(batch).mean(0), torch.zeros(components.axes.shape[1]))
    torch.testing.assert_close(components(batch[[3]]), components(batch)[[3]])


def test_graphs_that_are_equal_have_one_component_of_zeros():
    batch, counts = counts_of([nx.cycle_graph(4)] * 5)
    torch.testing.assert_close(Components.of(counts, batch)(batch), torch.zeros(5, 1))


@pytest.mark.parametrize("graphs", [TREES, labelled(TREES)], ids=["no labels", "labels"])
def test_sizes_profile_and_colours_stand_beside_what_is_learned(graphs, tmp_path):
    features = [GraphSize(), GraphProfile(), WeisfeilerLehman(n_components=256)]
    encoder = Wide(GIN(1, 4), features, [0.5, 1.0, 1.0])
    embedder = ContrastiveEmbedder(encoder, max_epochs=1, random_state=0)
    h = embedder.fit_transform(graphs)
    beside = embedder.encoder_.beside
    widths = [beside.learned_width, *(len(scale.mean) for scale in beside.scales)]
    assert widths[1] == 2 and sum(widths) == h.shape[1] == beside.width
    _, sizes, profile, colours = np.split(h, np.cumsum(widths)[:-1], axis=1)
    logs = np.log([[len(graph), 1 + graph.number_of_edges()] for graph in graphs])
    expected = StandardScaler().fit_transform(logs)
    np.testing.assert_allclose(sizes / sizes.std(0), expected, atol=1e-4)
    assert len(np.unique(colours.std(0).round(4))) == 1
    deviations = profile.std(0)
    assert deviations[deviations > 0].std() < 1e-2 * deviations.max()
    save(embedder, tmp_path / "a")
    np.testing.assert_array_equal(load(tmp_path / "a").transform(graphs), h)
