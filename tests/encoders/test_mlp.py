"""MLP, and the projection head."""

from itertools import product

import pytest
import torch
from torch import nn

from skcontrast.encoders import MLP
from skcontrast.encoders._mlp import projection_head  # private: the head alone
from tests.encoders.common import (
    IMAGES,
    VECTOR_ENCODERS,
    case_id,
    n_parameters,
    random_batch,
    same_state,
    seeded,
)

VECTORS = [(1,), (7,), (64,)]


@pytest.mark.parametrize("encoder", VECTOR_ENCODERS, ids=case_id)
def test_mlp_maps_samples_of_any_shape_to_n_components(encoder):
    for shape, n_components in product(VECTORS + IMAGES, [None, 1, 10]):
        output = seeded(encoder, shape, n_components)(random_batch(3, shape))
        assert output.shape == (3, n_components or 128) and output.dtype == torch.float32


def test_mlp_without_hidden_layers_is_affine():
    module = seeded(MLP(widths=()), (5,), 3)
    a, b = random_batch(2, (4, 5))
    torch.testing.assert_close(module((a + b) / 2), (module(a) + module(b)) / 2)


def test_hidden_may_be_one_int():
    assert same_state(seeded(MLP(widths=9), (4,)), seeded(MLP(widths=(9,)), (4,)))


def test_hidden_activations_neither_fade_nor_explode_with_depth():
    """He initialisation keeps the mean square of the activations through many layers."""
    module = seeded(MLP(widths=(512,) * 12, batch_norm=False), (512,), 512)
    with torch.no_grad():
        output = module(random_batch(64, (512,)))
    assert 1 / 3 < output.square().mean() < 3


@pytest.mark.parametrize("width, hidden, dim", [(24, 24, 1), (24, 24, 16), (600, 512, 4)])
def test_projection_head_has_a_hidden_layer_of_its_width_or_512_units(width, hidden, dim):
    head = projection_head(width, dim)
    assert head(random_batch(3, (width,))).shape == (3, dim)
    assert n_parameters(head) == width * hidden + 2 * hidden + (hidden + 1) * dim


def test_projection_dim_zero_means_no_head():
    h = random_batch(3, (24,))
    assert projection_head(24, 0)(h) is h


def test_the_extra_number_is_that_of_the_formula():
    layer = projection_head(5, 0, n_extra=2).double()
    for parameter in layer.extra.parameters():
        nn.init.normal_(parameter, generator=torch.Generator().manual_seed(0))
    h = 3 * random_batch(20, (5,)).double() + 1
    g = (h - h.mean(0)) / (h.var(0, correction=0) + 1e-5).sqrt()
    w, b = layer.extra.weight, layer.extra.bias
    expected = torch.tanh(g) @ w.T + 10 * b - 2 * ((1 + (g**2).mean(1)[:, None]) / 2).log()
    torch.testing.assert_close(layer(h), torch.cat([h, expected], 1))
