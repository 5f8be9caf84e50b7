"""One random state decides a fit and leaves the global generators alone."""

import joblib
import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from skcontrast.augmentation import RandomAffine
from skcontrast.encoders import MLP, Encoder
from tests.common import IMAGES, X_DIGITS, in_a_process, small


@pytest.mark.parametrize("X", [X_DIGITS, IMAGES], ids=["vectors", "images"])
def test_same_random_state_same_embedding(X):
    def embed(seed):
        return small(encoder=None, random_state=seed).fit_transform(X)

    np.testing.assert_array_equal(embed(0), embed(0))
    assert not np.array_equal(embed(0), embed(1))


@pytest.mark.parametrize("random_state", [np.random.RandomState(0), None], ids=type)
def test_two_fits_differ_without_a_random_state_or_with_an_instance(random_state):
    first, second = (small(random_state=random_state).fit_transform(X_DIGITS) for _ in range(2))
    assert not np.array_equal(first, second)


def embedding_of_images():
    return small(encoder=None, augmentation=RandomAffine(), random_state=0).fit_transform(IMAGES)


def test_same_embedding_in_a_different_process():
    other = in_a_process(embedding_of_images)
    np.testing.assert_array_equal(other, embedding_of_images())


def test_generators_of_other_devices_are_not_seeded(monkeypatch):
    def refuse(seed):
        raise AssertionError("the generators of a device that the fit does not use")

    monkeypatch.setattr(torch.cuda, "manual_seed_all", refuse)
    small(encoder=MLP(dropout=0.5)).fit(X_DIGITS).transform(X_DIGITS)


@pytest.mark.parametrize("encoder", [None, MLP(widths=(8,), dropout=0.3)], ids=repr)
def test_fits_in_threads_do_not_disturb_each_other(encoder):
    def embed():
        return small(encoder=encoder).fit(X_DIGITS).transform(X_DIGITS)

    before = torch.get_rng_state()
    alone = embed()
    together = joblib.Parallel(n_jobs=4, backend="threading")(
        joblib.delayed(embed)() for _ in range(8)
    )
    for h in together:
        np.testing.assert_allclose(h, alone, atol=1e-5)
    assert torch.equal(torch.get_rng_state(), before)


class RandomUnits(Encoder):
    """Draws by a function, has no attribute `dropout` and no layer of that name."""

    def build(self, sample_shape, n_components=None):
        return _RandomUnits(sample_shape[0])


class _RandomUnits(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 8)

    def forward(self, x):
        return F.dropout(self.linear(x), 0.5, self.training)


def hooked():
    module = nn.Linear(64, 8)
    module.register_forward_hook(lambda layer, x, h: F.dropout(h, 0.5, layer.training))
    return module


@pytest.mark.parametrize(
    "encoder",
    [
        RandomUnits(),
        nn.Sequential(nn.Linear(64, 8), nn.AlphaDropout(0.3)),
        nn.Sequential(nn.Linear(64, 8), nn.RReLU()),
        hooked(),
        lambda shape: _RandomUnits(*shape),
    ],
    ids=["encoder", "alpha dropout", "random slope", "hook", "callable"],
)
def test_dropout_of_any_spelling_is_seeded(encoder):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(5)
        before = torch.get_rng_state()
        first = small(encoder=encoder, random_state=0).fit_transform(X_DIGITS)
        assert torch.equal(torch.get_rng_state(), before)
        torch.manual_seed(6)
        second = small(encoder=encoder, random_state=0).fit_transform(X_DIGITS)
    np.testing.assert_array_equal(first, second)
