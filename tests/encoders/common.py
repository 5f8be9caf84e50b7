"""Encoders and samples that the tests of encoders share."""

import numpy as np
import torch
from torch import nn

from skcontrast.encoders import MLP, Encoder
from skcontrast.kinds import Kind

IMAGES = [(1, 1, 1), (2, 2, 3), (3, 1, 9), (1, 8, 8), (1, 28, 28), (3, 32, 32), (1, 5, 40)]
VECTOR_ENCODERS = [
    MLP(),
    MLP(widths=()),
    MLP(widths=5),
    MLP(widths=[4, 3], dropout=0.3),
    MLP(widths=(8,), batch_norm=False, activation="tanh"),
    MLP(widths=(8,), activation="gelu"),
    MLP(widths=(8,), activation="silu"),
]


def case_id(value):
    return repr(value).replace("\n", "").replace(" ", "")


def n_parameters(module):
    return sum(parameter.numel() for parameter in module.parameters())


def seeded(encoder, shape, n_components=None, seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return encoder.build(shape, n_components)


def random_batch(n, shape, seed=0):
    return torch.randn(n, *shape, generator=torch.Generator().manual_seed(seed))


def same_state(first, second):
    first, second = first.state_dict(), second.state_dict()
    return first.keys() == second.keys() and all(torch.equal(first[k], second[k]) for k in first)


def own(module, **members):
    """Return an encoder of a user's class that builds a module each time."""
    build = {"build": lambda self, sample_shape, n_components=None: module}
    return type("Own", (Encoder,), {**build, **members})()


class Applied(nn.Linear):
    """A layer, and a function of what it returns."""

    def __init__(self, function):
        super().__init__(5, 8)
        self.function = function

    def forward(self, x):
        return self.function(super().forward(x))


class Mean(nn.Linear):
    """Reads the padding of recordings too: the mean over all steps."""

    def forward(self, x):
        return super().forward(x).mean(1)


class Sum(nn.Linear):
    """Reads no padding."""

    def forward(self, x):
        return (super().forward(x) * (x != 0).any(2, keepdim=True)).sum(1)


class Recordings(Kind):
    """Recordings of unequal lengths, padded with zeros."""

    name = "recordings"

    def check(self, X):
        samples = np.empty(len(X), dtype=object)
        samples[:] = [np.asarray(x, dtype=np.float32) for x in X]
        return samples

    def to_tensor(self, X, device):
        return nn.utils.rnn.pad_sequence([torch.from_numpy(x) for x in X], True).to(device)
