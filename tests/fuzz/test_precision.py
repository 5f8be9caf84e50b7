"""A fit in bfloat16 is one in float32 but for rounding: at each step it uses the current weights.

The cases are random in what a step consists of. Whatever magnifies rounding errors, such as
extreme numbers or low temperatures, is at its plainest: it is the subject of `test_fits`. All run
under the caller's own autocast, whose cache of weights would outlive the steps.
"""

import copy
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast.frameworks import CMC, InfoGraph, MoCo, SimCLR
from tests.common import images, small, vectors
from tests.fuzz.fit_cases import AXES, make_case, make_embedder, make_labels, make_samples, unusual

N_CASES = 3
_DRAWN = ("kind", "loss", "framework", "n_views", "projection_dim", "optimizer")
_FIXED = {"n": 33, "n_features": 9, "batch_size": 16, "max_epochs": 6, "lr": 0.02}
_GRAPHS = ("networkx", "attributed", "packed")


def make_plain_case(number):
    """Return a case in which the framework fits the kind."""
    plainest = {axis: choices[0] for axis, (_, choices) in AXES.items()}
    drawn = {axis: value for axis, value in make_case(number).items() if axis in _DRAWN}
    case = {**plainest, **drawn, **_FIXED, "lr_schedule": "constant"}
    kind, framework = case["kind"], case["framework"]
    if kind in ("pair", "image pair"):
        case["framework"] = CMC()
    elif isinstance(framework, InfoGraph) != (kind in _GRAPHS) or isinstance(framework, CMC):
        case["framework"] = SimCLR()
    elif isinstance(framework, MoCo):
        case["framework"] = MoCo(20)
    return case


def losses(case, **params):
    """Return the loss of each epoch."""
    embedder = make_embedder({**case, **params})
    return np.array(embedder.fit(make_samples(case), make_labels(case)).history_[:, "train_loss"])


@pytest.mark.parametrize(
    "number",
    [*range(N_CASES), *(pytest.param(k, marks=pytest.mark.slow) for k in range(N_CASES, 20))],
)
def test_the_losses_in_bfloat16_are_close_to_those_in_float32(number):
    """Rounding to 2^-9 moves losses, also by way of the weights, far less than learning does.

    Without it, the distance is that of the losses of the first weights, at a learning rate of 0.
    """
    case = make_plain_case(number)
    expected = losses(case, precision="float32")
    of_first_weights = losses(case, precision="float32", lr=1e-30)
    with torch.autocast("cpu", torch.bfloat16):
        found = losses(case, precision="bf16")
    distance, learned = abs(found - expected).mean(), abs(expected - of_first_weights).mean()
    assert distance < 0.4 * learned, unusual(case)


class Compared(nn.Module):
    """A network that computes each output a second time in float32, from its weights of then."""

    errors: list = []
    moves: list = []

    def __init__(self, network):
        super().__init__()
        self.network, self.first = network, [copy.deepcopy(network)]

    def forward(self, x):
        output = self.network(x)
        with torch.no_grad(), torch.autocast("cpu", enabled=False):
            exact, of_first = copy.deepcopy(self.network)(x), self.first[0](x)
            self.errors.append(float((output - exact).norm() / exact.norm()))
            self.moves.append(float((of_first - exact).norm() / exact.norm()))
        return output


def _layers(widths, first, *, is_normalized):
    """Return linear layers after others."""
    layers = [*first]
    for n_in, n_out in pairwise(widths):
        norm = [nn.BatchNorm1d(n_in)] if is_normalized else []
        layers += [*norm, nn.ReLU(), nn.Linear(n_in, n_out)]
    return nn.Sequential(*layers)


NETWORKS = {
    "linear": lambda: nn.Sequential(nn.Flatten(), nn.Linear(108, 6)),
    "deep": lambda: _layers((12, 12, 6), [nn.Linear(108, 12)], is_normalized=False),
    "normalized": lambda: _layers((12, 6), [nn.Linear(108, 12)], is_normalized=True),
    "convolution": lambda: _layers(
        (16, 6), [nn.Conv2d(3, 4, 3, stride=2), nn.Flatten()], is_normalized=False
    ),
}


@pytest.mark.parametrize("framework", [SimCLR(), MoCo(20, 0.5)], ids=["SimCLR", "MoCo"])
@pytest.mark.parametrize("name", NETWORKS)
def test_each_step_in_bfloat16_uses_the_current_weights(name, framework):
    """Each layer rounds numbers and weights by up to 2^-9: 5 % is far more than 3 layers make."""
    Compared.errors.clear()
    Compared.moves.clear()
    torch.manual_seed(0)
    X = images() / 255.0 if name == "convolution" else vectors(d=108)
    params = {"max_epochs": 6, "batch_size": 10, "lr": 0.02, "precision": "bf16"}
    with torch.autocast("cpu", torch.bfloat16):
        small(encoder=Compared(NETWORKS[name]()), framework=framework, **params).fit(X)
    assert max(Compared.moves) > 0.5
    assert 1e-4 < max(Compared.errors) < 0.05
