"""Graphs through the embedder: continuing, randomness, transform, score."""

import copy

import networkx as nx
import numpy as np
import pytest

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import AttributeMask, NodeDrop
from skcontrast.encoders import GIN
from skcontrast.frameworks import InfoGraph, MoCo
from skcontrast.graphs import PackedGraphs, pack_graphs
from skcontrast.kinds import Graphs
from skcontrast.metrics import make_view_scorer, neighbor_agreement
from skcontrast.similarity import VonMisesFisher
from tests.common import check_every_loss
from tests.graphs.common import (
    FRAMEWORKS,
    GRAPHS,
    N_DEGREES,
    N,
    Y,
    attributed,
    embedded,
    make_graphs,
    small,
)

# Continuing, and randomness


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_partial_fit_in_pieces_is_one_fit(framework):
    whole = embedded(framework=framework, lr_schedule="constant", max_epochs=3)
    pieces = small(framework=framework, lr_schedule="constant", max_epochs=3)
    for _ in range(3):
        pieces.partial_fit(GRAPHS)
    np.testing.assert_array_equal(pieces.transform(GRAPHS), whole)


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_warm_start_continues(framework):
    embedder = small(framework=framework, warm_start=True).fit(GRAPHS)
    others = make_graphs(16, seed=500)
    embedder.fit(GRAPHS).fit(others)
    assert embedder.n_epochs_ == 6 and len(embedder.history_) == 6
    assert np.isfinite(embedder.transform(others)).all()
    with pytest.raises(ValueError, match=r"'encoder' parameter .* has changed"):
        embedder.set_params(encoder=GIN(width=9)).fit(GRAPHS)


def test_continuing_with_different_node_features_is_refused():
    embedder = small(warm_start=True, max_epochs=1).fit(GRAPHS)
    with pytest.raises(ValueError, match=r"'kind' parameter .* has changed from Graphs"):
        embedder.set_params(kind=Graphs(node_features="constant")).fit(GRAPHS)


def test_continuing_keeps_the_codes_of_the_first_fit():
    first = [attributed(graph, label=lambda k: "CN"[k % 2]) for graph in GRAPHS]
    second = [attributed(graph, label=lambda k: "NOC"[k % 3]) for graph in GRAPHS]
    embedder = small().partial_fit(first)
    assert embedder.partial_fit(second).transform(second).shape == (N, 2 + 16)
    assert embedder._model.scaler.nodes_.codes_ == {"C": 0, "N": 1}


def test_users_graphs_are_not_touched():
    graphs = [attributed(graph, lambda k: [float(k)], lambda k: k % 2) for graph in GRAPHS]
    before = copy.deepcopy(graphs)
    embedded(graphs, augmentation=AttributeMask(0.5))
    for graph, old in zip(graphs, before, strict=True):
        assert nx.utils.graphs_equal(graph, old)
    packed = pack_graphs(graphs)
    arrays = [array.copy() for array in packed.arrays()]
    embedded(packed, augmentation=AttributeMask(0.5), kind=Graphs(standardize=False))
    for array, old in zip(packed.arrays(), arrays, strict=True):
        np.testing.assert_array_equal(array, old)


# What counting gives


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_the_bag_of_degrees_is_in_the_representation(framework):
    h = embedded(framework=framework, lr=0.01)
    counts = [np.bincount([d for _, d in g.degree], minlength=N_DEGREES) for g in GRAPHS]
    at_least = np.expm1(h[:, :N_DEGREES])
    np.testing.assert_allclose(-np.diff(at_least, axis=1, append=0), counts, atol=1e-4)


@pytest.mark.parametrize("encoder", [GIN(2, 8), GIN(2, 8, batch_norm=False)], ids=repr)
def test_the_bag_of_labels_is_in_the_representation(encoder):
    graphs = [attributed(graph, label=lambda k: "CNO"[k % 3]) for graph in GRAPHS]
    embedder = small(encoder=encoder, augmentation=AttributeMask(0.5)).fit(graphs)
    others = [attributed(graph, label=lambda k: "CXO"[k % 3]) for graph in GRAPHS]
    sizes = np.array([len(graph) for graph in GRAPHS])
    counts = np.stack([(sizes + 2) // 3, (sizes + 1) // 3, sizes // 3], 1)
    bag = np.expm1(embedder.transform(graphs)[:, :3])
    np.testing.assert_allclose(bag, counts, atol=1e-4)
    # A category that did not occur in fit is not counted.
    bag = np.expm1(embedder.transform(others)[:, :3])
    np.testing.assert_allclose(bag, counts * [1, 0, 1], atol=1e-4)


def test_the_sum_of_attributes_is_in_the_representation():
    graphs = [attributed(graph, lambda k: [k - 3.0, k % 2]) for graph in GRAPHS]
    h = small(kind=Graphs(standardize=False)).fit(graphs).transform(graphs)[:, :2].astype(float)
    sums = [np.sum([x for _, x in g.nodes(data="x")], axis=0) for g in graphs]
    np.testing.assert_allclose(np.sign(h) * np.expm1(np.abs(h)), sums, rtol=1e-4)


def test_without_features_nodes_are_counted():
    h = embedded(kind=Graphs(node_features="constant"))
    np.testing.assert_allclose(np.expm1(h[:, 0]), [len(graph) for graph in GRAPHS], rtol=1e-5)


# Transform and score


@pytest.mark.parametrize("encoder", [GIN(2, 8), GIN(2, 8, pooling="mean")], ids=repr)
def test_a_row_does_not_depend_on_the_others(encoder, monkeypatch):
    embedder = small(encoder=encoder, framework=InfoGraph()).fit(GRAPHS)
    h = embedder.transform(GRAPHS)
    rows = [7, 3, 3, 20]
    np.testing.assert_allclose(embedder.transform([GRAPHS[k] for k in rows]), h[rows], atol=1e-5)
    np.testing.assert_allclose(embedder.transform(GRAPHS[5:6]), h[5:6], atol=1e-5)
    monkeypatch.setattr("skcontrast.kinds._graphs._NODES_PER_CALL", 20)
    np.testing.assert_allclose(embedder.transform(GRAPHS), h, atol=1e-5)


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_names_of_nodes_do_not_matter(framework):
    renamed = [nx.relabel_nodes(g, {node: (k, "n") for k, node in enumerate(g)}) for g in GRAPHS]
    np.testing.assert_array_equal(
        embedded(framework=framework), embedded(renamed, framework=framework)
    )


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_score_is_that_of_views_and_repeats(framework):
    embedder = small(framework=framework).fit(GRAPHS)
    assert embedder.score(GRAPHS) == embedder.score(GRAPHS) == embedder.score(pack_graphs(GRAPHS))
    assert 0 <= embedder.score(GRAPHS) <= 1
    with pytest.raises(ValueError, match="minimum of 2"):
        embedder.score(GRAPHS[:1])


@pytest.mark.slow
def test_training_raises_the_score_of_what_layers_read_out():
    def mean_score(max_epochs):
        encoder = GIN(n_layers=2, width=8, readout_input=False)
        fits = (
            small(encoder=encoder, max_epochs=max_epochs, lr=0.01, random_state=seed).fit(GRAPHS)
            for seed in range(3)
        )
        return np.mean([embedder.score(GRAPHS) for embedder in fits])

    assert mean_score(40) > mean_score(1) + 0.05


# Settings that do not matter much


def test_memory_budget_and_workers_do_not_matter():
    np.testing.assert_array_equal(embedded(memory_budget=0.0, n_workers=2), embedded())


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_samples_of_zero_weight_are_not_anchors(framework):
    def first_loss(weights):
        embedder = small(framework=framework, batch_size=N, max_epochs=1)
        return embedder.fit(GRAPHS, sample_weight=weights).history_[0, "train_loss"]

    half = np.repeat([1.0, 0.0], N // 2)
    # The loss is a sum over anchors, so those of one half and those of the other make it whole.
    whole = first_loss(np.ones(N))
    assert first_loss(half) + first_loss(1 - half) == pytest.approx(whole, rel=1e-5)
    assert 0 < first_loss(half) < whole


# All of it together


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_every_loss_takes_what_a_framework_contrasts(framework, monkeypatch):
    check_every_loss(monkeypatch, small(framework=framework, batch_size=12), GRAPHS, Y)


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_graphs_have_concentrations(framework):
    embedder = small(framework=framework, similarity=VonMisesFisher()).fit(GRAPHS)
    assert embedder.concentration(GRAPHS).shape == (N,)
    assert (embedder.concentration(GRAPHS) > 0).all()


def test_a_fitted_embedder_holds_no_graphs():
    packed = pack_graphs(GRAPHS)
    assert isinstance(packed, PackedGraphs)
    embedder = small(augmentation=NodeDrop()).fit(packed)
    assert not any(
        isinstance(value, (list, PackedGraphs)) and len(value) == N
        for value in vars(embedder).values()
    )


def test_score_of_graphs_that_are_not_augmented_drops_nodes():
    graphs = [nx.gnp_random_graph(10, 0.1 * (1 + k % 4), seed=k) for k in range(20)]
    params = {"framework": InfoGraph(), "max_epochs": 1, "random_state": 0}
    plain = ContrastiveEmbedder(**params).fit(graphs)
    assert plain.augmentation_ == []
    scorer = make_view_scorer(neighbor_agreement, augmentation=NodeDrop())
    assert plain.score(graphs) == scorer(plain, graphs) < 1


@pytest.mark.parametrize("framework", [InfoGraph(), MoCo(8)], ids=repr)
def test_graphs_without_edges_are_remembered_as_others_are(framework):
    graphs = [nx.empty_graph(1 + k % 3) for k in range(8)]
    embedder = small(encoder=GIN(4, 1), framework=framework, warm_start=True)
    h = embedder.fit(graphs).fit(graphs).partial_fit(graphs).transform(graphs)
    assert h.shape[0] == 8 and np.isfinite(h).all()
