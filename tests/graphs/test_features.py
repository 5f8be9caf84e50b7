"""The features of nodes: degrees, attributes, labels."""

import re

import networkx as nx
import numpy as np
import pytest
import torch

from skcontrast.augmentation import AttributeMask
from skcontrast.frameworks import InfoGraph, SimCLR
from skcontrast.graphs import pack_graphs
from skcontrast.graphs._features import NodeFeatures  # private: the columns that a network reads
from skcontrast.kinds import Graphs
from tests.graphs.common import GRAPHS, attributed, embedded, small


def features(X, kind="auto", standardize=True, fit_on=None):
    scaler = NodeFeatures(kind, standardize).fit(pack_graphs(X if fit_on is None else fit_on))
    return scaler.to_tensor(pack_graphs(X), "cpu").x


def test_degrees_are_cumulative_and_capped_at_the_largest_in_fit():
    x = features([nx.star_graph(3)])
    assert x.tolist() == [[1, 1, 1, 1], *[[1, 1, 0, 0]] * 3]
    assert features([nx.star_graph(9)], fit_on=[nx.star_graph(3)])[0].tolist() == [1, 1, 1, 1]
    assert features([nx.star_graph(200)]).shape == (201, 65)
    assert features([nx.empty_graph(2)]).tolist() == [[1], [1]]
    assert features([nx.DiGraph([(0, 1), (2, 1)])]).tolist() == [[1, 0, 0], [1, 1, 1], [1, 0, 0]]


def test_constant_is_a_single_one():
    assert features(GRAPHS[:2], "constant").unique().tolist() == [1]
    graphs = [attributed(graph, lambda k: [k, 2 * k], lambda k: k % 3) for graph in GRAPHS]
    assert features(graphs, "constant").shape[1] == 1
    assert features(graphs, "degree").equal(features(GRAPHS, "degree"))


def test_attributes_are_standardised_except_those_of_zeros_and_ones():
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
    x = features(other, fit_on=graphs)
    assert x.tolist() == [[0, 0, 1], [0, 0, 0], [1, 0, 0], [0, 0, 0]]


@pytest.mark.parametrize(
    ("then", "now"), [(str, int), (int, str), (int, lambda k: (k, 1)), (str, lambda k: f"{k}.0")]
)
def test_labels_of_which_none_occurred_in_fit_are_reported(then, now):
    known, new = (
        [attributed(graph, label=lambda k, to=to: to(k % 3)) for graph in GRAPHS]
        for to in (then, now)
    )
    with pytest.warns(UserWarning, match="No label of the graphs in X, such as"):
        assert not features(new, fit_on=known).any()


@pytest.mark.parametrize("to", [np.bool_, bool, float, np.int8])
def test_labels_are_equal_numbers_whatever_their_type(to):
    whole, other = (
        [attributed(graph, label=lambda k, of=of: of(k % 2)) for graph in GRAPHS]
        for of in (int, to)
    )
    assert torch.equal(features(other, fit_on=whole), features(whole))


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
    one, other = "1 attributes ('x'), labels", "1 attributes ('x')"
    had_then, have_now = (one, other) if had else (other, one)
    message = f"Nodes had {had_then} in fit, but have {have_now} in X."
    with pytest.raises(ValueError, match=re.escape(message)):
        fitted.transform(plain if had else labelled)


def test_attributes_must_be_as_wide_as_in_fit():
    fitted = small(max_epochs=1).fit([attributed(g, lambda k: [1.0, k]) for g in GRAPHS])
    with pytest.raises(ValueError, match=r"Nodes had 2 attributes \('x'\) in fit, but have none"):
        fitted.transform(GRAPHS)


@pytest.mark.parametrize("kind", ["auto", "degree", "constant"])
def test_all_kinds_of_node_features_train(kind):
    graphs = [attributed(graph, lambda k: k, lambda k: k % 3) for graph in GRAPHS]
    for framework in (SimCLR(), InfoGraph()):
        h = embedded(graphs, kind=Graphs(node_features=kind), framework=framework)
        assert np.isfinite(h).all() and h.std(0).max() > 0


@pytest.mark.filterwarnings("ignore:No label of the graphs")
def test_masked_attributes_are_the_mean():
    graphs = [attributed(graph, lambda k: 3.0 * k + 5, lambda k: k % 3) for graph in GRAPHS]
    packed = pack_graphs(graphs)
    scaler = NodeFeatures().fit(packed)
    masked = AttributeMask(1.0).augment(scaler.to_tensor(packed, "cpu")).x
    mean = float(packed.attributes.double().mean())
    average = [attributed(graph, lambda k: mean, lambda k: 99) for graph in GRAPHS]
    expected = scaler.to_tensor(pack_graphs(average), "cpu").x
    torch.testing.assert_close(masked, expected, rtol=0, atol=1e-6)
    assert not torch.allclose(masked, scaler.to_tensor(packed, "cpu").x, atol=0.1)


def test_embeddings_of_graphs_without_any_attribute_left_are_finite():
    graphs = [attributed(graph, lambda k: k, lambda k: k % 3) for graph in GRAPHS]
    assert np.isfinite(embedded(graphs, augmentation=AttributeMask(1.0))).all()
