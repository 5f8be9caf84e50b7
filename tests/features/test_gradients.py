"""OrientedGradients: the layer as a transformer."""

import numpy as np
import pytest

from skcontrast._checks import InvalidParameterError
from skcontrast.features import OrientedGradients
from tests.common import images

X = images(20, side=16)


@pytest.mark.parametrize(
    "shape, width", [((8, 8), 36), ((3, 8, 8), 36), ((1, 9, 14), 54), ((3, 2, 3), 9)]
)
def test_each_cell_has_nine_directions(shape, width):
    pixels = np.random.default_rng(0).uniform(size=(12, *shape))
    assert OrientedGradients().fit_transform(pixels).shape == (12, width)


@pytest.mark.parametrize(("name", "value"), [("cell_size", 0), ("n_orientations", 1)])
def test_values_outside_their_range_are_refused(name, value):
    with pytest.raises(InvalidParameterError, match=f"'{name}' parameter of OrientedGradients"):
        OrientedGradients(**{name: value}).fit(X)
