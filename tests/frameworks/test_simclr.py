"""SimCLR: the other samples of the batch are the negatives."""

import numpy as np
import pytest
import torch
from torch import nn

from skcontrast import contrastive_loss

# private: the value of a contrast that no public call forms
from skcontrast._objective._mean_loss import objective_value
from skcontrast.frameworks import Batch, SimCLR
from skcontrast.losses import InfoNCE, SupCon
from skcontrast.similarity import Cosine
from tests.common import X_DIGITS, small
from tests.frameworks.common import random


@pytest.mark.parametrize("n_views", [2, 3])
def test_the_contrast_is_that_of_the_encoded_views(n_views):
    module = nn.Linear(6, 4)
    views = [random(5, 6, seed=v) for v in range(n_views)]
    contrast = SimCLR().contrast(module, views, Cosine(0.3), Batch(views[0]))
    value = objective_value(contrast, InfoNCE(), Cosine(0.3))
    expected = contrastive_loss(*map(module, views), similarity=Cosine(0.3))
    torch.testing.assert_close(value, expected)
    assert contrast.candidates.shape == (5 * n_views, 4)


def test_labels_and_weights_of_the_batch_reach_the_loss():
    views = [random(6, 4, seed=v) for v in range(2)]
    y, weights = torch.tensor([0, 0, 1, 1, -1, 2]), torch.linspace(0.5, 2, 6)
    batch = Batch(views[0], labels=y, weights=weights)
    contrast = SimCLR().contrast(nn.Identity(), views, Cosine(), batch)
    value = objective_value(contrast, SupCon(), Cosine())
    expected = contrastive_loss(*views, loss=SupCon(), y=y, sample_weight=weights)
    torch.testing.assert_close(value, expected)


def test_all_views_are_encoded_in_one_call():
    sizes = []
    views = [random(5, 4, seed=v) for v in range(3)]
    SimCLR().contrast(lambda x: sizes.append(len(x)) or x, views, Cosine(), Batch(views[0]))
    assert sizes == [15]


def test_simclr_is_the_default():
    given, default = (small(framework=f).fit_transform(X_DIGITS) for f in (SimCLR(), None))
    np.testing.assert_array_equal(given, default)
