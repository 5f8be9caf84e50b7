"""Samples through a network in portions."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast._inference import encode  # private: a network without a fit
from skcontrast.encoders import MLP, ConvNet
from skcontrast.estimation import project_views
from skcontrast.kinds import Vectors
from skcontrast.kinds._recognise import recognised  # private: rows of one call
from tests.common import small, vectors
from tests.graphs.common import packed_arrays


def in_batches(module, X, n):
    """Return the output of a module for samples, n at a time."""
    return encode(module, X, SimpleNamespace(rows_per_call=lambda X: n), torch.from_numpy)


def test_many_small_samples_and_few_large_ones_per_call():
    def of_shape(*shape):
        X = np.broadcast_to(np.float32(0), (9, *shape))
        return recognised(X)[0].rows_per_call(X)

    assert of_shape(2) == 2**14
    assert of_shape(3, 32, 32) == 341
    assert of_shape(3, 1000, 1000) == 32
    graphs = packed_arrays(np.empty((2, 0)), [0, 2**14, 2**15])
    assert recognised(graphs)[0].rows_per_call(graphs) == 2


@pytest.mark.parametrize("shape", [(64,), (3, 16, 16)])
def test_a_row_does_not_depend_on_the_rows_that_it_comes_with_up_to_rounding(shape):
    X = np.random.default_rng(0).normal(size=(100, *shape)).astype(np.float32)
    module = (MLP() if len(shape) == 1 else ConvNet()).build(shape)
    whole = in_batches(module, X, 100)
    for n in (1, 2, 15, 50):
        np.testing.assert_allclose(in_batches(module, X[:n], n), whole[:n], rtol=1e-4, atol=1e-5)


class Powers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(5, 4)

    def forward(self, x):
        return self.layer(x).pow(8)


def test_an_embedding_that_is_not_finite_is_refused_by_the_name_of_its_sample():
    embedder = small(encoder=Powers(), kind=Vectors(standardize=False), augmentation=[]).fit(
        vectors()
    )
    X = vectors().astype(np.float32)
    X[[7, 9]] = 1e30
    for refused in (embedder.transform, lambda X: project_views(embedder, X)):
        with pytest.raises(ValueError, match=r"infinity for 2 of 60 samples, first for X\[7\]"):
            refused(X)
    with pytest.raises(ValueError, match=r"The network returns NaN or infinity"):
        embedder.score(X)
    X[[7, 9]] = 0
    assert np.isfinite(embedder.transform(X)).all()


def test_finite_embeddings_whose_sum_overflows_are_returned():
    h = np.full((4, 3), 3e38, dtype=np.float32)
    assert np.array_equal(in_batches(nn.Identity(), h, 2), h)
