"""A new network: its encoder, its head, and their widths."""

import numpy as np
import torch

from tests.common import X_DIGITS, small


def test_projection_is_the_head_on_the_representation():
    embedder = small(projection_dim=3).fit(X_DIGITS)
    h = embedder.transform(X_DIGITS)
    z = embedder.set_params(output="projection").transform(X_DIGITS)
    expected = embedder.projector_(torch.from_numpy(h)).detach().numpy()
    np.testing.assert_allclose(z, expected, atol=1e-6)
    assert len(embedder.get_feature_names_out()) == 3


def test_without_a_head_projection_is_representation():
    embedder = small(projection_dim=0).fit(X_DIGITS)
    h = embedder.transform(X_DIGITS)
    np.testing.assert_array_equal(embedder.set_params(output="projection").transform(X_DIGITS), h)
    assert len(embedder.get_feature_names_out()) == h.shape[1]
