"""Which forms of graphs X may have, and what is refused."""

import sys

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from skcontrast.augmentation import GaussianNoise, RandomAffine
from skcontrast.frameworks import CMC
from skcontrast.graphs import pack_graphs
from skcontrast.kinds import Graphs
from tests.graphs.common import (
    FRAMEWORKS,
    GRAPHS,
    N_DEGREES,
    N,
    Y,
    attributed,
    embedded,
    packed_arrays,
    small,
)


def test_a_list_a_tuple_an_array_a_series_and_packed_graphs_are_the_same():
    expected = embedded()
    assert expected.shape == (N, N_DEGREES + 16) and expected.dtype == np.float32
    as_array = np.empty(N, dtype=object)
    as_array[:] = GRAPHS
    for X in (tuple(GRAPHS), as_array, pd.Series(GRAPHS), pack_graphs(GRAPHS)):
        np.testing.assert_array_equal(embedded(X), expected)


def test_networkx_and_pytorch_geometric_are_the_same():
    geometric = pytest.importorskip("torch_geometric.utils")
    graphs = [attributed(graph, x=lambda k: [float(k), 1.0]) for graph in GRAPHS]
    data = [geometric.from_networkx(graph) for graph in graphs]
    assert data[0].x.shape[1] == 2
    np.testing.assert_allclose(embedded(data), embedded(graphs), atol=1e-5)
    mixed = [*graphs[:3], *data[3:]]
    np.testing.assert_allclose(embedded(mixed), embedded(graphs), atol=1e-5)


def test_a_dataset_of_pytorch_geometric_is_a_list_of_graphs():
    geometric = pytest.importorskip("torch_geometric.data")
    from torch_geometric.utils import from_networkx

    data = [from_networkx(graph) for graph in GRAPHS]

    class Stored(geometric.Dataset):
        def len(self):
            return N

        def get(self, idx):
            return data[idx]

    dataset = Stored()
    expected = embedded(data)
    np.testing.assert_array_equal(embedded(dataset), expected)
    subset = torch.utils.data.Subset(dataset, range(N))
    np.testing.assert_array_equal(embedded(subset), expected)
    scores = cross_val_score(make_pipeline(small(), SVC()), dataset, Y, error_score="raise")
    assert len(scores) == 5


def test_graphs_of_several_kinds_of_nodes_are_refused():
    geometric = pytest.importorskip("torch_geometric.data")
    with pytest.raises(ValueError, match=r"Graph 0 in X: a HeteroData .*to_homogeneous"):
        small().fit([geometric.HeteroData()] * 4)


def test_directions_of_edges_count():
    edges = [[(0, 1), (0, 2), (0, 3)], [(1, 0), (2, 0), (3, 0)]]
    graphs = [nx.DiGraph(some) for some in edges] * 6
    h = embedded(graphs, kind=Graphs(node_features="constant"))
    assert not np.allclose(h[0], h[1])
    np.testing.assert_allclose(h[2], h[0], atol=1e-6)


def test_two_graphs_are_enough_and_one_is_not():
    for framework in FRAMEWORKS:
        assert np.isfinite(embedded(GRAPHS[:2], framework=framework)).all()
        with pytest.raises(ValueError, match=r"Found 1 sample\(s\) in X while a minimum of 2"):
            small(framework=framework).fit(GRAPHS[:1])


@pytest.mark.parametrize(
    "X, error, message",
    [
        ([*GRAPHS, nx.Graph()], ValueError, f"Graph {N} in X has no nodes"),
        ([*GRAPHS, None], TypeError, f"item {N} is a NoneType"),
        (GRAPHS[0], TypeError, r"got a single graph: pass \[graph\]"),
        (iter(GRAPHS), TypeError, r"got a list_iterator\. .* pass list\(X\)"),
        ([*GRAPHS[:3], attributed(GRAPHS[3], lambda k: 1.0)], ValueError, "Graph 3 in X has 1"),
    ],
    ids=["empty", "None", "single", "iterator", "widths"],
)
def test_bad_graphs_are_refused_in_fit_and_transform(X, error, message):
    with pytest.raises(error, match=message):
        small().fit(X)
    fitted = small(max_epochs=1).fit(GRAPHS)
    before = fitted.transform(GRAPHS)
    with pytest.raises(error, match=message):
        fitted.transform(X)
    with pytest.raises(error, match=message):
        fitted.fit(X)
    np.testing.assert_array_equal(fitted.transform(GRAPHS), before)


@pytest.mark.parametrize(
    "X", [np.eye(16), [[1.0, 2.0]] * 4, np.zeros((4, 8, 8)), torch.eye(5), []]
)
def test_arrays_are_refused_after_a_fit_on_graphs(X):
    fitted = small(max_epochs=1).fit(GRAPHS)
    for method in (fitted.transform, fitted.score, fitted.partial_fit):
        with pytest.raises((ValueError, TypeError), match=r"X must hold graphs only|0 graphs"):
            method(X)


@pytest.mark.parametrize(
    "X", [np.random.default_rng(0).normal(size=(12, 5)), np.zeros((12, 8, 8))]
)
def test_graphs_are_refused_after_a_fit_on_arrays(X):
    fitted = small(encoder=None, max_epochs=1).fit(
        X + np.arange(12).reshape(12, *[1] * (X.ndim - 1))
    )
    for method in (fitted.transform, fitted.score, fitted.partial_fit):
        with pytest.raises(ValueError, match=r"X holds graphs, but .* expects (vectors|images)"):
            method(GRAPHS)


def test_fit_may_change_from_vectors_to_graphs_and_back():
    vectors = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 5))).add_prefix("p")
    embedder = small(encoder=None, max_epochs=1).fit(vectors)
    assert embedder.n_features_in_ == 5
    embedder.fit(GRAPHS)
    assert not hasattr(embedder, "n_features_in_") and not hasattr(embedder, "feature_names_in_")
    assert embedder.transform(GRAPHS).shape[1] == N_DEGREES + 96
    embedder.fit(vectors)
    assert embedder.n_features_in_ == 5 and len(embedder.feature_names_in_) == 5


@pytest.mark.parametrize("augmentation", [GaussianNoise(), RandomAffine()], ids=repr)
def test_other_augmentations_are_refused(augmentation):
    message = f"{type(augmentation).__name__} expects .*, got graphs"
    with pytest.raises(ValueError, match=message):
        small(augmentation=augmentation).fit(GRAPHS)
    with pytest.raises(ValueError, match=message):
        make_pipeline(augmentation, small()).fit(GRAPHS)


@pytest.mark.parametrize("split", ["auto", "lab", "random", 2, [0]])
def test_cmc_refuses_graphs(split):
    with pytest.raises(ValueError, match=r"CMC splits .* InfoGraph\(\)"):
        small(framework=CMC(split=split)).fit(GRAPHS)


def test_networkx_suffices(monkeypatch):
    for name in ("torch_geometric", "torch_geometric.data"):
        monkeypatch.setitem(sys.modules, name, None)
    assert embedded().shape == (N, N_DEGREES + 16)


def test_packed_graphs_need_no_package_of_graphs(monkeypatch):
    packed = packed_arrays([[0, 1, 2, 3], [1, 0, 3, 2]], [0, 2, 4, 5])
    for name in ("torch_geometric", "torch_geometric.data", "networkx"):
        monkeypatch.setitem(sys.modules, name, None)
    assert embedded(packed).shape == (3, 2 + 16)
    with pytest.raises(ValueError):
        small().fit([[1.0, np.nan]] * 4)


def test_labels_of_pytorch_geometric_are_those_of_networkx():
    geometric = pytest.importorskip("torch_geometric.utils")
    graphs = [nx.path_graph(n) for n in range(3, 15)]
    for graph in graphs:
        nx.set_node_attributes(graph, {node: node % 3 for node in graph}, "label")
    data = [geometric.from_networkx(graph) for graph in graphs]
    np.testing.assert_array_equal(embedded(data), embedded(graphs))
    data[2].label = data[2].label[:-1]
    with pytest.raises(ValueError, match="Graph 2 in X: 'label' must hold 5 categories"):
        small().fit(data)
