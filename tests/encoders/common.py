"""Encoders and samples that the tests of encoders share."""

import torch

from skcontrast.encoders import MLP

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
