"""SupCon: all positives of a class."""

import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast.losses import InfoNCE, SupCon
from tests.common import random_views
from tests.losses.common import assert_same, value_and_grads


def test_supcon_without_labels_is_infonce():
    views = random_views(9, 5)
    expected = value_and_grads(views, loss=InfoNCE())
    assert_same(value_and_grads(views, loss=SupCon(), y=torch.full((9,), -1)), expected)


def test_supcon_names_the_labels_that_it_lacks():
    with pytest.raises(ValueError, match="SupCon needs labels: pass y"):
        contrastive_loss(*random_views(4, 3), loss=SupCon())
