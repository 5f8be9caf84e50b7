"""Pairs of arrays: what they equal, and what is refused."""

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from torch.utils.data import TensorDataset

from skcontrast.encoders import ConvNet
from skcontrast.frameworks import CMC
from tests.common import small
from tests.frameworks.common import IMAGES, X


def test_a_pair_of_arrays_is_their_concatenation_and_a_split():
    pair = X[:, :20], X[:, 20:].astype(np.float32)
    whole = small(framework=CMC(split=20)).fit(X)
    embedder = small(framework=CMC()).fit(pair)
    np.testing.assert_array_equal(embedder.transform(pair), whole.transform(X))
    np.testing.assert_array_equal(embedder.transform(X), whole.transform(X))
    assert embedder.score(pair) == whole.score(X)
    grey, colour = IMAGES[:, 0], np.concatenate([IMAGES, IMAGES], 1)
    images = small(encoder=ConvNet(widths=(4,)), framework=CMC()).fit((grey, colour))
    assert images.transform((grey, colour)).shape[0] == 101
    assert [part.shape for part in images.encoder_[-1].split.buffers()] == [(1,), (2,)]


def test_a_pair_must_be_cut_as_in_fit():
    pair, other = ((X[:, :k], X[:, k:]) for k in (20, 30))
    embedder = small(framework=CMC(split=20)).fit(X)
    np.testing.assert_array_equal(embedder.transform(pair), embedder.transform(X))
    with pytest.raises(ValueError, match=r"pair X has 30 .*, in fit it had 20"):
        embedder.transform(other)
    for split in ("random", [5, 3]):
        embedder = small(framework=CMC(split=split)).fit(X)
        with pytest.raises(ValueError, match="X is a pair of arrays, but in fit it was one"):
            embedder.transform(pair)


@pytest.mark.parametrize(
    "pair, message",
    [
        ((X, X[:50]), "same samples: the first has 101, the second 50"),
        ((X, IMAGES), "both be vectors, or both be images of one height and width"),
        ((IMAGES, IMAGES[..., 1:]), "both be images of one height and width"),
        ((X, X, X), "a pair of arrays, got a tuple of 3"),
        ((None, X), "X must be an array of samples, got None"),
        ((csr_matrix(X), X), "must hold two arrays of samples, got csr_matrix and ndarray"),
        ((TensorDataset(torch.tensor(X)), X), "two arrays of samples, got TensorDataset and"),
        ((X[:, :3], X[:, 3:]), "in fit it had 20|first array of the pair X has 3"),
        ((X[:, :20], np.full_like(X[:, 20:], np.nan)), "NaN"),
    ],
)
def test_bad_pairs_are_refused(pair, message):
    embedder = small(framework=CMC(), warm_start=True).fit((X[:, :20], X[:, 20:]))
    with pytest.raises(ValueError, match=message):
        embedder.fit(pair)
    with pytest.raises(ValueError, match=message):
        embedder.transform(pair)
