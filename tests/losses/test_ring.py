"""Ring: the negatives in between."""

import pytest

from skcontrast import contrastive_loss
from skcontrast.losses import Ring
from tests.common import random_views


def test_an_empty_ring_is_refused():
    with pytest.raises(ValueError, match=r"The ring is empty: outer=0\.1 of 2 candidates"):
        contrastive_loss(*random_views(2, 3), loss=Ring(outer=0.1))
