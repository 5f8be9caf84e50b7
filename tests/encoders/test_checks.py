"""Custom encoders that mix samples, read padding or hold idle parameters are refused."""

import networkx as nx
import numpy as np
import pytest
import torch
from torch import nn

from skcontrast.encoders import GIN, MLP, ConvNet, PatchNet, SeriesNet, check_encoder
from tests.common import images, vectors
from tests.encoders.common import Applied, Mean, Recordings, Sum, own

X = vectors()
GRAPHS = [nx.cycle_graph(4 + k) for k in range(8)]


@pytest.mark.parametrize("wrap", [own, lambda module: module], ids=["own", "module"])
@pytest.mark.parametrize(
    "function",
    [
        lambda h: h - h.mean(0),
        lambda h: h.flip(0),
        lambda h: nn.functional.dropout(h, 0.5),
        lambda h: h.softmax(0),
    ],
)
def test_rows_that_depend_on_other_samples_or_on_chance_are_refused(wrap, function):
    with pytest.raises(ValueError, match="must be deterministic, treat samples independently"):
        check_encoder(wrap(Applied(function)), X)


class HalfDetached(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last, self.unused = nn.Linear(5, 8), nn.Linear(8, 4), nn.Linear(4, 4)

    def forward(self, x):
        return self.last(self.first(x).detach())


def test_parameters_without_a_gradient_are_named_unless_they_are_frozen():
    names = "first.weight, first.bias, unused.weight, unused.bias"
    for encoder in (HalfDetached(), own(HalfDetached())):
        with pytest.raises(ValueError, match=f"that get no gradient, {names}: leave out"):
            check_encoder(encoder, X)
    frozen = HalfDetached()
    frozen.first.requires_grad_(False), frozen.unused.requires_grad_(False)
    check_encoder(frozen, X)


def test_what_learn_does_is_checked_too():
    def learn(self, module, batch, rng):
        module.function = lambda h: h - h.mean(0)

    with pytest.raises(ValueError, match="treat samples independently"):
        check_encoder(own(Applied(torch.relu), learn=learn), X)


def test_an_encoder_that_reads_the_padding_is_refused():
    rng = np.random.default_rng(0)
    recordings = [rng.normal(size=(4 + k % 5, 3)) for k in range(24)]
    with pytest.raises(ValueError, match=r"ignore padding.*skcontrast\.kinds\.TensorBatch"):
        check_encoder(Mean(3, 4), recordings, Recordings())
    check_encoder(Sum(3, 4), recordings, Recordings())


@pytest.mark.parametrize(
    "encoder, samples",
    [
        (MLP((8,)), X),
        (ConvNet((4,)), images(40)),
        (PatchNet(4, 3, (4,)), images(40, side=16)),
        (SeriesNet(), np.random.default_rng(0).normal(size=(20, 2, 40))),
        (GIN(1, 4), GRAPHS),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_encoders_of_the_package_pass(encoder, samples):
    check_encoder(encoder, samples)
