"""The contrast of embeddings that come as arrays."""

import numpy as np
import torch

from skcontrast._objective._from_arrays import contrast_of
from skcontrast.similarity import Cosine, VonMisesFisher
from tests.common import random_views


def test_arrays_tensors_and_single_precision_give_one_contrast_in_double():
    views = random_views(6, 4, dtype=torch.float32)
    first, similarity = contrast_of(views, None)
    second, _ = contrast_of([view.numpy() for view in views], Cosine())
    assert isinstance(similarity, Cosine) and first.anchors.dtype == torch.float64
    torch.testing.assert_close(first.anchors, second.anchors, rtol=0, atol=0)
    torch.testing.assert_close(first.positives, second.positives, rtol=0, atol=0)


def test_distributions_and_the_output_of_a_network_give_one_contrast():
    similarity = VonMisesFisher()
    raw = random_views(6, 5)
    pairs = [tuple(map(np.asarray, similarity.distribution(view))) for view in raw]
    first, second = contrast_of(raw, similarity)[0], contrast_of(pairs, similarity)[0]
    torch.testing.assert_close(first.positives, second.positives)
