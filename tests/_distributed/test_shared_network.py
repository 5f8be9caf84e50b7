"""The gradient of two processes is that of one with the whole batch."""

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback

from skcontrast._distributed._shared_network import SharedNetwork
from skcontrast._distributed._world import Shares, current_world, sum_gradients
from skcontrast._objective._contrast import in_batch
from skcontrast._objective._functional import objective_value
from skcontrast.encoders import MLP, ConvNet
from skcontrast.losses import BCL, SupCon
from skcontrast.similarity import Cosine
from tests._distributed.common import CASES, X
from tests.common import small

pytestmark = pytest.mark.skipif(
    not torch.distributed.is_available(), reason="needs torch.distributed"
)


class RecordsGradients(Callback):
    """Keeps the gradient of the first step."""

    def on_grad_computed(self, net, named_parameters, **kwargs):
        found = {name: p.grad.clone().numpy() for name, p in named_parameters}
        if not hasattr(self, "gradient"):
            self.gradient = found


def first_gradient(X=X, y=None, **params):
    record = RecordsGradients()
    small(callbacks=[record], max_epochs=1, **params).fit(X, y)
    return record.gradient


@pytest.mark.parametrize("params", CASES.values(), ids=CASES)
def test_gradient_is_the_one_of_the_whole_batch(ranks, params):
    expected = first_gradient(**params)
    for found in ranks(first_gradient, **params):
        assert found.keys() == expected.keys()
        for name, gradient in expected.items():
            np.testing.assert_allclose(found[name], gradient, rtol=0, atol=5e-6, err_msg=name)


def gradient_in_float64(shape, loss, channels_last):
    """Return the gradient on this rank, or of one process where there is no group."""
    torch.manual_seed(0)
    encoder = ConvNet(widths=(3, 4)) if len(shape) == 3 else MLP((6,))
    network = encoder.build(shape, 8).double().train()
    views = torch.randn(2, 7, *shape, dtype=torch.float64)
    if channels_last:
        views = torch.stack([view.to(memory_format=torch.channels_last) for view in views])
        network.to(memory_format=torch.channels_last)
    labels, similarity, world = torch.tensor([0, 1, 0, 1, -1, 2, 2]), Cosine(), current_world()
    shared = network if world is None else SharedNetwork(network, Shares(world))
    z = shared(views.flatten(0, 1)).unflatten(0, (2, 7))
    contrast = in_batch(similarity.embed(z), similarity, labels)
    part = 1
    if world is not None:
        contrast = contrast.take(world.share(14))
        part = len(contrast.anchors) / 14
    value = objective_value(contrast, loss, similarity) * part
    value.backward()
    parameters, value = list(network.parameters()), value.detach()
    if world is not None:
        (value,) = sum_gradients(parameters, value)
    return [float(value), *(p.grad.numpy() for p in parameters)]


@pytest.mark.parametrize(
    "shape, channels_last", [((5,), False), ((1, 6, 6), False), ((3, 6, 6), True)]
)
@pytest.mark.parametrize("loss", [BCL(beta=1.0), SupCon()], ids=repr)
def test_gradient_in_double_precision(ranks, loss, shape, channels_last):
    expected = gradient_in_float64(shape, loss, channels_last)
    for found in ranks(gradient_in_float64, shape, loss, channels_last):
        for ours, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)
