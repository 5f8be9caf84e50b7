"""BCL: weights by the posterior probability of a true negative."""

import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast.losses import BCL
from skcontrast.similarity import Cosine


def test_weights_that_are_zero_are_zero_in_every_dtype():
    anchor, positive = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    for dtype in (torch.float32, torch.float64):
        value = contrastive_loss(
            anchor.to(dtype),
            positive.to(dtype),
            queue=torch.eye(2, dtype=dtype),
            loss=BCL(1.0, tau_plus=0.1),
            similarity=Cosine(1 / 80),
        )
        assert value.item() == pytest.approx(1.0986, abs=1e-3)  # log 3: the other one alone counts
