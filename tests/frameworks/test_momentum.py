"""The momentum encoder."""

import copy

import pytest
import torch
from torch import nn

from skcontrast.frameworks import MomentumNetwork
from tests.frameworks.common import make_fit, random


@pytest.mark.parametrize("momentum", [0.0, 0.9, 1.0])
def test_momentum_update(momentum):
    module = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Linear(5, 4)).train()
    network = MomentumNetwork(make_fit(module), momentum)
    before = copy.deepcopy(network.network.state_dict())
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(1.0)
    module(random(8, 6))
    network.follow()
    trained = module.state_dict()
    for name, value in network.network.state_dict().items():
        expected = trained[name]
        if value.is_floating_point():
            expected = momentum * before[name] + (1 - momentum) * trained[name]
        torch.testing.assert_close(value, expected, msg=name)
    assert not any(parameter.requires_grad for parameter in network.parameters())
    assert all(parameter.requires_grad for parameter in module.parameters())


def test_weights_that_two_layers_share_move_once():
    module = nn.Sequential(nn.Linear(6, 6), nn.ReLU(), nn.Linear(6, 6))
    module[2].weight = module[0].weight
    network = MomentumNetwork(make_fit(module), 0.9)
    before = module[0].weight.detach().clone()
    with torch.no_grad():
        module[0].weight.add_(1.0)
    network.follow()
    torch.testing.assert_close(network.network[2].weight, before + 0.1)


def test_keys_do_not_depend_on_the_batch_and_have_no_gradient():
    module = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5), nn.Dropout(), nn.Linear(5, 4))
    network = MomentumNetwork(make_fit(module.train()), 0.9).train()
    x = random(8, 6)
    together = network(x)
    torch.testing.assert_close(torch.cat([network(row[None]) for row in x]), together)
    assert not together.requires_grad


def test_batch_statistics_start_from_the_first_batch():
    module = nn.Sequential(nn.Linear(6, 5), nn.BatchNorm1d(5)).train()
    network = MomentumNetwork(make_fit(module), 0.9)
    x = 3 + 2 * random(50, 6)
    torch.testing.assert_close(network(x), module(x), rtol=0, atol=0.1)
    torch.testing.assert_close(network.network[1].running_mean, module[0](x).mean(0))
    assert network.network[1].momentum == 0.1
    # A network that has been trained before keeps its statistics.
    trained = copy.deepcopy(module[1].running_mean)
    MomentumNetwork(make_fit(module), 0.9)(100 * x)
    torch.testing.assert_close(module[1].running_mean, trained)
