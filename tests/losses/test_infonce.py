"""InfoNCE."""

import torch

from skcontrast import contrastive_loss
from skcontrast.similarity import Cosine
from tests.common import random_views
from tests.losses.common import assert_same


def test_infonce_is_cross_entropy_over_positive_and_negatives():
    z1, z2 = random_views(9, 5)
    z = torch.nn.functional.normalize(torch.cat([z1, z2]), dim=1)
    logits = (z @ z.T / 0.3).fill_diagonal_(-torch.inf)
    target = torch.arange(18).roll(9)
    expected = torch.nn.functional.cross_entropy(logits, target)
    assert_same(contrastive_loss(z1, z2, similarity=Cosine(0.3)), expected)
