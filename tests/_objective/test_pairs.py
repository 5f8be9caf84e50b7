"""Pairs taken once: the same values and gradients as the walk over all rows."""

import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast._objective import _pairs, _rows
from skcontrast._objective._arena import Arena, arena_on
from skcontrast._objective._contrast import in_batch
from skcontrast._objective._value import objective_value
from skcontrast.losses import (
    BCL,
    DCL,
    HCL,
    PUCL,
    InfoNCE,
    Loss,
    PositiveDebiased,
    SemiSupCon,
    SupCon,
    Supervised,
)
from skcontrast.similarity import Cosine
from tests.common import random_views

LOSSES = [
    InfoNCE(),
    DCL(0.2),
    HCL(0.1, beta=0.5),
    HCL(0.1, beta=1.0, detach_weights=True),
    PUCL(0.2, 0.3),
    PositiveDebiased(0.3),
    PositiveDebiased(0.3, negatives=HCL(0.1)),
    Supervised(),
    SupCon(),
    SemiSupCon(),
]


class Watched:
    """Counts the losses that were computed from pairs."""

    def __init__(self, monkeypatch):
        self.calls = 0
        before = _pairs.mean_loss

        def mean_loss(*args):
            self.calls += 1
            return before(*args)

        monkeypatch.setattr(_pairs, "mean_loss", mean_loss)


def value_and_gradients(views, loss, similarity, groups=None, role="neutral", weights=None):
    leaf = torch.stack(views).requires_grad_()
    n = leaf.shape[1]
    labels = torch.arange(n) % 3 - 1 if loss.requires_y else None
    contrast = in_batch(similarity.embed(leaf), similarity, labels, weights, groups)
    value = objective_value(contrast, loss, similarity, group_role=role)
    return value.detach(), torch.autograd.grad(value, leaf)[0]


def compare(monkeypatch, views, loss, similarity, **options):
    watched = Watched(monkeypatch)
    found = value_and_gradients(views, loss, similarity, **options)
    assert watched.calls == 1
    monkeypatch.setattr(_pairs, "takes", lambda problem: False)
    expected = value_and_gradients(views, loss, similarity, **options)
    assert watched.calls == 1
    torch.testing.assert_close(found, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("kept", [0, 2**22], ids=["computed twice", "kept"])
@pytest.mark.parametrize("n, n_views, rows", [(7, 2, 3), (5, 3, 1), (8, 2, 64), (6, 2, 5)])
def test_pairs_give_what_rows_give(monkeypatch, loss, kept, n, n_views, rows):
    monkeypatch.setattr(_pairs, "_KEPT", kept)
    monkeypatch.setattr(_pairs, "_STRIP_ROWS", rows)
    monkeypatch.setattr(_pairs, "_STRIPS", 100)
    weights = torch.linspace(0, 2, n_views * n, dtype=torch.float64).view(n_views, n)
    views = random_views(n, 4, n_views)
    compare(monkeypatch, views, loss, Cosine(0.4), weights=weights)


@pytest.mark.parametrize("role", ["neutral", "positive"])
@pytest.mark.parametrize("loss", [InfoNCE(), HCL(), SupCon()], ids=repr)
def test_pairs_know_groups(monkeypatch, loss, role):
    monkeypatch.setattr(_pairs, "_STRIP_ROWS", 3)
    monkeypatch.setattr(_pairs, "_STRIPS", 100)
    groups = torch.tensor([0, 1, 0, -1, 1, 2, -1, 0])
    views = random_views(8, 4, 2)
    compare(monkeypatch, views, loss, Cosine(0.3), groups=groups, role=role)


def test_an_anchor_with_no_negative_has_none_from_pairs_either(monkeypatch):
    groups = torch.zeros(4, dtype=torch.int64)
    compare(monkeypatch, random_views(4, 3, 2), DCL(0.1), Cosine(), groups=groups)


class ByShareOfTheClass(Loss):
    """Weights by class that depend on the whole row."""

    def class_weights(self, same_class):
        return 1 + same_class / (1 + same_class.sum(1, keepdim=True))


class OwnSupervised(Supervised):
    """Overrides a method that is marked as elementwise, without the mark."""

    def class_weights(self, same_class):
        return 1 + same_class / (1 + same_class.sum(1, keepdim=True))


@pytest.mark.parametrize("loss", [BCL(), ByShareOfTheClass(), OwnSupervised()], ids=repr)
def test_losses_that_look_at_whole_rows_are_not_computed_from_pairs(monkeypatch, loss):
    watched = Watched(monkeypatch)
    value_and_gradients(random_views(6, 4, 2), loss, Cosine())
    assert watched.calls == 0


def test_scores_that_may_overflow_are_not_computed_from_pairs(monkeypatch):
    watched = Watched(monkeypatch)
    views = random_views(6, 4, 2)
    value_and_gradients(views, InfoNCE(), Cosine(0.01))
    assert watched.calls == 0
    value_and_gradients(views, InfoNCE(), Cosine(0.02))
    assert watched.calls == 1


def test_no_gradient_is_computed_where_none_is_needed():
    views = random_views(300, 4, 2)
    with torch.no_grad():
        value = contrastive_loss(*views)
    leaves = [view.requires_grad_() for view in views]
    torch.testing.assert_close(contrastive_loss(*leaves).detach(), value)


class Nested(Loss):
    """Computes another loss while it is computed."""

    def row_loss(self, scores, positives, same_class):
        other = random_views(20, 4, 2, dtype=scores.dtype)
        inner = [view.requires_grad_() for view in other]
        contrastive_loss(*inner, loss=BCL()).backward()
        return torch.logsumexp(torch.cat([scores, positives], 1), 1) - positives[:, 0]


def test_a_loss_within_a_loss_does_not_overwrite_it():
    views = [view.requires_grad_() for view in random_views(20, 4, 2)]
    nested = torch.autograd.grad(contrastive_loss(*views, loss=Nested()), views)
    plain = torch.autograd.grad(contrastive_loss(*views), views)
    torch.testing.assert_close(nested, plain)


def test_losses_in_threads_do_not_overwrite_each_other():
    from concurrent.futures import ThreadPoolExecutor

    problems = [random_views(n, 4, 2) for n in (30, 31, 32, 33)]
    losses = [InfoNCE(), BCL(), HCL(), SupCon()]

    def gradient(views, loss):
        leaves = [view.clone().requires_grad_() for view in views]
        y = torch.arange(len(views[0])) % 3 if loss.requires_y else None
        value = contrastive_loss(*leaves, loss=loss, y=y)
        return torch.autograd.grad(value, leaves)

    expected = [gradient(views, loss) for views, loss in zip(problems, losses, strict=True)]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(10):
            found = list(pool.map(gradient, problems, losses))
            torch.testing.assert_close(found, expected)


def test_what_an_arena_hands_out_is_nobody_elses_until_it_is_released():
    arena = Arena(torch.device("cpu"))
    first, second = (arena.empty((2, 3), torch.float32) for _ in range(2))
    assert first.data_ptr() != second.data_ptr()
    with arena.released():
        third = arena.empty((4,), torch.float32)
        assert third.data_ptr() not in (first.data_ptr(), second.data_ptr())
    assert arena.empty((2, 2), torch.float32).data_ptr() == third.data_ptr()
    assert arena.empty((4,), torch.int32).dtype == torch.int32


def test_a_thread_keeps_its_arena_unless_it_is_large(monkeypatch):
    from skcontrast._objective import _arena

    cpu = torch.device("cpu")
    with arena_on(cpu) as arena:
        arena.empty((10,), torch.float32)
        with arena_on(cpu) as inner:
            assert inner is not arena
    with arena_on(cpu) as again:
        assert again is arena
        monkeypatch.setattr(_arena, "_KEPT_BYTES", 8)
    with arena_on(cpu) as fresh:
        assert fresh is not arena


def test_more_threads_take_larger_tiles(monkeypatch):
    vectors = torch.empty(10, 2)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 1)
    rows = _rows.tile_rows(vectors, 4096)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert _rows.tile_rows(vectors, 4096) == 2 * rows
