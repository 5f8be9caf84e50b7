"""Mistakes in custom pieces are refused, where they would train to other numbers."""

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast import ContrastiveEmbedder
from skcontrast.augmentation import Augmentation
from skcontrast.kinds import Kind
from tests.common import small, vectors


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
