"""Series of unequal lengths as one array: what follows their ends."""

import numpy as np

from skcontrast import ContrastiveEmbedder

# private: how samples are read, before any fit
from skcontrast.kinds._recognise import read_samples

X = np.random.default_rng(0).normal(size=(6, 3, 25))
UNEQUAL = [x[:, : 25 - 3 * k] for k, x in enumerate(X)]


def read(X):
    return read_samples(X, estimator=ContrastiveEmbedder())[0]


def test_integers_keep_their_type_and_get_floats_where_they_end():
    assert read((X * 10).astype(np.int16)).dtype == np.int16
    assert read([x.astype(np.int16) for x in UNEQUAL]).dtype == np.float32


def test_what_all_series_are_padded_with_changes_nothing():
    X = np.random.default_rng(0).normal(size=(40, 2, 20))
    X[::2, :, 15:] = np.nan
    padded = np.concatenate([X, np.full((40, 2, 3), np.nan)], axis=2)
    embedders = [ContrastiveEmbedder(max_epochs=1, random_state=0).fit(x) for x in (X, padded)]
    expected, found = (embedder.transform(X) for embedder in embedders)
    np.testing.assert_array_equal(found, expected)
    np.testing.assert_array_equal(embedders[0].transform(padded), expected)
