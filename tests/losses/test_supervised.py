"""Supervised: negatives of other classes."""

import torch

from skcontrast import contrastive_loss
from skcontrast.losses import InfoNCE, Supervised
from tests.common import random_views
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
