"""PositiveDebiased: its positive term and what it may be combined with."""

import pytest
import torch

from skcontrast import contrastive_loss
from skcontrast.losses import DCL, PositiveDebiased
from skcontrast.similarity import Cosine
from tests.common import random_views
from tests.losses.common import NEGATIVES


@pytest.mark.parametrize("negatives, message", [(DCL, "negatives=DCL\\(\\)"), (0.1, "Got 0.1")])
def test_negatives_that_are_not_an_estimate_are_refused(negatives, message):
    with pytest.raises(TypeError, match=rf"The {NEGATIVES} must be an instance.*{message}"):
        contrastive_loss(*random_views(4, 3), loss=PositiveDebiased(negatives=negatives))


def test_a_negative_positive_term_is_floored_with_a_warning():
    a = torch.tensor([1.0, 0.0], dtype=torch.float64)
    views = torch.stack([a, a]), torch.stack([-a, a])
    with pytest.warns(UserWarning, match="tau_plus=0.01 and 2 candidates.* floored"):
        value = contrastive_loss(
            *views, loss=PositiveDebiased(tau_plus=0.01), similarity=Cosine(1 / 80)
        )
    assert value.item() == pytest.approx(40.19, abs=0.01)


def test_positive_debiased_needs_bounded_scores():
    class Unbounded(Cosine):
        def bounds(self, width):
            return -float("inf"), float("inf")

    with pytest.raises(ValueError, match="needs finite bounds"):
        contrastive_loss(*random_views(4, 3), loss=PositiveDebiased(), similarity=Unbounded())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_positive_far_below_the_others_keeps_its_own_loss(dtype):
    """The mean over positives stands outside the logarithm, however far apart they are."""
    anchor, far, below = torch.eye(3, dtype=dtype)
    loss = PositiveDebiased()

    def value(*keys):
        views = [z[None] for z in (anchor, *keys)]
        return contrastive_loss(*views, loss=loss, queue=below[None], similarity=Cosine(0.005))

    expected = (value(anchor) + value(far)) / 2
    torch.testing.assert_close(value(anchor, far), expected, rtol=1e-4, atol=1e-4)
