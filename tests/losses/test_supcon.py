"""SupCon: all positives of a class."""

import pytest
import torch

from skcontrast import ContrastiveEmbedder, contrastive_loss
from skcontrast.losses import InfoNCE, SemiSupCon, SupCon
from tests.common import X_DIGITS, random_views
from tests.losses.common import assert_same, value_and_grads


def test_supcon_without_labels_is_infonce():
    views = random_views(9, 5)
    expected = value_and_grads(views, loss=InfoNCE())
    assert_same(value_and_grads(views, loss=SupCon(), y=torch.full((9,), -1)), expected)


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
