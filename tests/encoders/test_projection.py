"""The projection head."""

import pytest

from skcontrast.encoders._projection import projection_head
from tests.encoders.common import n_parameters, random_batch


@pytest.mark.parametrize("projection_dim", [1, 16])
def test_projection_head_has_one_square_hidden_layer(projection_dim):
    head = projection_head(24, projection_dim)
    assert head(random_batch(3, (24,))).shape == (3, projection_dim)
    assert n_parameters(head) == 24 * 24 + 2 * 24 + 25 * projection_dim


def test_the_hidden_layer_has_at_most_512_units():
    head = projection_head(600, 4)
    assert head(random_batch(3, (600,))).shape == (3, 4)
    assert n_parameters(head) == 600 * 512 + 2 * 512 + 513 * 4


def test_projection_dim_zero_means_no_head():
    h = random_batch(3, (24,))
    assert projection_head(24, 0)(h) is h
