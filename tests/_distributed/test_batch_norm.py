"""Batch normalisation of the shares of two processes is that of the whole batch."""

import pytest
import torch
from torch import nn

from skcontrast._distributed._shared_network import WholeBatchNorm
from skcontrast._distributed._world import World, current_world

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="needs torch.distributed"
)


def normalised(n_batches, world, **params):
    """Return the outputs of a share of batches, the gradients of its rows, and the statistics."""
    generator = torch.Generator().manual_seed(0)
    layer, found = nn.BatchNorm1d(3, **params).double(), []
    for _ in range(n_batches):
        x, grad = torch.randn(2, 7, 3, dtype=torch.float64, generator=generator)
        rows = world.share(7)
        x = (5 + x[rows]).requires_grad_()
        with WholeBatchNorm(world) if world.size > 1 else torch.enable_grad():
            z = layer(x)
        z.backward(grad[rows])
        found.append(torch.stack([z.detach(), x.grad], 1).numpy())
    layer.eval()
    return found, layer(torch.ones(1, 3, dtype=torch.float64)).tolist()


def on_this_rank(**params):
    return normalised(2, current_world(), **params)


@pytest.mark.parametrize("params", [{}, {"affine": False}, {"momentum": None}], ids=str)
def test_outputs_gradients_and_statistics(ranks, params):
    expected, statistics = normalised(2, World(0, 1), **params)
    shares = ranks(on_this_rank, **params)
    for batch, whole in enumerate(expected):
        together = torch.cat([torch.as_tensor(found[batch]) for found, _ in shares])
        torch.testing.assert_close(together, torch.as_tensor(whole), rtol=1e-10, atol=1e-12)
    assert shares[0][1] == shares[1][1] == [pytest.approx(statistics[0], rel=1e-10)]
