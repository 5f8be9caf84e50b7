"""One random state decides a fit and leaves the global generators alone."""

import subprocess
import sys
import textwrap

import joblib
import numpy as np
import pytest
import torch
from torch import nn

from skcontrast._fit._seeding import draws_random_numbers
from skcontrast.encoders import GIN, MLP, ConvNet, Encoder, ResNet
from tests.common import IMAGES, X_DIGITS, small


@pytest.mark.parametrize("X", [X_DIGITS, IMAGES], ids=["vectors", "images"])
def test_same_random_state_same_embedding(X):
    def embed(seed):
        return small(encoder=None, random_state=seed).fit_transform(X)

    np.testing.assert_array_equal(embed(0), embed(0))
    assert not np.array_equal(embed(0), embed(1))


def test_random_state_instance_is_advanced():
    rng = np.random.RandomState(0)
    first, second = (small(random_state=rng).fit_transform(X_DIGITS) for _ in range(2))
    assert not np.array_equal(first, second)


def test_without_random_state_two_fits_differ():
    first, second = (small(random_state=None).fit_transform(X_DIGITS) for _ in range(2))
    assert not np.array_equal(first, second)


def test_same_embedding_in_another_process():
    script = """
        import hashlib
        from sklearn.datasets import load_digits
        from skcontrast import ContrastiveEmbedder
        from skcontrast.augmentation import RandomAffine
        X = load_digits().data[:200].reshape(-1, 1, 8, 8)
        embedder = ContrastiveEmbedder(
            augmentation=RandomAffine(), max_epochs=2, random_state=0, device="cpu"
        )
        print(hashlib.sha256(embedder.fit_transform(X).tobytes()).hexdigest())
    """
    run = [sys.executable, "-c", textwrap.dedent(script)]
    prints = [subprocess.run(run, capture_output=True, text=True, check=True) for _ in range(2)]
    assert prints[0].stdout == prints[1].stdout != ""


@pytest.mark.parametrize("random_state", [0, None])
def test_global_generators_are_untouched(random_state):
    torch.manual_seed(5)
    before_torch = torch.get_rng_state()
    before_numpy = np.random.get_state()[1].copy()  # noqa: NPY002
    embedder = small(encoder=MLP(dropout=0.5), random_state=random_state).fit(X_DIGITS)
    embedder.transform(X_DIGITS)
    embedder.score(X_DIGITS)
    assert torch.equal(torch.get_rng_state(), before_torch)
    assert np.array_equal(np.random.get_state()[1], before_numpy)  # noqa: NPY002


@pytest.mark.parametrize("encoder", [None, MLP(hidden=(8,), dropout=0.3)], ids=repr)
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


class Thinned(Encoder):
    """An encoder that drops out by functional dropout, under a name of its own."""

    def __init__(self, keep=0.5):
        self.keep = keep

    def build(self, sample_shape, n_components=None):
        return ThinnedModule(sample_shape[0], 1 - self.keep)


class ThinnedModule(nn.Linear):
    def __init__(self, n_features, rate):
        super().__init__(n_features, 8)
        self.rate = rate

    def forward(self, x):
        return nn.functional.dropout(super().forward(x), self.rate, self.training)


def test_an_encoder_with_dropout_of_any_name_is_seeded():
    def embed(global_seed):
        torch.manual_seed(global_seed)
        before = torch.get_rng_state()
        h = small(encoder=Thinned()).fit_transform(X_DIGITS)
        assert torch.equal(torch.get_rng_state(), before)
        return h

    np.testing.assert_array_equal(embed(1), embed(2))


def test_the_encoders_of_the_package_draw_nothing_without_dropout():
    for encoder, shape in [(MLP(), (4,)), (ConvNet(), (1, 8, 8)), (ResNet(18), (3, 32, 32))]:
        assert not draws_random_numbers(encoder.build(shape))
    assert not draws_random_numbers(GIN().build((None, 3)))
    assert draws_random_numbers(MLP(dropout=0.1).build((4,)))
    assert draws_random_numbers(Thinned().build((4,)))
