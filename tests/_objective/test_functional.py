"""The engine: tiling, objectives, multi-view contrasts, a user's own loop, validation."""

import math

import pytest
import torch
import torch.nn.functional as F

from skcontrast import contrastive_loss
from skcontrast._objective import _tiles
from skcontrast._objective._base import Tile
from skcontrast._objective._contrast import in_batch
from skcontrast._objective._functional import Contrast, objective_value
from skcontrast.losses import DCL, HCL, InfoNCE, Loss
from skcontrast.similarity import Cosine, Similarity
from tests.common import golden_cases, golden_input, random_views


class ByRank(Loss):
    """A loss with weights by rank, to test the part of the form that InfoNCE leaves out."""

    weighs_ranks = True

    def __init__(self, beta=0.0, normalize_weights=True, detach_weights=False):
        self.beta = beta
        self.normalize_weights = normalize_weights
        self.detach_weights = detach_weights

    def hardness(self):
        return self.beta

    def rank_weights(self, ranks, n_candidates):
        return torch.exp(-0.1 * ranks)


class NotBilinear(Similarity):
    """Negative squared distance: a similarity without a hand-written gradient."""

    bounds = (-20.0, 0.0)

    def embed(self, z):
        return z

    def scores(self, u, v):
        return -torch.cdist(u, v).square()

    def pairs(self, u, v):
        return -(u - v).square().sum(-1)


LOSSES = [
    InfoNCE(),
    DCL(),
    HCL(),
    ByRank(),
    ByRank(beta=0.5),
    ByRank(beta=0.5, detach_weights=True),
    ByRank(normalize_weights=False),
]


def naive_expectation(scores, loss, phi):
    weights = (loss.hardness() * scores).exp()
    if loss.weighs_ranks:
        ranks = 1 + scores.argsort(1).argsort(1)
        weights = weights * loss.rank_weights(ranks.double(), scores.shape[1])
    if loss.detach_weights:
        weights = weights.detach()
    if loss.normalize_weights:
        weights = weights / weights.mean(1, keepdim=True)
    return (weights * phi(scores)).mean(1)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("name, phi", [("contrastive", torch.exp), ("jensen-shannon", F.softplus)])
@pytest.mark.parametrize("highest", [10.0, 80.0])
def test_expectation_and_its_gradient_equal_the_definition(loss, name, phi, highest):
    scores = torch.randn(6, 9, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    scores.requires_grad_()
    expected = naive_expectation(scores, loss, phi)
    expected = expected.log() if name == "contrastive" else expected
    weights = torch.linspace(0.5, 2, 6, dtype=torch.float64)
    (expected_grad,) = torch.autograd.grad(expected, scores, weights)
    none = torch.empty(6, 0, dtype=torch.int64)
    tile = Tile(scores.detach().clone(), none, None, None, None, (-highest, highest))
    mean, pull = _tiles.OBJECTIVES[name].expectation(tile, loss)
    scale, matrix = pull(weights)
    torch.testing.assert_close(mean, expected.detach(), rtol=1e-10, atol=0)
    torch.testing.assert_close(scale * matrix, expected_grad, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("similarity", [Cosine(0.3), NotBilinear()], ids=["cosine", "distance"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n, n_views, rows", [(7, 2, 3), (10, 3, 1), (16, 2, 32), (9, 2, 6)])
def test_tiled_equals_untiled(monkeypatch, loss, similarity, n, n_views, rows):
    views = [v.requires_grad_() for v in random_views(n, 5, n_views)]
    whole = contrastive_loss(*views, loss=loss, similarity=similarity)
    whole_grads = torch.autograd.grad(whole, views)
    monkeypatch.setattr(_tiles, "_TILE_ELEMENTS", 1)
    monkeypatch.setattr(_tiles, "_TILE_ROWS", rows)
    tiled = contrastive_loss(*views, loss=loss, similarity=similarity)
    tiled_grads = torch.autograd.grad(tiled, views)
    torch.testing.assert_close((tiled, tiled_grads), (whole, whole_grads), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", _tiles.OBJECTIVES)
def test_gradcheck_of_both_objectives_with_a_similarity_of_ones_own(name):
    views = torch.stack(random_views(4, 3)).requires_grad_()

    def value(views):
        contrast = in_batch(views, NotBilinear())
        return objective_value(contrast, HCL(beta=0.5), NotBilinear(), objective=name)

    assert torch.autograd.gradcheck(value, views)


def test_jensen_shannon_agrees_with_infograph_up_to_its_constant():
    (case,) = [c for c in golden_cases() if c["loss"] == "infograph_jsd"]
    graph_of = torch.tensor(case["settings"]["batch"])
    nodes = 2.0 * golden_input("A", 12, 16)
    graphs = 1.5 * golden_input("Q", 4, 16)
    nodes.requires_grad_(), graphs.requires_grad_()

    class Dot(NotBilinear):
        bilinear = True

        def scores(self, u, v):
            return u @ v.T

        def pairs(self, u, v):
            return (u * v).sum(-1)

    # Each node's mean over the other graphs is the mean over all negative pairs: every node has
    # the same number of them.
    positives = (nodes * graphs[graph_of]).sum(1, keepdim=True)
    contrast = Contrast(nodes, graphs, positives, graph_of[:, None])
    value = objective_value(contrast, InfoNCE(), Dot(), objective="jensen-shannon")
    assert value.item() == pytest.approx(case["value"] + 2 * math.log(2), rel=1e-9)
    value.backward()
    reference = torch.tensor(case["grad_l_row0"], dtype=torch.float64)
    torch.testing.assert_close(nodes.grad[0], reference, rtol=1e-8, atol=1e-12)


def test_in_batch_names_positives_and_excluded():
    views = torch.stack([torch.tensor([[1.0], [2.0]]) * k for k in (1, 10, 100)])
    contrast = in_batch(views, NotBilinear())
    assert contrast.anchors.flatten().tolist() == [1, 2, 10, 20, 100, 200]
    assert contrast.excluded[0].tolist() == [0, 2, 4]
    assert contrast.excluded[5].tolist() == [1, 3, 5]
    assert contrast.positives[0].tolist() == [-(9.0**2), -(99.0**2)]
    assert contrast.positives[3].tolist() == [-(18.0**2), -(180.0**2)]


def test_gradient_scales_with_the_gradient_that_comes_back():
    views = [v.requires_grad_() for v in random_views(6, 4)]
    value = contrastive_loss(*views)
    once = torch.autograd.grad(value, views, retain_graph=True)
    thrice = torch.autograd.grad(3 * value, views, retain_graph=True)
    torch.testing.assert_close(thrice, tuple(3 * g for g in once))
    again = torch.autograd.grad(value, views)
    torch.testing.assert_close(again, once)


def test_the_gradient_is_not_differentiable_and_says_so():
    views = [v.requires_grad_() for v in random_views(6, 4)]
    with pytest.raises(RuntimeError, match="differentiated once"):
        torch.autograd.grad(contrastive_loss(*views), views, create_graph=True)


def test_views_of_different_precision_are_promoted():
    views, queue = random_views(6, 4), random_views(9, 4)[0]
    exact = contrastive_loss(*views, queue=queue)
    mixed = contrastive_loss(views[0].float(), views[1], queue=queue.float())
    assert mixed.dtype == torch.float64
    torch.testing.assert_close(mixed, exact, rtol=1e-6, atol=0)


def test_views_without_gradient():
    views = random_views(6, 4)
    value = contrastive_loss(*views)
    assert not value.requires_grad
    leaf = views[0].clone().requires_grad_()
    one_sided = contrastive_loss(leaf, views[1])
    torch.testing.assert_close(one_sided.detach(), value)
    one_sided.backward()
    assert leaf.grad.isfinite().all()


def test_half_precision_views_are_scored_in_float32():
    views = random_views(16, 8)
    value = contrastive_loss(*(v.to(torch.bfloat16) for v in views))
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(contrastive_loss(*views).item(), rel=2e-2)


def test_autocast_does_not_touch_the_loss():
    views = [v.float() for v in random_views(16, 8)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        inside = contrastive_loss(*views, similarity=Cosine(0.05))
    torch.testing.assert_close(inside, contrastive_loss(*views, similarity=Cosine(0.05)))


def test_training_step_of_a_loop_of_ones_own():
    layer = torch.nn.Linear(4, 3).double()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    views = random_views(32, 4)
    values = []
    for _ in range(20):
        optimizer.zero_grad()
        value = contrastive_loss(*(layer(v) for v in views), loss=DCL())
        value.backward()
        optimizer.step()
        values.append(value.item())
    assert values[-1] < values[0]


@pytest.mark.parametrize(
    "views, queue, error, message",
    [
        ([torch.ones(3, 2)], None, ValueError, "at least two views, got 1"),
        (
            [torch.ones(3, 2), torch.ones(4, 2)],
            None,
            ValueError,
            "view 2 has 4 rows, view 1 has 3",
        ),
        (
            [torch.ones(3, 2), torch.ones(3, 5)],
            None,
            ValueError,
            r"view 2 must have shape \(n, 2\)",
        ),
        ([torch.ones(3), torch.ones(3)], None, ValueError, "view 1 must have shape"),
        ([torch.ones(3, 2), [[1.0]]], None, TypeError, "view 2 must be a floating tensor.*list"),
        ([torch.ones(3, 2).int()] * 2, None, TypeError, "view 1 must be a floating.*int32"),
        ([torch.ones(1, 2)] * 2, None, ValueError, "at least 2 samples"),
        ([torch.ones(3, 2)] * 2, torch.ones(5, 3), ValueError, r"queue must have shape \(n, 2\)"),
        ([torch.ones(3, 2)] * 2, torch.ones(0, 2), ValueError, "at least one row"),
    ],
)
def test_bad_views_are_refused_by_name(views, queue, error, message):
    with pytest.raises(error, match=message):
        contrastive_loss(*views, queue=queue)


def test_candidates_without_gradient_may_share_their_memory_with_the_anchors():
    views = torch.stack(random_views(6, 4)).requires_grad_()
    contrast = in_batch(Cosine().embed(views), Cosine())
    alias = contrast.candidates.detach()
    gradients = [
        torch.autograd.grad(
            objective_value(contrast._replace(candidates=candidates), InfoNCE(), Cosine()),
            views,
            retain_graph=True,
        )
        for candidates in (alias, alias.clone())
    ]
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("which", ["anchors", "candidates"])
def test_one_of_two_tensors_in_one_place_may_be_without_gradient(which):
    views = torch.stack(random_views(6, 4)).flatten(0, 1)
    gradients = []
    for copied in (False, True):
        leaf = views.clone().requires_grad_()
        other = leaf.detach().clone() if copied else leaf.detach()
        pair = (leaf, other) if which == "anchors" else (other, leaf)
        excluded = torch.arange(12)[:, None]
        contrast = Contrast(*pair, torch.zeros(12, 1, dtype=torch.float64), excluded)
        gradients += torch.autograd.grad(objective_value(contrast, DCL(), Cosine()), leaf)
    torch.testing.assert_close(*gradients)
