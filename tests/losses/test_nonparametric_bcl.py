"""NonparametricBCL: weights from ranks alone."""

import pytest

from skcontrast import contrastive_loss
from skcontrast.losses import NonparametricBCL
from tests.common import random_views


def test_a_density_that_vanishes_is_refused():
    with pytest.raises(ValueError, match="'alpha' and 'beta' parameters of NonparametricBCL"):
        contrastive_loss(*random_views(4, 3), loss=NonparametricBCL(alpha=1, beta=1))
