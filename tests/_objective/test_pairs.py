"""Pairs taken once: the same values and gradients as the walk over all rows."""

from dataclasses import replace

import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast._objective import _pairs
from skcontrast._objective._contrast import in_batch
from skcontrast._objective._mean_loss import objective_value
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
    monkeypatch.setattr(_pairs, "_KEPT_SCORES", kept)
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


def test_other_exclusions_are_not_taken_for_mutual_ones(monkeypatch):
    monkeypatch.setattr(_pairs, "_STRIP_ROWS", 2)
    monkeypatch.setattr(_pairs, "_STRIPS", 100)
    z = Cosine().embed(torch.stack(random_views(5, 4, 2)))
    contrast = in_batch(z, Cosine())
    assert contrast.is_symmetric
    further = torch.cat([contrast.excluded, torch.zeros(10, 1, dtype=torch.int64)], 1)
    changed = replace(contrast, excluded=further.where(further != further[:, :1], 7))
    assert not changed.is_symmetric
    assert not contrast.take(slice(3)).is_symmetric


def test_no_anchors_have_no_loss_but_no_error():
    z = torch.zeros(2, 0, 4)
    assert objective_value(in_batch(z, Cosine()), InfoNCE(), Cosine()).isnan()
