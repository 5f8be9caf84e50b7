"""Graphs through the embedder, and what users of scikit-learn do with it."""

from __future__ import annotations

import copy
import pickle
import sys
from itertools import product

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.svm import SVC
from sklearn.utils import estimator_checks
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import (
    AttributeMask,
    EdgePerturb,
    GaussianNoise,
    NodeDrop,
    RandomAffine,
    RandomWalkSubgraph,
)
from skcontrast.encoders import GCN, GIN, MLP, ConvNet
from skcontrast.frameworks import CMC, InfoGraph, MoCo, SimCLR
from skcontrast.graphs import PackedGraphs, pack_graphs
from skcontrast.graphs._features import NodeFeatures
from skcontrast.losses import BCL, DCL, HCL, PUCL, InfoNCE, PositiveDebiased, SupCon
from skcontrast.similarity import DotProduct, VonMisesFisher
from tests.common import LOSSES

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


# What X may be


def test_a_list_a_tuple_an_array_a_series_and_packed_graphs_are_the_same():
    expected = embedded()
    assert expected.shape == (N, 16) and expected.dtype == np.float32
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
    h = embedded(graphs, node_features="constant")
    assert not np.allclose(h[0], h[1])
    np.testing.assert_allclose(h[2], h[0], atol=1e-6)


def test_graphs_without_edges_and_of_single_nodes():
    for framework in FRAMEWORKS:
        h = embedded([nx.empty_graph(1 + k % 3) for k in range(12)], framework=framework)
        assert np.isfinite(h).all()


def test_two_graphs_are_enough_and_one_is_not():
    for framework in FRAMEWORKS:
        assert np.isfinite(embedded(GRAPHS[:2], framework=framework)).all()
        with pytest.raises(ValueError, match=r"Found 1 graph\(s\) in X while a minimum of 2"):
            small(framework=framework).fit(GRAPHS[:1])


@pytest.mark.parametrize(
    "X, error, message",
    [
        ([*GRAPHS, nx.Graph()], ValueError, f"Graph {N} in X has no nodes"),
        ([*GRAPHS, np.eye(2)], TypeError, f"item {N} is a ndarray"),
        ([*GRAPHS, None], TypeError, f"item {N} is a NoneType"),
        (GRAPHS[0], TypeError, r"got a single graph: pass \[graph\]"),
        (iter(GRAPHS), TypeError, r"got a list_iterator: pass list\(X\)"),
        (dict(enumerate(GRAPHS)), TypeError, "a sequence of samples, got a dict"),
        ([[GRAPHS[0]], [GRAPHS[1]]], TypeError, "X must hold graphs only.*item 0 is a list"),
        (
            [*GRAPHS[:3], attributed(GRAPHS[3], lambda k: 1.0)],
            ValueError,
            "Graph 3 in X has 1 node",
        ),
        ([attributed(g, lambda k: np.nan) for g in GRAPHS], ValueError, "Graph 0 .* NaN"),
    ],
    ids=["empty", "array", "None", "single", "iterator", "dict", "rows", "widths", "NaN"],
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
def test_no_graphs_where_there_were_graphs_in_fit(X):
    fitted = small(max_epochs=1).fit(GRAPHS)
    for method in (fitted.transform, fitted.score, fitted.partial_fit):
        with pytest.raises(ValueError, match="X must be a list of graphs, as in fit"):
            method(X)


@pytest.mark.parametrize(
    "X", [np.random.default_rng(0).normal(size=(12, 5)), np.zeros((12, 8, 8))]
)
def test_graphs_where_there_were_none_in_fit(X):
    fitted = small(encoder=None, max_epochs=1).fit(
        X + np.arange(12).reshape(12, *[1] * (X.ndim - 1))
    )
    for method in (fitted.transform, fitted.score, fitted.partial_fit):
        with pytest.raises(
            ValueError, match=r"X holds graphs, but .* fitted on an array of shape"
        ):
            method(GRAPHS)


def test_fit_may_change_from_vectors_to_graphs_and_back():
    vectors = pd.DataFrame(np.random.default_rng(0).normal(size=(12, 5))).add_prefix("p")
    embedder = small(encoder=None, max_epochs=1).fit(vectors)
    assert embedder.n_features_in_ == 5
    embedder.fit(GRAPHS)
    assert not hasattr(embedder, "n_features_in_") and not hasattr(embedder, "feature_names_in_")
    assert embedder.transform(GRAPHS).shape == (N, 96)
    embedder.fit(vectors)
    assert embedder.n_features_in_ == 5 and len(embedder.feature_names_in_) == 5


@pytest.mark.parametrize("encoder", [MLP(), ConvNet()], ids=repr)
def test_other_encoders_are_refused(encoder):
    with pytest.raises(ValueError, match=f"{type(encoder).__name__} expects .* got"):
        small(encoder=encoder).fit(GRAPHS)


@pytest.mark.parametrize("augmentation", [GaussianNoise(), RandomAffine()], ids=repr)
def test_other_augmentations_are_refused(augmentation):
    message = f"{type(augmentation).__name__} does not augment graphs"
    with pytest.raises(ValueError, match=message):
        small(augmentation=augmentation).fit(GRAPHS)
    with pytest.raises(ValueError, match=message):
        make_pipeline(augmentation, small()).fit(GRAPHS)


@pytest.mark.parametrize("split", ["auto", "lab", "random", 2, [0]])
def test_cmc_refuses_graphs(split):
    with pytest.raises(ValueError, match=r"CMC contrasts two parts .* InfoGraph\(\)"):
        small(framework=CMC(split=split)).fit(GRAPHS)


def test_networkx_suffices(monkeypatch):
    for name in ("torch_geometric", "torch_geometric.data"):
        monkeypatch.setitem(sys.modules, name, None)
    assert embedded().shape == (N, 16)


def test_packed_graphs_need_no_package_of_graphs(monkeypatch):
    for name in ("torch_geometric", "torch_geometric.data", "networkx"):
        monkeypatch.setitem(sys.modules, name, None)
    edges = [[0, 1, 2, 3], [1, 0, 3, 2]]
    assert embedded(PackedGraphs.from_arrays(edges, [0, 2, 4, 5])).shape == (3, 16)
    with pytest.raises(ValueError):
        small().fit([[1.0, np.nan]] * 4)


# Node features


def features(X, kind="auto", standardize=True, fit_on=None):
    scaler = NodeFeatures(kind, standardize).fit(pack_graphs(X if fit_on is None else fit_on))
    return scaler.to_tensor(pack_graphs(X), "cpu").x


def test_degrees_are_one_hot_and_capped_at_the_largest_in_fit():
    x = features([nx.star_graph(3)])
    assert x.tolist() == [[0, 0, 0, 1], *[[0, 1, 0, 0]] * 3]
    x = features([nx.star_graph(9)], fit_on=[nx.star_graph(3)])
    assert x[0].tolist() == [0, 0, 0, 1]
    assert features([nx.star_graph(200)]).shape == (201, 65)
    assert features([nx.empty_graph(2)]).tolist() == [[1], [1]]
    assert features([nx.DiGraph([(0, 1), (2, 1)])]).tolist() == [[1, 0, 0], [0, 0, 1], [1, 0, 0]]


def test_constant_is_a_single_one():
    assert features(GRAPHS[:2], "constant").unique().tolist() == [1]
    graphs = [attributed(graph, lambda k: [k, 2 * k], lambda k: k % 3) for graph in GRAPHS]
    assert features(graphs, "constant").shape[1] == 1
    assert features(graphs, "degree").equal(features(GRAPHS, "degree"))


def test_attributes_are_standardised_but_for_those_of_zeros_and_ones():
    def x(k):
        return [10.0 * k + 1e4, k % 2, 1.0, 0.0, 7.0]

    graphs = [attributed(graph, x) for graph in GRAPHS]
    out = features(graphs, "attributes").double()
    assert out[:, 0].mean().abs() < 1e-5 and abs(out[:, 0].std(correction=0) - 1) < 1e-5
    raw = pack_graphs(graphs).attributes
    assert out[:, 1:4].equal(raw[:, 1:4].double())
    assert not out[:, 4].any()
    assert features(graphs, standardize=False).equal(raw)
    # The map is that of fit.
    np.testing.assert_allclose(features(graphs[:1], fit_on=graphs), out[: len(graphs[0])])


@pytest.mark.parametrize(
    "values", [[0.0, 1e-44], [1e30, -1e38], [1e9, 1e9 + 1e5], [-3.4e38, 3.4e38]], ids=repr
)
def test_attributes_of_any_size_are_finite(values):
    graphs = [attributed(graph, lambda k: values[k % 2]) for graph in GRAPHS]
    out = features(graphs)
    assert out.isfinite().all() and out.abs().max() < 10 and out.unique().numel() == 2
    assert np.isfinite(embedded(graphs)).all()


def test_attributes_far_from_those_of_fit_are_clipped():
    graphs = [attributed(graph, lambda k: k / 10) for graph in GRAPHS]
    far = [attributed(graph, lambda k: 3e38) for graph in GRAPHS]
    assert features(far, fit_on=graphs).unique().tolist() == [1e6]
    assert np.isfinite(small().fit(graphs).transform(far)).all()


def test_labels_are_one_hot_and_zeros_where_unseen():
    graphs = [attributed(graph, label=lambda k: "CNO"[k % 3]) for graph in GRAPHS]
    x = features(graphs)
    assert x.shape[1] == 3 and (x.sum(1) == 1).all()
    other = [attributed(nx.path_graph(4), label=lambda k: ["O", "Pt", "C", 7][k])]
    assert features(other, fit_on=graphs).tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0], [0, 0, 0]]


def test_codes_of_labels_do_not_depend_on_which_graph_comes_first():
    graphs = [attributed(graph, label=lambda k: "CNO"[k % 3]) for graph in GRAPHS]
    embedder = small().fit(graphs)
    h = embedder.transform(graphs)
    tail = [attributed(nx.path_graph(2), label=lambda k: "new"), *graphs[5:]]
    np.testing.assert_allclose(embedder.transform(tail)[1:], h[5:], atol=1e-5)
    packed = pack_graphs([*tail, *graphs])
    np.testing.assert_allclose(embedder.transform(packed[len(tail) :]), h, atol=1e-5)


def test_only_categories_of_the_training_graphs_have_a_code():
    graphs = [attributed(graph, label=lambda k, g=g: g % 4) for g, graph in enumerate(GRAPHS)]
    packed = pack_graphs(graphs)
    assert features(packed[::4]).shape[1] == 1
    assert features(packed[1::4], fit_on=packed[::2]).sum() == 0


def test_attributes_and_labels_stand_side_by_side():
    graphs = [attributed(graph, lambda k: [k % 2], lambda k: k % 3) for graph in GRAPHS]
    x = features(graphs)
    nodes = np.concatenate([np.arange(len(graph)) for graph in graphs])
    np.testing.assert_array_equal(x, np.column_stack([nodes % 2, np.eye(3)[nodes % 3]]))


@pytest.mark.parametrize("had", [True, False])
def test_labels_must_be_there_in_transform_if_and_only_if_they_were_in_fit(had):
    labelled = [attributed(graph, lambda k: 1.0, lambda k: k % 3) for graph in GRAPHS]
    plain = [attributed(graph, lambda k: 1.0) for graph in GRAPHS]
    fitted = small(max_epochs=1).fit(labelled if had else plain)
    message = f"The graphs in fit {'had' if had else 'had no'} node labels"
    with pytest.raises(ValueError, match=message):
        fitted.transform(plain if had else labelled)


def test_attributes_must_be_as_wide_as_in_fit():
    fitted = small(max_epochs=1).fit([attributed(g, lambda k: [1.0, k]) for g in GRAPHS])
    with pytest.raises(ValueError, match=r"have 0 node attributes, .* fitted on graphs with 2"):
        fitted.transform(GRAPHS)


def test_attributes_must_be_there_where_they_are_asked_for():
    with pytest.raises(ValueError, match=r"node_features='attributes', but .* neither"):
        small(node_features="attributes").fit(GRAPHS)
    with pytest.raises(ValueError, match="The 'node_features' parameter of ContrastiveEmbedder"):
        small(node_features="labels").fit(GRAPHS)


@pytest.mark.parametrize("kind", ["auto", "attributes", "degree", "constant"])
def test_all_kinds_of_node_features_train(kind):
    graphs = [attributed(graph, lambda k: k, lambda k: k % 3) for graph in GRAPHS]
    for framework in (SimCLR(), InfoGraph()):
        h = embedded(graphs, node_features=kind, framework=framework)
        assert np.isfinite(h).all() and h.std(0).max() > 0


def test_masked_attributes_are_the_mean():
    graphs = [attributed(graph, lambda k: k, lambda k: k % 3) for graph in GRAPHS]
    assert np.isfinite(embedded(graphs, augmentation=AttributeMask(1.0))).all()


# Pipelines


def pipeline(**kwargs):
    embed = small(**{"framework": InfoGraph(), "loss": PUCL(), "max_epochs": 8, **kwargs})
    return Pipeline([("drop", NodeDrop()), ("embed", embed), ("svc", SVC())])


def test_pipeline_of_augmentation_embedder_and_classifier():
    train, test, y_train, y_test = train_test_split(GRAPHS, Y, random_state=0)
    pipe = pipeline().fit(train, y_train)
    assert pipe.predict(test).shape == y_test.shape
    assert [type(step) for step in pipe["embed"].augmentation_] == [NodeDrop]
    assert pipe.score(GRAPHS, Y) > 0.8


def test_chained_augmentations_through_both_doors_are_the_same():
    chain = [NodeDrop(0.1), EdgePerturb(0.1), AttributeMask(0.1), RandomWalkSubgraph(0.9)]
    expected = make_pipeline(*chain, small()).fit(GRAPHS).transform(GRAPHS)
    np.testing.assert_array_equal(embedded(augmentation=chain), expected)


def test_grid_search_reaches_all_choices():
    search = GridSearchCV(
        pipeline(max_epochs=1),
        {
            "embed__loss": [PUCL(), DCL()],
            "embed__loss__tau_plus": [0.1, 0.2],
            "embed__framework__objective": ["jensen-shannon", "contrastive"],
            "embed__encoder__pooling": ["sum", "mean"],
            "drop__rate": [0.1],
        },
        cv=2,
        error_score="raise",
    )
    search.fit(GRAPHS, Y)
    best, embedder = search.best_params_, search.best_estimator_["embed"]
    assert embedder.loss_.tau_plus == best["embed__loss__tau_plus"]
    assert embedder.framework_.objective == best["embed__framework__objective"]
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_grid_search_without_labels():
    grid = {"loss": [InfoNCE(), HCL()], "encoder": [GIN(1, 4), GCN(1, 4)]}
    search = GridSearchCV(small(max_epochs=1), grid, cv=2, error_score="raise").fit(GRAPHS)
    assert (search.cv_results_["mean_test_score"] < 0).all()


@pytest.mark.parametrize("as_", [list, pack_graphs], ids=["list", "packed"])
def test_cross_val_score(as_):
    scores = cross_val_score(pipeline(), as_(GRAPHS), Y, cv=3, error_score="raise")
    assert scores.shape == (3,) and scores.mean() > 0.7


def test_set_output():
    embedder = small(n_components=3).set_output(transform="pandas")
    frame = embedder.fit_transform(GRAPHS)
    assert list(frame.columns) == [f"contrastiveembedder{k}" for k in range(3)]
    assert list(frame.index) == list(range(N))
    assert embedder.set_output(transform="polars").transform(GRAPHS).shape == (N, 3)
    pipe = make_pipeline(NodeDrop(), small(n_components=3)).set_output(transform="pandas")
    assert pipe.fit_transform(GRAPHS).shape == (N, 3)


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_saved_and_loaded(framework):
    pipe = pipeline(framework=framework, max_epochs=1).fit(GRAPHS, Y)
    loaded = pickle.loads(pickle.dumps(pipe))
    np.testing.assert_array_equal(loaded[:-1].transform(GRAPHS), pipe[:-1].transform(GRAPHS))
    np.testing.assert_array_equal(loaded.predict(GRAPHS), pipe.predict(GRAPHS))
    assert loaded["embed"].score(GRAPHS) == pipe["embed"].score(GRAPHS)
    loaded.fit(GRAPHS, Y)


# Going on, and randomness


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_partial_fit_in_pieces_is_one_fit(framework):
    whole = embedded(framework=framework, lr_schedule="constant", max_epochs=3)
    pieces = small(framework=framework, lr_schedule="constant", max_epochs=3)
    for _ in range(3):
        pieces.partial_fit(GRAPHS)
    np.testing.assert_array_equal(pieces.transform(GRAPHS), whole)


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_warm_start_goes_on(framework):
    embedder = small(framework=framework, warm_start=True).fit(GRAPHS)
    others = make_graphs(16, seed=500)
    embedder.fit(GRAPHS).fit(others)
    assert embedder.n_epochs_ == 6 and len(embedder.history_) == 6
    assert np.isfinite(embedder.transform(others)).all()
    with pytest.raises(ValueError, match=r"'encoder' parameter .* has changed"):
        embedder.set_params(encoder=GCN()).fit(GRAPHS)


def test_going_on_with_other_node_features_is_refused():
    embedder = small(warm_start=True, max_epochs=1).fit(GRAPHS)
    with pytest.raises(ValueError, match=r"'node_features' parameter .* has changed from auto to"):
        embedder.set_params(node_features="constant").fit(GRAPHS)


def test_going_on_keeps_the_codes_of_the_first_fit():
    first = [attributed(graph, label=lambda k: "CN"[k % 2]) for graph in GRAPHS]
    second = [attributed(graph, label=lambda k: "NOC"[k % 3]) for graph in GRAPHS]
    embedder = small().partial_fit(first)
    assert embedder.partial_fit(second).transform(second).shape == (N, 16)
    assert embedder._fitted.scaler.codes_ == {"C": 0, "N": 1}


def test_the_queue_of_moco_holds_the_newest_keys_of_graphs():
    framework = MoCo(queue_size=16, momentum=0.9)
    embedder = small(framework=framework, warm_start=True).fit(GRAPHS)
    assert embedder._fitted.framework_state["state"]["queue.keys"].numel() == 16 * 6
    embedder.set_params(max_epochs=6, lr=0.01).fit(GRAPHS)
    assert np.isfinite(embedder.history_[:, "train_loss"]).all()


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_random_state_decides_everything(framework):
    first = embedded(framework=framework)
    np.testing.assert_array_equal(embedded(framework=framework), first)
    assert not np.allclose(embedded(framework=framework, random_state=1), first)


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_global_random_states_are_left_alone(framework):
    torch_state, numpy_state = torch.random.get_rng_state(), np.random.get_state()  # noqa: NPY002
    embedder = small(framework=framework).fit(GRAPHS)
    embedder.transform(GRAPHS), embedder.score(GRAPHS), embedder.partial_fit(GRAPHS)
    assert torch.equal(torch.random.get_rng_state(), torch_state)
    for before, after in zip(numpy_state, np.random.get_state(), strict=True):  # noqa: NPY002
        np.testing.assert_array_equal(before, after)


def test_users_graphs_are_not_touched():
    graphs = [attributed(graph, lambda k: [float(k)], lambda k: k % 2) for graph in GRAPHS]
    before = copy.deepcopy(graphs)
    embedded(graphs, augmentation=AttributeMask(0.5))
    for graph, old in zip(graphs, before, strict=True):
        assert nx.utils.graphs_equal(graph, old)
    packed = pack_graphs(graphs)
    arrays = [array.copy() for array in packed.arrays()]
    embedded(packed, augmentation=AttributeMask(0.5), standardize=False)
    for array, old in zip(packed.arrays(), arrays, strict=True):
        np.testing.assert_array_equal(array, old)


# Transform and score


@pytest.mark.parametrize("encoder", [GIN(2, 8), GCN(2, 8, pooling="mean")], ids=repr)
def test_a_row_does_not_depend_on_the_others(encoder, monkeypatch):
    embedder = small(encoder=encoder, framework=InfoGraph()).fit(GRAPHS)
    h = embedder.transform(GRAPHS)
    rows = [7, 3, 3, 20]
    np.testing.assert_allclose(embedder.transform([GRAPHS[k] for k in rows]), h[rows], atol=1e-5)
    np.testing.assert_allclose(embedder.transform(GRAPHS[5:6]), h[5:6], atol=1e-5)
    monkeypatch.setattr("skcontrast._data._graphs._NODES_PER_CALL", 20)
    np.testing.assert_allclose(embedder.transform(GRAPHS), h, atol=1e-5)


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_names_of_nodes_do_not_matter(framework):
    renamed = [nx.relabel_nodes(g, {node: (k, "n") for k, node in enumerate(g)}) for g in GRAPHS]
    np.testing.assert_array_equal(
        embedded(framework=framework), embedded(renamed, framework=framework)
    )


def test_output_may_be_the_projection():
    embedder = small(output="projection").fit(GRAPHS)
    assert embedder.transform(GRAPHS).shape == (N, 6)
    assert len(embedder.get_feature_names_out()) == 6


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_score_is_that_of_views_and_repeats(framework):
    embedder = small(framework=framework).fit(GRAPHS)
    assert embedder.score(GRAPHS) == embedder.score(GRAPHS) == embedder.score(pack_graphs(GRAPHS))
    assert -np.log(4 * N) < embedder.score(GRAPHS) < 0
    with pytest.raises(ValueError, match="minimum of 2"):
        embedder.score(GRAPHS[:1])


def test_training_raises_the_score():
    scores = [small(max_epochs=n, lr=0.01).fit(GRAPHS).score(GRAPHS) for n in (1, 15)]
    assert scores[1] > scores[0]


# Settings that do not matter much


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_bf16_is_close_to_float32(framework):
    exact, half = (
        small(framework=framework, precision=precision, max_epochs=3).fit(GRAPHS)
        for precision in ("float32", "bf16")
    )
    assert half.transform(GRAPHS).dtype == np.float32
    last = exact.history_[-1, "train_loss"]
    assert half.history_[-1, "train_loss"] == pytest.approx(last, rel=0.1)
    assert not np.array_equal(half.transform(GRAPHS), exact.transform(GRAPHS))


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.parametrize(
    "framework", [pytest.param(SimCLR(), marks=pytest.mark.slow), InfoGraph()], ids=repr
)
def test_a_compiled_fit_is_the_same(framework, monkeypatch):
    """Compiled without generating code, which takes a minute."""

    def compiled(module):
        torch._dynamo.reset()
        return original(module, backend="eager")

    original = torch.compile
    monkeypatch.setattr(torch, "compile", compiled)
    h = embedded(framework=framework, compile=True)
    np.testing.assert_allclose(h, embedded(framework=framework), atol=1e-4)


def test_memory_budget_and_workers_do_not_matter():
    np.testing.assert_array_equal(embedded(memory_budget=0.0, n_workers=2), embedded())


def test_batches_of_two():
    for framework in FRAMEWORKS:
        assert np.isfinite(embedded(GRAPHS[:7], framework=framework, batch_size=2)).all()


def test_a_module_with_dropout_is_an_encoder():
    class Dropped(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(nn.LazyLinear(8), nn.Dropout(0.5), nn.ReLU())

        def forward(self, x, edge_index, batch):
            return self.layers(x)

    for framework in FRAMEWORKS:
        h = embedded(encoder=Dropped(), framework=framework)
        np.testing.assert_array_equal(embedded(encoder=Dropped(), framework=framework), h)


def test_infograph_refuses_an_encoder_without_nodes():
    class Pooled(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.LazyLinear(8)

        def forward(self, x, edge_index, batch):
            h = self.layer(x)
            return h.new_zeros(int(batch[-1]) + 1, 8).index_add_(0, batch, h)

    assert embedded(encoder=Pooled()).shape == (N, 8)
    with pytest.raises(ValueError, match=r"InfoGraph needs an encoder .* row per node"):
        small(encoder=Pooled(), framework=InfoGraph()).fit(GRAPHS)


def test_sample_weights_of_zero_are_no_anchors():
    weights = np.r_[np.ones(12), np.zeros(12)]
    for framework in FRAMEWORKS:
        embedder = small(framework=framework)
        h = embedder.fit(GRAPHS, sample_weight=weights).transform(GRAPHS)
        assert np.isfinite(h).all() and not np.allclose(h, embedded(framework=framework))


# scikit-learn's checks. Those that bring data bring arrays; their laws are written for graphs.

VARIANTS = [small(framework=framework, loss=BCL()) for framework in (MoCo(), InfoGraph())]
WITHOUT_DATA = [
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
]


@pytest.mark.parametrize("name", WITHOUT_DATA)
@pytest.mark.parametrize("estimator", VARIANTS, ids=lambda e: repr(e.framework))
def test_estimator_checks(estimator, name):
    getattr(estimator_checks, name)("ContrastiveEmbedder", clone(estimator))


def check_estimators_fit_returns_self(estimator):
    assert estimator.fit(GRAPHS) is estimator
    assert estimator.partial_fit(GRAPHS) is estimator


def check_fit_idempotent(estimator):
    first = estimator.fit(GRAPHS, Y).transform(GRAPHS)
    np.testing.assert_array_equal(estimator.fit(GRAPHS, Y).transform(GRAPHS), first)


def check_estimators_overwrite_params(estimator):
    before = {name: copy.deepcopy(value) for name, value in estimator.get_params().items()}
    estimator.fit(GRAPHS)
    after = estimator.get_params()
    assert {k: repr(v) for k, v in after.items()} == {k: repr(v) for k, v in before.items()}


def check_dont_overwrite_parameters(estimator):
    before = set(vars(estimator))
    added = set(vars(estimator.fit(GRAPHS))) - before
    assert all(name.startswith("_") or name.endswith("_") for name in added)


def check_dict_unchanged(estimator):
    before = dict(vars(estimator.fit(GRAPHS)))
    estimator.transform(GRAPHS), estimator.score(GRAPHS)
    assert vars(estimator) == before


def check_estimators_pickle(estimator):
    h = estimator.fit(GRAPHS).transform(GRAPHS)
    again = pickle.loads(pickle.dumps(estimator))
    np.testing.assert_array_equal(again.transform(GRAPHS), h)


def check_estimators_unfitted(estimator):
    for method in (estimator.transform, estimator.score):
        with pytest.raises(NotFittedError):
            method(GRAPHS)


def check_n_features_in(estimator):
    assert not hasattr(estimator, "n_features_in_")
    assert not hasattr(estimator.fit(GRAPHS), "n_features_in_")


def check_transformer_general(estimator):
    h = estimator.fit_transform(GRAPHS, Y)
    np.testing.assert_array_equal(estimator.transform(GRAPHS), h)
    assert len(h) == N


def check_transformer_get_feature_names_out(estimator):
    h = estimator.fit_transform(GRAPHS)
    names = estimator.get_feature_names_out()
    assert len(set(names)) == h.shape[1]


def check_transformer_preserve_dtypes(estimator):
    graphs = [attributed(graph, lambda k: np.float64(k)) for graph in GRAPHS]
    assert estimator.fit_transform(graphs).dtype == np.float32


def check_methods_sample_order_invariance(estimator):
    order = np.random.default_rng(0).permutation(N)
    h = estimator.fit(GRAPHS).transform(GRAPHS)
    np.testing.assert_allclose(
        estimator.transform([GRAPHS[k] for k in order]), h[order], atol=1e-5
    )


def check_methods_subset_invariance(estimator):
    h = estimator.fit(GRAPHS).transform(GRAPHS)
    one_by_one = [estimator.transform([graph]) for graph in GRAPHS]
    np.testing.assert_allclose(np.concatenate(one_by_one), h, atol=1e-5)


def check_estimator_cloneable(estimator):
    copied = clone(estimator.fit(GRAPHS))
    assert not hasattr(copied, "encoder_")
    np.testing.assert_array_equal(
        copied.fit(GRAPHS).transform(GRAPHS), estimator.transform(GRAPHS)
    )


ON_GRAPHS = [value for name, value in list(globals().items()) if name.startswith("check_")]


@pytest.mark.parametrize("check", ON_GRAPHS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("estimator", VARIANTS, ids=lambda e: repr(e.framework))
def test_estimator_checks_on_graphs(estimator, check):
    check(clone(estimator))


# All of it together


def is_refused(loss, framework):
    has_no_form = isinstance(loss, (SupCon, PositiveDebiased))
    return has_no_form and getattr(framework, "objective", "") == "jensen-shannon"


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_every_loss_with_every_framework(loss, framework):
    embedder = small(loss=loss, framework=framework, batch_size=12)
    if is_refused(loss, framework):
        with pytest.raises(ValueError, match="no Jensen–Shannon form"):
            embedder.fit(GRAPHS, Y)
        return
    h = embedder.fit(GRAPHS, Y).transform(GRAPHS)
    assert np.isfinite(h).all() and np.isfinite(embedder.history_[:, "train_loss"]).all()


def longer_cases():
    """Return losses, frameworks and similarities that go together."""
    for loss, framework, similarity in product(
        LOSSES, FRAMEWORKS, [None, DotProduct(), VonMisesFisher()]
    ):
        has_no_bounds = isinstance(similarity, DotProduct) and isinstance(loss, PositiveDebiased)
        if not (is_refused(loss, framework) or has_no_bounds):
            yield loss, framework, similarity


@pytest.mark.slow
@pytest.mark.parametrize("encoder", [GIN(2, 8), GCN(2, 8, batch_norm=False)], ids=repr)
@pytest.mark.parametrize("loss, framework, similarity", list(longer_cases()), ids=repr)
def test_a_longer_fit_of_every_loss(loss, framework, similarity, encoder):
    embedder = small(
        loss=loss, framework=framework, encoder=encoder, similarity=similarity, max_epochs=20
    )
    h = embedder.fit(GRAPHS, Y).transform(GRAPHS)
    assert np.isfinite(h).all() and np.isfinite(embedder.history_[:, "train_loss"]).all()


@pytest.mark.parametrize("framework", FRAMEWORKS, ids=repr)
def test_graphs_have_concentrations(framework):
    embedder = small(framework=framework, similarity=VonMisesFisher()).fit(GRAPHS)
    assert embedder.concentration(GRAPHS).shape == (N,)
    assert (embedder.concentration(GRAPHS) > 0).all()


def test_embeddings_of_graphs_serve_a_classifier():
    train, test, y_train, y_test = train_test_split(
        make_graphs(60), np.arange(60) % 2, random_state=0
    )
    for framework in FRAMEWORKS:
        embedder = small(framework=framework, max_epochs=6, lr=0.01)
        pipe = make_pipeline(embedder, LogisticRegression(max_iter=5000))
        assert pipe.fit(train, y_train).score(test, y_test) > 0.75


def test_packed_graphs_are_what_a_fit_holds():
    packed = pack_graphs(GRAPHS)
    assert isinstance(packed, PackedGraphs)
    embedder = small(augmentation=NodeDrop()).fit(packed)
    assert not any(
        isinstance(value, (list, PackedGraphs)) and len(value) == N
        for value in vars(embedder).values()
    )


def test_score_of_graphs_that_are_not_augmented_draws_views():
    graphs = [nx.gnp_random_graph(10, 0.1 * (1 + k % 4), seed=k) for k in range(20)]
    params = {"framework": InfoGraph(), "max_epochs": 1, "random_state": 0}
    plain = ContrastiveEmbedder(**params).fit(graphs)
    assert plain.augmentation_ == []
    explicit = ContrastiveEmbedder(**params).fit(graphs)
    explicit.augmentation_ = [NodeDrop()]
    assert plain.score(graphs) == explicit.score(graphs)
