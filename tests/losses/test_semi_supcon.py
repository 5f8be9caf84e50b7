"""SemiSupCon as a function; what fit does with it stands in tests/_fit/test_label_spreading.py."""

import pytest
import torch

from skcontrast import ContrastiveEmbedder
from skcontrast.losses import SemiSupCon, SupCon
from tests.common import X_DIGITS, random_views
from tests.losses.common import assert_same, value_and_grads


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
