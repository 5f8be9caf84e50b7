"""Supervised, SupCon, SINCERE and SemiSupCon: what classes do."""

from __future__ import annotations

import pytest
import torch

from skcontrast import ContrastiveEmbedder, contrastive_loss
from skcontrast.losses import SINCERE, InfoNCE, SemiSupCon, SupCon, Supervised
from skcontrast.similarity import Cosine
from tests.common import X_DIGITS, random_views
from tests.losses.common import assert_same, value_and_grads


def test_supervised_with_all_labels_different_is_infonce():
    views = random_views(9, 5)
    expected = value_and_grads(views, loss=InfoNCE())
    assert_same(value_and_grads(views, loss=Supervised(), y=torch.arange(9)), expected)
    assert_same(value_and_grads(views, loss=Supervised(), y=torch.full((9,), -1)), expected)


def test_supervised_leaves_false_negatives_alone():
    z = random_views(3, 4)
    queue = random_views(2, 4, seed=1)[0].requires_grad_()
    y, queue_y = torch.tensor([0, 0, 0]), torch.tensor([0, 1])
    contrastive_loss(*z, loss=Supervised(), queue=queue, y=y, queue_y=queue_y).backward()
    assert queue.grad[0].abs().max() == 0 < queue.grad[1].abs().max()


@pytest.mark.parametrize("loss", [SupCon(), SINCERE()], ids=repr)
def test_without_labels_it_is_infonce(loss):
    views = random_views(9, 5)
    expected = value_and_grads(views, loss=InfoNCE())
    assert_same(value_and_grads(views, loss=loss, y=torch.full((9,), -1)), expected)


def test_positives_of_sincere_do_not_push_each_other():
    z, y = torch.cat(random_views(7, 4)).double(), torch.arange(14) % 7 % 3
    z = torch.nn.functional.normalize(z, dim=1)
    s = (z @ z.T / 0.5).exp()
    itself = torch.eye(14, dtype=torch.bool)
    same = (y[:, None] == y) & ~itself
    pushed = (s * (y[:, None] != y)).sum(1, keepdim=True)
    expected = ((-(s / (s + pushed)).log() * same).sum(1) / same.sum(1)).mean()
    value = contrastive_loss(z[:7], z[7:], loss=SINCERE(), y=y[:7], similarity=Cosine(0.5))
    torch.testing.assert_close(value, expected)


def test_sincere_of_a_single_class_has_nothing_to_do():
    y = torch.zeros(5, dtype=torch.int64)
    value, grads = value_and_grads(random_views(5, 3), loss=SINCERE(), y=y)
    assert value == 0 and not any(grad.any() for grad in grads)


def test_supcon_names_the_labels_that_it_lacks():
    with pytest.raises(ValueError, match="SupCon needs labels: pass y"):
        contrastive_loss(*random_views(4, 3), loss=SupCon())


def test_as_a_function_it_is_supcon():
    views, y = random_views(9, 5), torch.arange(9) % 3 - 1
    expected = value_and_grads(views, loss=SupCon(), y=y)
    assert_same(value_and_grads(views, loss=SemiSupCon(), y=y), expected, rtol=0)


@pytest.mark.parametrize(
    "name, value", [("every", 0), ("share", 1.1), ("labeled_share", 1.0), ("n_neighbors", 0)]
)
def test_values_out_of_range_are_named(name, value):
    with pytest.raises(ValueError, match=f"'{name}' parameter of SemiSupCon"):
        ContrastiveEmbedder(loss=SemiSupCon(**{name: value})).fit(X_DIGITS)


def test_it_needs_y():
    with pytest.raises(ValueError, match="SemiSupCon requires y"):
        ContrastiveEmbedder(loss=SemiSupCon()).fit(X_DIGITS)
