"""Scores in tiles: the same values and gradients as in one piece."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from skcontrast import contrastive_loss
from skcontrast._objective import _rows
from skcontrast._objective._contrast import in_batch
from skcontrast._objective._functional import Contrast
from skcontrast._objective._mean_loss import OBJECTIVES, objective_value
from skcontrast._objective._tile import Anchors, Tile
from skcontrast.losses import DCL, HCL, InfoNCE, Loss, NonparametricBCL, Supervised
from skcontrast.similarity import Cosine
from tests._objective.common import NotBilinear, slopes
from tests.common import random_views


class ByRank(Loss):
    """A loss with weights by rank, to test the part of the form that InfoNCE leaves out."""

    _parameter_constraints = {
        name: "no_validation" for name in ("beta", "normalize_weights", "detach_weights")
    }

    def __init__(self, beta=0.0, normalize_weights=True, detach_weights=False):
        self.beta = beta
        self.normalize_weights = normalize_weights
        self.detach_weights = detach_weights

    sum_of_weights = NonparametricBCL.sum_of_weights

    def hardness(self):
        return self.beta

    def rank_weights(self, ranks, n_candidates):
        return torch.exp(-0.1 * ranks)


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
    if loss.overrides("rank_weights"):
        ranks = 1 + scores.argsort(1).argsort(1)
        weights = weights * loss.rank_weights(ranks.double(), scores.shape[1])
    if loss.detach_weights:
        weights = weights.detach()
    if loss.sum_of_weights == "N":
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
    tile = Tile(Anchors(None, None, 9, (-highest, highest)), scores.detach().clone(), none)
    mean = OBJECTIVES[name].expectation(tile, loss, tile.prior(loss))
    torch.testing.assert_close(mean.value, expected.detach(), rtol=1e-10, atol=0)
    torch.testing.assert_close(slopes(mean, weights), expected_grad, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("similarity", [Cosine(0.3), NotBilinear()], ids=["cosine", "distance"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("n, n_views, rows", [(7, 2, 3), (10, 3, 1), (16, 2, 32), (9, 2, 6)])
def test_tiled_equals_untiled(monkeypatch, loss, similarity, n, n_views, rows):
    views = [v.requires_grad_() for v in random_views(n, 5, n_views)]
    whole = contrastive_loss(*views, loss=loss, similarity=similarity)
    whole_grads = torch.autograd.grad(whole, views)
    monkeypatch.setattr(_rows, "_TILE_ELEMENTS", 1)
    monkeypatch.setattr(_rows, "_TILE_ROWS", rows)
    tiled = contrastive_loss(*views, loss=loss, similarity=similarity)
    tiled_grads = torch.autograd.grad(tiled, views)
    torch.testing.assert_close((tiled, tiled_grads), (whole, whole_grads), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_gradcheck_of_both_objectives_with_a_custom_similarity(name):
    views = torch.stack(random_views(4, 3)).requires_grad_()

    def value(views):
        contrast = in_batch(views, NotBilinear())
        return objective_value(contrast, HCL(beta=0.5), NotBilinear(), objective=name)

    assert torch.autograd.gradcheck(value, views)


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


def test_candidates_without_gradient_may_share_their_memory_with_the_anchors():
    views = torch.stack(random_views(6, 4)).requires_grad_()
    contrast = in_batch(Cosine().embed(views), Cosine())
    alias = contrast.candidates.detach()
    gradients = [
        torch.autograd.grad(
            objective_value(replace(contrast, candidates=candidates), InfoNCE(), Cosine()),
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
        contrast = Contrast(
            anchors=pair[0],
            candidates=pair[1],
            positives=torch.zeros(12, 1, dtype=torch.float64),
            excluded=excluded,
        )
        gradients += torch.autograd.grad(objective_value(contrast, DCL(), Cosine()), leaf)
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("similarity", [Cosine(), NotBilinear()], ids=lambda s: type(s).__name__)
def test_a_queue_without_gradient_leaves_that_of_the_anchors(similarity):
    a, b, queue = random_views(6, 4, n_views=3)

    def gradients(*leaves):
        value = contrastive_loss(a, b, queue=queue, similarity=similarity)
        return torch.autograd.grad(value, leaves)

    a.requires_grad_(), b.requires_grad_()
    alone = gradients(a, b)
    queue.requires_grad_()
    torch.testing.assert_close(gradients(a, b, queue)[:2], alone, rtol=1e-12, atol=1e-12)


def test_a_contrast_without_labels_is_refused_where_the_loss_reads_them():
    z = Cosine().embed(torch.stack(random_views(4, 3)))
    with pytest.raises(ValueError, match="The contrast has no labels"):
        objective_value(in_batch(z, Cosine()), Supervised(), Cosine())


def test_more_threads_take_larger_tiles(monkeypatch):
    vectors = torch.empty(10, 2)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    rows = _rows.tile_rows(vectors, 4096)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert _rows.tile_rows(vectors, 4096) == 2 * rows
