"""InfoGraph: nodes against graphs, in a fit."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch import nn

from skcontrast.augmentation import NodeDrop
from skcontrast.encoders import GIN
from skcontrast.frameworks import InfoGraph
from skcontrast.kinds import Graphs
from skcontrast.losses import BCL, HCL, InfoNCE, PositiveDebiased, SupCon, Supervised
from skcontrast.similarity import Cosine, DotProduct
from tests.graphs.common import small as of_graphs


def rings_and_stars(n=24, seed=0):
    """Return sparse and dense graphs, and which they are."""
    classes = np.arange(n) % 2
    graphs = [
        nx.gnp_random_graph(8 + k % 5, 0.2 + 0.4 * c, seed=seed + k)
        for k, c in enumerate(classes.tolist())
    ]
    return graphs, classes


GRAPHS, Y = rings_and_stars()


def small(**kwargs):
    return of_graphs(**{"framework": InfoGraph(), **kwargs})


class Watched(InfoGraph):
    """Keeps the contrasts of a fit."""

    seen: list = []

    def start(self, fit):
        session = super().start(fit)
        contrast = session.contrast

        def watched(views, similarity, batch):
            self.seen.append((views, contrast(views, similarity, batch)))
            return self.seen[-1][1]

        session.contrast = watched
        return session


def watched_fit(y=None, **kwargs):
    embedder = small(framework=Watched(), max_epochs=1, **kwargs)
    Watched.seen.clear()
    embedder.fit(GRAPHS, y, **({"sample_weight": np.arange(24.0)} if y is not None else {}))
    return embedder, list(Watched.seen)


def test_nodes_are_anchors_and_graphs_of_the_batch_are_candidates():
    embedder, steps = watched_fit()
    assert len(steps) == 3 and embedder.n_epochs_ == 1
    for (graphs,), contrast in steps:
        assert contrast.anchors.shape == (graphs.n_nodes, 6)
        assert contrast.candidates.shape == (8, 6)
        assert contrast.excluded.equal(graphs.batch[:, None])
        assert contrast.positives.equal(graphs.batch[:, None])
        assert contrast.weights is None and contrast.candidate_labels is None


def test_nodes_carry_the_weights_and_labels_of_their_graphs():
    _, steps = watched_fit(Y, loss=Supervised())
    for (graphs,), contrast in steps:
        assert contrast.weights.equal(
            contrast.weights[graphs.topology.node_ptr[:-1]][graphs.batch]
        )
        assert contrast.anchor_labels.equal(contrast.candidate_labels[graphs.batch])
    weights = torch.cat([c.weights[g.topology.node_ptr[:-1]] for (g,), c in steps])
    assert weights.sort().values.tolist() == list(range(24))


@pytest.mark.filterwarnings("ignore:The representation is the same for all samples")
def test_nodes_and_graphs_have_a_head_each():
    """If both had one, a graph of a single node would be its own positive at angle zero."""
    graphs = [nx.empty_graph(1)] * 4
    embedder = small(framework=Watched(), max_epochs=1, kind=Graphs(node_features="constant"))
    Watched.seen.clear()
    embedder.fit(graphs)
    contrast = Watched.seen[0][1]
    assert not torch.allclose(contrast.anchors, contrast.candidates)


def test_without_a_head_nodes_and_graphs_are_compared_as_they_are():
    embedder, steps = watched_fit(projection_dim=0, encoder=GIN(2, 8, "sum"))
    (graphs,), contrast = steps[0]
    sums = torch.zeros_like(contrast.candidates).index_add(0, graphs.batch, contrast.anchors)
    torch.testing.assert_close(sums, contrast.candidates)
    assert isinstance(embedder.projector_, nn.Identity)


def test_one_view_is_drawn_whatever_n_views_is():
    embeddings = [small(n_views=n).fit(GRAPHS).transform(GRAPHS) for n in (2, 5)]
    np.testing.assert_array_equal(*embeddings)
    assert small().fit(GRAPHS).augmentation_ == []
    (views, _), *_ = watched_fit(augmentation=NodeDrop(0.5))[1]
    assert len(views) == 1 and views[0].n_nodes < 8 * min(map(len, GRAPHS))


def test_the_similarity_follows_the_objective_unless_it_is_given():
    def similarity(objective, given=None):
        embedder = small(framework=InfoGraph(objective), similarity=given, max_epochs=1)
        return repr(embedder.fit(GRAPHS).similarity_)

    assert similarity("jensen-shannon") == "DotProduct()"
    assert similarity("contrastive") == "Cosine()"
    assert similarity("jensen-shannon", Cosine(0.2)) == "Cosine(temperature=0.2)"
    assert similarity("contrastive", DotProduct()) == "DotProduct()"


@pytest.mark.parametrize("loss", [SupCon(), PositiveDebiased()], ids=repr)
def test_losses_without_a_jensen_shannon_form_name_the_way_out(loss):
    message = rf"{type(loss).__name__} .* no Jensen–Shannon form.*InfoGraph\(objective='contrast"
    with pytest.raises(ValueError, match=message):
        small(loss=loss).fit(GRAPHS, Y)
    embedder = small(loss=loss, framework=InfoGraph("contrastive")).fit(GRAPHS, Y)
    assert np.isfinite(embedder.history_[:, "train_loss"]).all()


@pytest.mark.filterwarnings("ignore:All samples in X are alike")
@pytest.mark.parametrize("X", [np.eye(12), np.zeros((12, 8, 8))], ids=["vectors", "images"])
def test_data_without_nodes_are_refused(X):
    with pytest.raises(ValueError, match=r"InfoGraph .* needs X to be a list of graphs"):
        small(encoder=None).fit(X)


@pytest.mark.parametrize(
    "loss, objective",
    [(Supervised(), "jensen-shannon"), (Supervised(), "contrastive"), (SupCon(), "contrastive")],
    ids=repr,
)
def test_losses_that_read_labels(loss, objective):
    framework = InfoGraph(objective)
    by_class = small(loss=loss, framework=framework).fit(GRAPHS, Y).transform(GRAPHS)
    other = small(loss=loss, framework=framework).fit(GRAPHS, np.sort(Y)).transform(GRAPHS)
    assert not np.allclose(by_class, other)
    with pytest.raises(ValueError, match=f"{type(loss).__name__} requires y"):
        small(loss=loss, framework=framework).fit(GRAPHS)


def test_labels_are_ignored_by_losses_that_read_none():
    with_labels = small().fit(GRAPHS, Y).transform(GRAPHS)
    np.testing.assert_array_equal(with_labels, small().fit(GRAPHS).transform(GRAPHS))


def test_descriptions_are_held_to_the_graphs():
    descriptions = np.random.default_rng(0).normal(size=(24, 6))
    h = small().fit(GRAPHS, descriptions=descriptions).transform(GRAPHS)
    assert not np.allclose(h, small().fit(GRAPHS).transform(GRAPHS))
    with pytest.raises(ValueError, match=r"descriptions must have shape \(n_samples, 6\)"):
        small().fit(GRAPHS, descriptions=descriptions[:, :3])


@pytest.mark.parametrize("objective", ["jensen-shannon", "contrastive"])
@pytest.mark.parametrize("loss", [InfoNCE(), HCL(), BCL()], ids=repr)
def test_learns_to_tell_graphs_apart(objective, loss):
    embedder = small(framework=InfoGraph(objective), loss=loss, max_epochs=15, lr=0.01)
    h = embedder.fit_transform(GRAPHS)
    losses = embedder.history_[:, "train_loss"]
    assert losses[-1] < losses[0]
    others, y = rings_and_stars(40, seed=1000)
    probe = LogisticRegression(max_iter=5000)
    assert probe.fit(h, Y).score(embedder.transform(others), y) > 0.9


def test_warm_start_continues_with_the_head_of_the_nodes():
    embedder = small(warm_start=True, max_epochs=1).fit(GRAPHS)
    state = {name: value.clone() for name, value in embedder._states["framework"]["state"].items()}
    assert state and all(name.startswith("head.") for name in state)
    embedder.set_params(lr=1e-9).fit(GRAPHS[:12])
    for name, value in embedder._states["framework"]["state"].items():
        if value.is_floating_point() and "running" not in name:
            torch.testing.assert_close(value, state[name], atol=1e-6, rtol=0)
    assert embedder.n_epochs_ == 2


def test_continuing_with_the_other_objective():
    embedder = small(warm_start=True, max_epochs=1).fit(GRAPHS)
    embedder.set_params(framework=InfoGraph("contrastive")).fit(GRAPHS)
    assert embedder.n_epochs_ == 2 and isinstance(embedder.similarity_, Cosine)


def test_hyperparameters_are_estimated_from_the_data():
    loss = BCL(alpha="auto", tau_plus="auto")
    for objective in ("jensen-shannon", "contrastive"):
        embedder = small(loss=loss, framework=InfoGraph(objective), max_epochs=6).fit(GRAPHS, Y)
        assert embedder.estimates_["tau_plus"] == pytest.approx(0.5)
        assert 0.5 <= embedder.estimates_["alpha"] <= 1
