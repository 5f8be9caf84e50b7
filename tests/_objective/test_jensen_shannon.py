"""The Jensen–Shannon objective: the formula written out, identities, gradients, limits."""

import math
from dataclasses import replace
from itertools import product

import pytest
import torch
import torch.nn.functional as F

from skcontrast._objective import _mean_loss  # private: the size of the tiles

# private: the value of a contrast that no public call forms
from skcontrast._objective._mean_loss import objective_value
from skcontrast.frameworks import Contrast, InfoGraph
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    PUCL,
    SINCERE,
    InfoNCE,
    NonparametricBCL,
    PositiveDebiased,
    Ring,
    SupCon,
)
from skcontrast.similarity import Cosine, DotProduct
from tests.common import LOSSES, golden_cases, golden_input
from tests.naive_losses import anchor_loss, jensen_shannon_loss

# Each node has all graphs but its own as negatives.
N_GRAPHS, WIDTH = 7, 4


OWNER = torch.tensor([0, 0, 1, 1, 1, 2, 3, 3, 4, 5, 5, 5, 6])


def vectors(scale=1.0, dtype=torch.float64):
    """Return vectors of the nodes and of the graphs, which require a gradient."""
    generator = torch.Generator().manual_seed(0)
    nodes = torch.randn(len(OWNER), WIDTH, generator=generator, dtype=dtype)
    graphs = torch.randn(N_GRAPHS, WIDTH, generator=generator, dtype=dtype)
    return [(scale * t).requires_grad_() for t in (nodes, graphs)]


LABELS = torch.tensor([0, 1, 0, 2, 1, -1, -1])


def contrast_of(nodes, graphs, similarity, weights=None, labels=LABELS):
    u, v = similarity.embed(nodes), similarity.embed(graphs)
    positives = similarity.pairs(u, v[OWNER])[:, None]
    known = {"anchor_labels": labels[OWNER], "candidate_labels": labels, "weights": weights}
    own = {"positives": positives, "excluded": OWNER[:, None]}
    return Contrast(anchors=u, candidates=v, **own, **known)


HAVE_BOTH = [loss for loss in LOSSES if loss.is_estimate]
PULL = [loss for loss in LOSSES if loss.pulls and type(loss) is not SINCERE]


def naive_value(nodes, graphs, loss, similarity, objective, weights=None):
    """Return the loss, a node at a time: its negatives are all graphs but its own."""
    u, v = similarity.embed(nodes), similarity.embed(graphs)
    losses = []
    for node, own in zip(u, OWNER.tolist(), strict=True):
        scores = similarity.scores(node[None], v)[0]
        others = torch.tensor([k for k in range(N_GRAPHS) if k != own])
        s, p = scores[others], scores[own : own + 1]
        same = (LABELS[others] == LABELS[own]) & (LABELS[own] >= 0)
        loss_of = jensen_shannon_loss if objective == "jensen-shannon" else anchor_loss
        losses.append(loss_of(loss, s, p, same, similarity.bounds(1)[0]))
    losses = torch.stack(losses)
    return (losses if weights is None else losses * weights).mean()


@pytest.mark.parametrize("objective", ["jensen-shannon", "contrastive"])
@pytest.mark.parametrize("loss", HAVE_BOTH, ids=repr)
def test_both_objectives_equal_the_naive_formula(loss, objective):
    default = InfoGraph(objective).default_similarity()
    for weighted, similarity in product([False, True], [default, Cosine(0.3)]):
        for scale in [0.3, 1.0, 3.0]:
            nodes, graphs = vectors(scale)
            weights = torch.linspace(0, 2, len(OWNER), dtype=torch.float64) if weighted else None
            value = objective_value(
                contrast_of(nodes, graphs, similarity, weights), loss, similarity, objective
            )
            expected = naive_value(nodes, graphs, loss, similarity, objective, weights)
            torch.testing.assert_close(value, expected, rtol=1e-10, atol=1e-12)
            ours = torch.autograd.grad(value, (nodes, graphs))
            theirs = torch.autograd.grad(expected, (nodes, graphs))
            torch.testing.assert_close(ours, theirs, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(
    "loss", [one for one in HAVE_BOTH if not (one.detach_weights and one.hardness())], ids=repr
)
def test_gradcheck_of_every_loss_with_the_jensen_shannon_objective(loss):
    def value(nodes, graphs):
        contrast = contrast_of(nodes, graphs, DotProduct())
        return objective_value(contrast, loss, DotProduct(), "jensen-shannon")

    assert torch.autograd.gradcheck(value, vectors(), fast_mode=True)


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


WITH_OBJECTIVES = pytest.mark.parametrize(
    "loss, objective",
    [*product(HAVE_BOTH, ["jensen-shannon", "contrastive"]), *product(PULL, ["contrastive"])],
    ids=repr,
)


@WITH_OBJECTIVES
def test_positives_may_be_named_as_candidates(loss, objective, monkeypatch):
    for rows in [1, 4, 128]:
        monkeypatch.setattr(_mean_loss, "_TILE_ELEMENTS", 1)
        monkeypatch.setattr(_mean_loss, "_MIN_ROWS", rows)
        results = []
        for named in (False, True):
            nodes, graphs = vectors()
            weights = torch.linspace(0, 2, len(OWNER), dtype=torch.float64)
            contrast = contrast_of(nodes, graphs, DotProduct(), weights)
            if named:
                contrast = replace(contrast, positives=OWNER[:, None])
            value = objective_value(contrast, loss, DotProduct(), objective)
            results.append((value.detach(), *torch.autograd.grad(value, (nodes, graphs))))
        torch.testing.assert_close(*results, rtol=1e-10, atol=1e-12)


@WITH_OBJECTIVES
def test_scores_without_bounds_give_finite_values_and_gradients(loss, objective):
    for scale in [0.0, 1e-3, 10.0, 1e3, 1e6]:
        nodes, graphs = vectors(math.sqrt(scale), torch.float32)
        for positives in (None, 40.0 * scale, -40.0 * scale):
            contrast = contrast_of(nodes, graphs, DotProduct())
            if positives is not None:
                contrast = replace(contrast, positives=contrast.positives * 0 + positives)
            value = objective_value(contrast, loss, DotProduct(), objective)
            gradients = torch.autograd.grad(value, (nodes, graphs))
            assert value.isfinite() and all(g.isfinite().all() for g in gradients)


@pytest.mark.parametrize("loss", [DCL(tau_plus=0.3), PUCL(tau_plus=0.3)], ids=repr)
def test_an_estimate_below_zero_is_floored_and_pulls_no_negatives(loss):
    nodes, graphs = vectors()
    contrast = contrast_of(nodes, graphs, DotProduct())
    contrast = replace(contrast, positives=torch.full_like(contrast.positives, 30.0))
    for objective, lowest in (
        ("jensen-shannon", F.softplus(torch.tensor(-30.0))),
        ("contrastive", 0),
    ):
        value = objective_value(contrast, loss, DotProduct(), objective)
        assert value.item() == pytest.approx(float(lowest), abs=1e-12)
        assert not torch.autograd.grad(value, graphs, retain_graph=True)[0].any()


def test_jensen_shannon_agrees_with_infograph_up_to_its_constant():
    (case,) = [c for c in golden_cases() if c["loss"] == "infograph_jsd"]
    graph_of = torch.tensor(case["settings"]["batch"])
    nodes = 2.0 * golden_input("A", 12, 16)
    graphs = 1.5 * golden_input("Q", 4, 16)
    nodes.requires_grad_(), graphs.requires_grad_()

    # Each node's mean over the other graphs is the mean over all negative pairs: every node has
    # the same number of them.
    positives = (nodes * graphs[graph_of]).sum(1, keepdim=True)
    contrast = Contrast(
        anchors=nodes, candidates=graphs, positives=positives, excluded=graph_of[:, None]
    )
    value = objective_value(contrast, InfoNCE(), DotProduct(), objective="jensen-shannon")
    assert value.item() == pytest.approx(case["value"] + 2 * math.log(2), rel=1e-9)
    value.backward()
    reference = torch.tensor(case["grad_l_row0"], dtype=torch.float64)
    torch.testing.assert_close(nodes.grad[0], reference, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("loss", [PositiveDebiased(), SupCon(), SINCERE()], ids=repr)
def test_a_loss_that_is_no_estimate_has_no_jensen_shannon_form(loss):
    with pytest.raises(ValueError, match="has no Jensen–Shannon form"):
        objective_value(
            contrast_of(*vectors(), DotProduct()), loss, DotProduct(), "jensen-shannon"
        )
