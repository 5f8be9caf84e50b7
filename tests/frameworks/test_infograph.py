"""InfoGraph: both objectives against naive formulas, what it refuses, and that it learns."""

from __future__ import annotations

import math
from itertools import product

import networkx as nx
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast._objective import _tiles
from skcontrast._objective._functional import Contrast, objective_value
from skcontrast.augmentation import NodeDrop
from skcontrast.encoders import GIN
from skcontrast.frameworks import InfoGraph
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    PUCL,
    InfoNCE,
    NonparametricBCL,
    PositiveDebiased,
    Ring,
    SupCon,
    Supervised,
)
from skcontrast.similarity import Cosine, DotProduct, VonMisesFisher
from tests.common import LOSSES

# N for 7 graphs: each node has as many negatives.
N_GRAPHS, WIDTH = 7, 4
N_NEGATIVES = N_GRAPHS - 1
OWNER = torch.tensor([0, 0, 1, 1, 1, 2, 3, 3, 4, 5, 5, 5, 6])
LABELS = torch.tensor([0, 1, 0, 2, 1, -1, -1])


def vectors(scale=1.0, dtype=torch.float64):
    """Return vectors of the nodes and of the graphs, which require a gradient."""
    generator = torch.Generator().manual_seed(0)
    nodes = torch.randn(len(OWNER), WIDTH, generator=generator, dtype=dtype)
    graphs = torch.randn(N_GRAPHS, WIDTH, generator=generator, dtype=dtype)
    return [(scale * t).requires_grad_() for t in (nodes, graphs)]


def contrast_of(nodes, graphs, similarity, weights=None, labels=LABELS):
    u, v = similarity.embed(nodes), similarity.embed(graphs)
    positives = similarity.pairs(u, v[OWNER])[:, None]
    return Contrast(u, v, positives, OWNER[:, None], weights, labels[OWNER], labels)


# One node at a time, written as in the papers: `s` are the N scores of its negatives in order of
# their graphs, `p` is that of its own graph, `same` says which graphs share its class.


def constant(a, b, s, p, phi):
    return a * phi(s).mean() - b * phi(p)


def hardness(a, b, beta, s, p, phi):
    weights = (beta * s).softmax(0)
    return a * (weights * phi(s)).sum() - b * phi(p)


def naive_infonce(s, p, same, phi):
    return constant(1, 0, s, p, phi)


def naive_dcl(s, p, same, phi):
    return constant(1 / 0.8, 0.2 / 0.8, s, p, phi)


def naive_pucl(s, p, same, phi):
    return constant((1 - 0.15 * 0.2) / 0.85, 0.15 * 0.8 / 0.85, s, p, phi)


def naive_hcl(s, p, same, phi):
    return hardness(1 / 0.95, 0.05 / 0.95, 0.7, s, p, phi)


def naive_ring(s, p, same, phi):
    """Of 6 negatives, the closest 4 without the first; its own size stands for N, if N occurs."""
    ring = phi(s.sort(descending=True).values[1:4])
    return ring.mean() if phi is F.softplus else ring.sum() / N_NEGATIVES


def naive_bcl(s, p, same, phi):
    alpha, tau, beta = 0.8, 0.2, 0.6
    unlabeled = (s[:, None] >= s).double().mean(1)
    a = (1 - 2 * alpha) * (1 - 2 * tau)
    b = 1 - a
    u = 2 * unlabeled / (b + (b * b + 4 * a * unlabeled).sqrt())
    negative = (1 - tau) * (alpha + (1 - 2 * alpha) * u)
    false = tau * (1 - alpha + (2 * alpha - 1) * u)
    weights = negative / (negative + false) * (beta * s).exp()
    return ((weights / weights.mean()).detach() * phi(s)).mean()


def naive_supervised(s, p, same, phi):
    return phi(s[~same]).mean()


NAIVE = [
    (InfoNCE(), naive_infonce),
    (DCL(tau_plus=0.2), naive_dcl),
    (PUCL(tau_plus=0.15, c=0.2), naive_pucl),
    (HCL(tau_plus=0.05, beta=0.7), naive_hcl),
    (BCL(alpha=0.8, tau_plus=0.2, beta=0.6), naive_bcl),
    (Ring(outer=0.7, inner=0.3), naive_ring),
    (Supervised(), naive_supervised),
]


def naive_value(nodes, graphs, estimate, similarity, objective, weights=None):
    u, v = similarity.embed(nodes), similarity.embed(graphs)
    losses = []
    for node, own in zip(u, OWNER.tolist(), strict=True):
        scores = similarity.scores(node[None], v)[0]
        others = torch.tensor([k for k in range(N_GRAPHS) if k != own])
        s, p = scores[others], scores[own]
        same = (LABELS[others] == LABELS[own]) & (LABELS[own] >= 0)
        if objective == "jensen-shannon":
            negative = estimate(s, p, same, F.softplus).clamp_min(0)
            losses.append(F.softplus(-p) + negative)
        else:
            lowest = math.exp(similarity.bounds[0])
            negative = estimate(s, p, same, torch.exp).clamp_min(lowest)
            losses.append(-(p.exp() / (p.exp() + N_NEGATIVES * negative)).log())
    losses = torch.stack(losses)
    return (losses if weights is None else losses * weights).mean()


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("scale", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("objective", ["jensen-shannon", "contrastive"])
@pytest.mark.parametrize("loss, estimate", NAIVE, ids=lambda value: getattr(value, "__name__", ""))
def test_both_objectives_equal_the_naive_formula(loss, estimate, objective, scale, weighted):
    similarity = InfoGraph(objective).default_similarity()
    nodes, graphs = vectors(scale)
    weights = torch.linspace(0, 2, len(OWNER), dtype=torch.float64) if weighted else None
    value = objective_value(
        contrast_of(nodes, graphs, similarity, weights), loss, similarity, objective
    )
    expected = naive_value(nodes, graphs, estimate, similarity, objective, weights)
    torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-12)
    ours = torch.autograd.grad(value, (nodes, graphs))
    theirs = torch.autograd.grad(expected, (nodes, graphs))
    torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-12)


HAVE_BOTH = [loss for loss in LOSSES if not isinstance(loss, (PositiveDebiased, SupCon))]


@pytest.mark.parametrize(
    "loss", [one for one in HAVE_BOTH if not (one.detach_weights and one.hardness())], ids=repr
)
def test_gradcheck_of_every_loss_with_the_jensen_shannon_objective(loss):
    def value(nodes, graphs):
        contrast = contrast_of(nodes, graphs, DotProduct())
        return objective_value(contrast, loss, DotProduct(), "jensen-shannon")

    assert torch.autograd.gradcheck(value, vectors())


@pytest.mark.parametrize(
    "loss, same",
    [
        (DCL(tau_plus=0.0), InfoNCE()),
        (HCL(tau_plus=0.2, beta=0.0), DCL(tau_plus=0.2)),
        (PUCL(tau_plus=0.2, c=0.0), DCL(tau_plus=0.2)),
        (PUCL(tau_plus=0.2, c=1.0), InfoNCE()),
        (BCL(alpha=0.5, beta=0.0), InfoNCE()),
        (NonparametricBCL(alpha=0.5, beta=0.5), InfoNCE()),
        (BCL(alpha=0.5, beta=0.7, detach_weights=False), HCL(tau_plus=0.0, beta=0.7)),
        (Ring(outer=1.0, inner=0.0), InfoNCE()),
    ],
    ids=repr,
)
def test_identities_between_losses_hold_with_the_jensen_shannon_objective(loss, same):
    results = []
    for one in (loss, same):
        nodes, graphs = vectors()
        contrast = contrast_of(nodes, graphs, DotProduct())
        value = objective_value(contrast, one, DotProduct(), "jensen-shannon")
        results.append((value.detach(), *torch.autograd.grad(value, (nodes, graphs))))
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("objective", ["jensen-shannon", "contrastive"])
@pytest.mark.parametrize("loss", HAVE_BOTH, ids=repr)
def test_only_the_positive_term_sees_the_own_graph(loss, objective):
    """The own graph is no candidate: what its score is there does not matter."""
    nodes, graphs = vectors()
    contrast = contrast_of(nodes, graphs, DotProduct())
    far = contrast._replace(candidates=contrast.candidates.clone())
    values = []
    for k in range(N_GRAPHS):
        own = (k == OWNER).nonzero().flatten()
        far.candidates[k] = 50.0
        values.append(objective_value(far.take(own), loss, DotProduct(), objective).item())
        far.candidates[k] = contrast.candidates[k]
    expected = [
        objective_value(
            contrast.take((k == OWNER).nonzero().flatten()), loss, DotProduct(), objective
        ).item()
        for k in range(N_GRAPHS)
    ]
    assert values == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rows", [1, 4, 128])
@pytest.mark.parametrize(
    "loss, objective",
    [*product(HAVE_BOTH, ["jensen-shannon", "contrastive"]), (SupCon(), "contrastive")],
    ids=repr,
)
def test_positives_may_be_named_as_candidates(loss, objective, rows, monkeypatch):
    monkeypatch.setattr(_tiles, "_TILE_ELEMENTS", 1)
    monkeypatch.setattr(_tiles, "_TILE_ROWS", rows)
    results = []
    for named in (False, True):
        nodes, graphs = vectors()
        weights = torch.linspace(0, 2, len(OWNER), dtype=torch.float64)
        contrast = contrast_of(nodes, graphs, DotProduct(), weights)
        if named:
            contrast = contrast._replace(positives=OWNER[:, None])
        value = objective_value(contrast, loss, DotProduct(), objective)
        results.append((value.detach(), *torch.autograd.grad(value, (nodes, graphs))))
    torch.testing.assert_close(*results, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("scale", [0.0, 1e-3, 10.0, 1e3, 1e6])
@pytest.mark.parametrize(
    "loss, objective",
    [*product(HAVE_BOTH, ["jensen-shannon", "contrastive"]), (SupCon(), "contrastive")],
    ids=repr,
)
def test_scores_without_bounds_give_finite_values_and_gradients(loss, objective, scale):
    nodes, graphs = vectors(math.sqrt(scale), torch.float32)
    for positives in (None, 40.0 * scale, -40.0 * scale):
        contrast = contrast_of(nodes, graphs, DotProduct())
        if positives is not None:
            contrast = contrast._replace(positives=contrast.positives * 0 + positives)
        value = objective_value(contrast, loss, DotProduct(), objective)
        gradients = torch.autograd.grad(value, (nodes, graphs))
        assert value.isfinite() and all(g.isfinite().all() for g in gradients)


@pytest.mark.parametrize("loss", [DCL(tau_plus=0.3), PUCL(tau_plus=0.3)], ids=repr)
def test_an_estimate_below_zero_is_floored_and_pulls_no_negatives(loss):
    nodes, graphs = vectors()
    contrast = contrast_of(nodes, graphs, DotProduct())
    contrast = contrast._replace(positives=torch.full_like(contrast.positives, 30.0))
    for objective, lowest in (
        ("jensen-shannon", F.softplus(torch.tensor(-30.0))),
        ("contrastive", 0),
    ):
        value = objective_value(contrast, loss, DotProduct(), objective)
        assert value.item() == pytest.approx(float(lowest), abs=1e-12)
        assert not torch.autograd.grad(value, graphs, retain_graph=True)[0].any()


# In a fit


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
    defaults = {
        "encoder": GIN(n_layers=2, width=8),
        "framework": InfoGraph(),
        "projection_dim": 6,
        "max_epochs": 2,
        "batch_size": 8,
        "random_state": 0,
        "device": "cpu",
    }
    return ContrastiveEmbedder(**{**defaults, **kwargs})


class Watched(InfoGraph):
    """Keeps the contrasts of a fit."""

    contrasts: list = []

    def start(self, fit):
        session = super().start(fit)
        contrast = session.contrast

        def watched(views, similarity, batch):
            self.contrasts.append((views, contrast(views, similarity, batch)))
            return self.contrasts[-1][1]

        session.contrast = watched
        return session


def watched_fit(y=None, **kwargs):
    embedder = small(framework=Watched(), max_epochs=1, **kwargs)
    Watched.contrasts.clear()
    embedder.fit(GRAPHS, y, **({"sample_weight": np.arange(24.0)} if y is not None else {}))
    return embedder, list(Watched.contrasts)


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


def test_nodes_and_graphs_have_a_head_each():
    """If both had one, a graph of a single node would be its own positive at angle zero."""
    graphs = [nx.empty_graph(1)] * 4
    embedder = small(framework=Watched(), max_epochs=1, node_features="constant")
    Watched.contrasts.clear()
    embedder.fit(graphs)
    contrast = Watched.contrasts[0][1]
    assert not torch.allclose(contrast.anchors, contrast.candidates)


def test_without_a_head_nodes_and_graphs_are_compared_as_they_are():
    embedder, steps = watched_fit(projection_dim=0)
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


@pytest.mark.parametrize("X", [np.eye(12), np.zeros((12, 8, 8))], ids=["vectors", "images"])
def test_what_has_no_nodes_is_refused(X):
    with pytest.raises(ValueError, match=r"InfoGraph .* needs X to be a list of graphs"):
        small(encoder=None).fit(X)


@pytest.mark.parametrize("objective", ["jensen-shannon", "contrastive"])
def test_nodes_and_graphs_may_have_concentrations(objective):
    embedder = small(framework=InfoGraph(objective), similarity=VonMisesFisher()).fit(GRAPHS)
    assert np.isfinite(embedder.history_[:, "train_loss"]).all()
    assert (embedder.concentration(GRAPHS) > 0).all()


def test_an_unknown_objective_is_refused():
    with pytest.raises(ValueError, match="'objective' parameter of InfoGraph must be a str among"):
        small(framework=InfoGraph("nt-xent")).fit(GRAPHS)


@pytest.mark.parametrize(
    "loss, objective",
    [
        (Supervised(), "jensen-shannon"),
        (Supervised(), "contrastive"),
        (SupCon(), "contrastive"),
    ],
    ids=repr,
)
def test_losses_that_read_labels(loss, objective):
    framework = InfoGraph(objective)
    by_class = small(loss=loss, framework=framework).fit(GRAPHS, Y).transform(GRAPHS)
    other = small(loss=loss, framework=framework).fit(GRAPHS, Y[::-1] // 2).transform(GRAPHS)
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
def test_learns_what_graphs_are_like(objective, loss):
    embedder = small(framework=InfoGraph(objective), loss=loss, max_epochs=15, lr=0.01)
    h = embedder.fit_transform(GRAPHS)
    losses = embedder.history_[:, "train_loss"]
    assert losses[-1] < losses[0]
    others, y = rings_and_stars(40, seed=1000)
    probe = LogisticRegression(max_iter=5000)
    assert probe.fit(h, Y).score(embedder.transform(others), y) > 0.9


def test_partial_fit_in_pieces_is_one_fit():
    whole = small(lr_schedule="constant", max_epochs=3).fit(GRAPHS)
    pieces = small(lr_schedule="constant", max_epochs=3)
    for _ in range(3):
        pieces.partial_fit(GRAPHS)
    np.testing.assert_array_equal(whole.transform(GRAPHS), pieces.transform(GRAPHS))


def test_warm_start_goes_on_with_the_head_of_the_nodes():
    embedder = small(warm_start=True, max_epochs=1).fit(GRAPHS)
    state = {
        name: value.clone() for name, value in embedder._fitted.framework_state["state"].items()
    }
    assert state and all(name.startswith("head.") for name in state)
    embedder.set_params(lr=1e-9).fit(GRAPHS[:12])
    for name, value in embedder._fitted.framework_state["state"].items():
        if value.is_floating_point() and "running" not in name:
            torch.testing.assert_close(value, state[name], atol=1e-6, rtol=0)
    assert embedder.n_epochs_ == 2


def test_going_on_with_the_other_objective():
    embedder = small(warm_start=True, max_epochs=1).fit(GRAPHS)
    embedder.set_params(framework=InfoGraph("contrastive")).fit(GRAPHS)
    assert embedder.n_epochs_ == 2 and isinstance(embedder.similarity_, Cosine)


def test_hyperparameters_are_read_off_the_data():
    loss = BCL(alpha="auto", tau_plus="auto")
    for objective in ("jensen-shannon", "contrastive"):
        embedder = small(loss=loss, framework=InfoGraph(objective), max_epochs=6).fit(GRAPHS, Y)
        assert embedder.estimates_["tau_plus"] == pytest.approx(0.5)
        assert 0.5 <= embedder.estimates_["alpha"] <= 1


def test_cross_validated_probe():
    probe = LogisticRegression(max_iter=5000)
    h = small(max_epochs=10, lr=0.01).fit_transform(GRAPHS)
    assert cross_val_score(probe, h, Y, cv=3).mean() > 0.8
