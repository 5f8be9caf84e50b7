"""Mistakes in custom pieces are refused, where they would train to other numbers."""

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import Augmentation
from skcontrast.frameworks import Session
from skcontrast.kinds import Kind
from skcontrast.losses import HCL, Loss
from skcontrast.similarity import Similarity
from tests.common import small, vectors


def test_a_misspelled_method_of_a_session_is_refused():
    with pytest.raises(TypeError, match="updates would never be used: did you mean update"):
        type("Own", (Session,), {"updates": lambda self: None})


def test_a_misspelled_method_of_a_mixin_is_refused():
    mixin = type("Mixin", (), {"rank_weight": lambda self, ranks, n: ranks})
    with pytest.raises(TypeError, match="rank_weight would never be used"):
        type("Own", (mixin, HCL), {"__module__": mixin.__module__})


def test_a_helper_that_the_class_reads_may_resemble_a_method():
    class Own(Kind):
        names = ("a", "b")

        def check(self, X):
            return np.stack([self.scale(x) for x in X])

        @staticmethod
        def scale(x):
            return np.asarray(x)

        @property
        def expected(self):
            return [name.upper() for name in self.names]

    class Towards(Similarity):
        def embed(self, z):
            return z - self.direction()

        def direction(self):
            return 0

    class Twice(Towards):
        def embed(self, z):
            return 2 * super().embed(z)

    assert Twice().embed(torch.ones(1, 1)) == 2
    assert Own().check([[1, 2]]).shape == (1, 2) and Towards().embed(torch.ones(1, 1)) == 1
    with pytest.raises(TypeError, match="scale would never be used: did you mean scaler"):
        type("Own", (Kind,), {"scale": lambda self, X: [X]})


def test_swapped_arguments_are_refused_when_the_class_is_defined():
    def to_tensor(self, device, X):
        return X

    class Moved(Similarity):
        def embed(self, z):
            return z

        @torch.no_grad()
        def scores(self, u, v):
            return u - v

    with pytest.raises(TypeError, match=r"Own\.scores takes v, u, but is called with u, v"):
        type("Own", (Moved,), {"scores": lambda self, v, u: u - v})
    message = r"Own\.to_tensor takes device, X, but is called with X, device, in this order"
    with pytest.raises(TypeError, match=message):
        type("Own", (Kind,), {"to_tensor": to_tensor})


class OnlyPairs(Similarity):
    def embed(self, z):
        return z

    def pairs(self, u, v):
        return -(u - v).norm(dim=-1)


def test_pairs_that_contradict_the_scores_are_refused():
    with pytest.raises(ValueError, match=r"OnlyPairs\.pairs.* must be the diagonal of scores"):
        small(similarity=OnlyPairs()).fit(vectors())


@pytest.mark.parametrize("hook", ["pull_share", "true_negative_probability"])
def test_a_hook_that_is_not_asked_alone_makes_no_loss(hook):
    own = type("Own", (Loss,), {hook: lambda self, *args: 0.5})
    with pytest.raises(TypeError, match="Own overrides nothing of Loss"):
        small(loss=own()).fit(vectors())


def test_an_unknown_sum_of_weights_is_refused():
    own = type("Own", (HCL,), {"sum_of_weights": "xyz"})
    with pytest.raises(ValueError, match="'sum_of_weights' parameter of Own must be a str among"):
        small(loss=own()).fit(vectors())


class InPlace(Augmentation):
    def augment(self, batch, generator=None):
        return batch.add_(torch.randn(batch.shape, generator=generator))


def test_views_that_are_drawn_in_place_are_refused():
    with pytest.raises(ValueError, match=r"InPlace\.augment changes its batch in place"):
        small(augmentation=InPlace()).fit(vectors())


class Rows(Kind):
    """Rows of numbers."""

    def check(self, X):
        return np.asarray(X, dtype=np.float32)

    def to_tensor(self, X, device):
        return torch.from_numpy(X).to(device)


class Fewer(Rows):
    def check(self, X):
        return super().check(X)[:-3]


class Dictionary(Rows):
    def to_tensor(self, X, device):
        return {"x": super().to_tensor(X, device)}


class Half(Rows):
    def to_tensor(self, X, device):
        return super().to_tensor(X[: len(X) // 2], device)


@pytest.mark.parametrize(
    "kind, error, message",
    [
        (Fewer(), ValueError, r"Fewer\.check must return one sample for each of the 60 in X"),
        (Dictionary(), TypeError, r"TensorBatch of several, got a dict"),
        (Half(), TypeError, r"batch of \d+ samples.*got \d+ samples"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Kind) else None,
)
def test_samples_that_a_kind_loses_are_noticed(kind, error, message):
    embedder = ContrastiveEmbedder(nn.Linear(5, 4), kind=kind, augmentation=[], max_epochs=1)
    with pytest.raises(error, match=message):
        embedder.fit(vectors())
