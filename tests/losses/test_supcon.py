"""Supervised, SupCon, SINCERE and SemiSupCon: what classes do."""

import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast.losses import SINCERE, InfoNCE, SemiSupCon, SupCon, Supervised
from tests.common import random_views
from tests.losses.common import assert_same, value_and_grads


def test_supervised_leaves_false_negatives_alone():
    z = random_views(3, 4)
    queue = random_views(2, 4, seed=1)[0].requires_grad_()
    y, queue_y = torch.tensor([0, 0, 0]), torch.tensor([0, 1])
    contrastive_loss(*z, loss=Supervised(), queue=queue, y=y, queue_y=queue_y).backward()
    assert queue.grad[0].abs().max() == 0 < queue.grad[1].abs().max()


@pytest.mark.parametrize("y", [torch.arange(9), torch.full((9,), -1)])
@pytest.mark.parametrize("loss", [Supervised(), SupCon(), SINCERE()], ids=repr)
def test_without_samples_of_one_class_it_is_infonce(loss, y):
    views = random_views(9, 5)
    assert_same(value_and_grads(views, loss=loss, y=y), value_and_grads(views, loss=InfoNCE()))


def test_sincere_of_a_single_class_has_nothing_to_do():
    y = torch.zeros(5, dtype=torch.int64)
    value, grads = value_and_grads(random_views(5, 3), loss=SINCERE(), y=y)
    assert value == 0 and not any(grad.any() for grad in grads)


def test_as_a_function_it_is_supcon():
    views, y = random_views(9, 5), torch.arange(9) % 3 - 1
    expected = value_and_grads(views, loss=SupCon(), y=y)
    assert_same(value_and_grads(views, loss=SemiSupCon(), y=y), expected, rtol=0)
