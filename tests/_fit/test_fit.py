"""One fit: what it depends on, and what it leaves behind."""

import numpy as np
import torch

from skcontrast.augmentation import MarginalCorruption
from tests.common import X_DIGITS, small, vectors


def test_changing_X_after_fit_changes_nothing():
    X = vectors()
    embedder = small(augmentation=MarginalCorruption()).fit(X)
    before, kept = embedder.score(vectors()), embedder.transform(vectors())
    X[:] = 0
    assert embedder.score(vectors()) == before
    np.testing.assert_array_equal(embedder.transform(vectors()), kept)


def test_fit_inside_inference_mode_and_under_a_different_default_dtype():
    expected = small().fit_transform(X_DIGITS)
    with torch.inference_mode():
        np.testing.assert_array_equal(small().fit_transform(X_DIGITS), expected)
    torch.set_default_dtype(torch.float64)
    try:
        assert small().fit_transform(X_DIGITS).dtype == np.float32
    finally:
        torch.set_default_dtype(torch.float32)
