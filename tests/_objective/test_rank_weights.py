"""Weights by rank: every way to place them gives those of the definition."""

from types import SimpleNamespace

import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast._objective import _rank_weights
from skcontrast._objective._buffers import Arena
from skcontrast._objective._rank_weights import weights_by_rank
from skcontrast.losses import BCL, Loss, NonparametricBCL, Ring, SoftRing, SoftSupCon
from skcontrast.similarity import Cosine
from tests.common import random_views


class Identity(Loss):
    """A loss whose weights are the ranks themselves."""

    _parameter_constraints = {"shares_ties": ["boolean"]}

    def __init__(self, shares_ties=True):
        self.shares_ties = shares_ties

    def rank_weights(self, ranks, n_candidates):
        return ranks


def scores_of(kind, rows, n, dtype=torch.float32):
    generator = torch.Generator().manual_seed(n)
    scores = torch.randn(rows, n, generator=generator, dtype=dtype)
    if kind == "duplicates":
        scores = scores[:, torch.randint(n, (n,), generator=generator)]
    elif kind == "constant":
        scores = torch.full_like(scores, 0.7)
    elif kind == "signed zeros":
        scores = scores.sign() * 0.0
    elif kind == "integers":
        scores = scores.mul(2).round()
    return scores


def some_excluded(rows, n, m):
    generator = torch.Generator().manual_seed(m)
    columns = [torch.randperm(n, generator=generator)[:m] for _ in range(rows)]
    return torch.stack(columns).long().view(rows, m)


def ranks_by_definition(scores, excluded):
    """Return for each candidate the number of candidates that score at most as high."""
    counted = torch.ones_like(scores, dtype=torch.bool).scatter_(1, excluded, False)
    below = (scores[:, None, :] <= scores[:, :, None]) & counted[:, None, :]
    return below.sum(2), counted


KINDS = ["continuous", "duplicates", "constant", "signed zeros", "integers"]
SIZES = [(5, 9, 2), (7, 33, 3), (16, 100, 0), (3, 4, 1), (2, 300, 2)]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_exact_ranks_share_ties(kind, size, dtype):
    scores, excluded = scores_of(kind, *size[:2], dtype), some_excluded(*size)
    expected, counted = ranks_by_definition(scores, excluded)
    weights = weights_by_rank(scores.clone(), excluded, Identity())
    assert torch.equal(weights[counted], expected[counted].to(dtype))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("packs", [True, False])
def test_sorting_packed_keys_is_sorting(monkeypatch, kind, size, packs):
    monkeypatch.setattr(_rank_weights, "_packs", lambda scores: packs)
    scores, excluded = scores_of(kind, *size[:2]), some_excluded(*size)
    expected, counted = ranks_by_definition(scores, excluded)
    weights = weights_by_rank(scores, excluded, Identity())
    assert torch.equal(weights[counted], expected[counted].float())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_ranks_without_shared_ties_are_all_different_and_in_order(kind, size):
    scores, excluded = scores_of(kind, *size[:2]), some_excluded(*size)
    _, counted = ranks_by_definition(scores, excluded)
    weights = weights_by_rank(scores, excluded, Identity(shares_ties=False))
    for row, values, kept in zip(weights, scores, counted, strict=True):
        order = row[kept].argsort()
        assert row[kept][order].tolist() == list(range(1, int(kept.sum()) + 1))
        assert (values[kept][order].diff() >= 0).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("outer, inner", [(0.5, 0.2), (1.0, 0.0), (0.4, 0.0), (1.0, 0.5)])
def test_ring_takes_so_many_and_the_right_ones(kind, outer, inner):
    scores, excluded = scores_of(kind, 6, 52), some_excluded(6, 52, 2)
    within, dropped = int(50 * outer), int(int(50 * outer) * inner)
    _, counted = ranks_by_definition(scores, excluded)
    weights = weights_by_rank(scores, excluded, Ring(outer, inner))
    for row, values, kept in zip(weights, scores, counted, strict=True):
        inside = values[kept][row[kept] > 0].sort().values
        expected = values[kept].sort().values[50 - within : 50 - dropped]
        assert torch.equal(inside, expected)


@pytest.mark.parametrize("n", [8, 1600])
def test_ring_where_scores_tie_at_both_ends_in_one_row(n):
    scores, none = scores_of("continuous", 2, n), torch.empty(2, 0, dtype=torch.int64)
    order = scores[0].argsort()
    for place in (n // 2, n * 3 // 4):  # the first in the ring, and the first closer than that
        scores[0, order[place - 1]] = scores[0, order[place]]
    weights = weights_by_rank(scores.clone(), none, Ring(0.5, 0.5))
    for row, values in zip(weights, scores, strict=True):
        expected = values.sort().values[n // 2 : n * 3 // 4]
        assert torch.equal(values[row > 0].sort().values, expected)


def test_a_share_that_is_an_integer_up_to_rounding_counts_as_that_integer():
    ranks = torch.arange(1, 101, dtype=torch.float64)
    assert Ring(0.29, 0.0).rank_weights(ranks, 100).sum() == 29
    assert Ring(0.57, 0.0).rank_weights(ranks, 100).sum() == 57


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_bins", [2, 16, 512])
@pytest.mark.parametrize("size", SIZES, ids=str)
def test_counted_ranks_are_off_by_at_most_the_fullest_bin(kind, n_bins, size):
    scores, excluded = scores_of(kind, *size[:2]), some_excluded(*size)
    expected, counted = ranks_by_definition(scores, excluded)
    n_candidates = size[1] - size[2]
    halves = torch.arange(1, 2 * n_candidates + 1) / 2
    weights = torch.empty_like(scores)
    tables = SimpleNamespace(by_half_rank=halves)
    block = _rank_weights._Block(scores.clone(), excluded, tables, Arena(scores.device))
    fullest = _rank_weights._by_bin(block, n_bins, weights)
    if kind in ("constant", "signed zeros"):
        assert fullest is None  # nothing to tell apart
    elif fullest is not None:
        assert fullest <= n_candidates
        assert ((weights - expected).abs()[counted] <= fullest).all()


@pytest.mark.parametrize("loss", [BCL(alpha=0.8), NonparametricBCL(alpha=0.8, beta=0.7)], ids=repr)
@pytest.mark.parametrize("n", [800, 2048])
def test_counting_moves_the_loss_by_less_than_1e_5_and_its_gradient_by_less_than_1e_4(
    monkeypatch, loss, n
):
    views = [v.requires_grad_() for v in random_views(n, 32, dtype=torch.float32)]

    def evaluate(counted_from):
        monkeypatch.setattr(_rank_weights, "_COUNTED_FROM", counted_from)
        value = contrastive_loss(*views, loss=loss, similarity=Cosine(0.5))
        return value, torch.autograd.grad(value, views)

    exact, exact_grads = evaluate(10**9)
    value, grads = evaluate(0)
    assert value.item() == pytest.approx(exact.item(), rel=1e-5)
    for grad, exact_grad in zip(grads, exact_grads, strict=True):
        assert (grad - exact_grad).norm() < 1e-4 * exact_grad.norm()


def test_crowded_bins_are_given_up_for_exact_ranks():
    scores = torch.cat([torch.zeros(3, 1999), torch.full((3, 1), 100.0)], 1)
    scores[:, :1000] += torch.linspace(0, 1e-3, 1000)
    excluded = torch.zeros(3, 1, dtype=torch.int64)
    expected, counted = ranks_by_definition(scores, excluded)
    weights = weights_by_rank(scores.clone(), excluded, Identity())
    assert torch.equal(weights[counted], expected[counted].float())


@pytest.mark.parametrize("spread", [0.0, 1e-7, 1e-5, 1e-3])
def test_nearly_collapsed_embeddings_are_ranked(monkeypatch, spread):
    base = torch.randn(16, generator=torch.Generator().manual_seed(0))
    views = [base + spread * v for v in random_views(800, 16, dtype=torch.float32)]
    counted = contrastive_loss(*views, loss=BCL())
    monkeypatch.setattr(_rank_weights, "_COUNTED_FROM", 10**9)
    exact = contrastive_loss(*views, loss=BCL())
    assert counted.item() == pytest.approx(exact.item(), rel=1e-5)


def test_embeddings_that_are_not_finite_give_a_loss_that_is_not():
    views = random_views(800, 8, dtype=torch.float32)
    views[0][3, 0] = torch.nan
    assert not contrastive_loss(*views, loss=BCL()).isfinite()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("counted_from", [0, 1500])
def test_no_weight_is_a_subnormal_number(monkeypatch, dtype, counted_from):
    monkeypatch.setattr(_rank_weights, "_COUNTED_FROM", counted_from)
    scores, none = scores_of("continuous", 3, 600, dtype), torch.empty(3, 0, dtype=torch.int64)
    weights = weights_by_rank(scores, none, SoftSupCon(60.0, 0.1))
    positive = weights[weights > 0]
    assert positive.min() >= torch.finfo(dtype).tiny / 2
    assert 60 <= len(positive) // 3 <= 600


def test_a_small_weight_counts_where_its_score_is_large():
    views = [view.double() for view in random_views(20, 3, dtype=torch.float32)]
    loss, cosine = SoftRing(20.0, 0.3, beta=3.0, floor=0.4), Cosine(0.001)
    exact = contrastive_loss(*views, loss=loss, similarity=cosine)
    rounded = contrastive_loss(*(v.float() for v in views), loss=loss, similarity=cosine)
    assert rounded.item() == pytest.approx(exact.item(), rel=1e-4)
