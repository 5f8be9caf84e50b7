"""BCL: weights by the posterior probability of a true negative."""

import math

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


def test_a_single_candidate_leaves_the_floor_at_alpha_one():
    z1, z2, negative = torch.eye(3, dtype=torch.float64)[:, None]
    given = {"queue": negative, "similarity": Cosine(0.5)}
    value = contrastive_loss(z1, z2, loss=BCL(1.0, tau_plus=0.1), **given)
    assert value.item() == pytest.approx(math.log1p(math.exp(-1 / 0.5)))


def test_weights_fall_with_the_rank_from_alpha_to_its_rest():
    ranks = torch.arange(1, 101, dtype=torch.float64)
    weights = BCL(alpha=0.8, tau_plus=0.1).rank_weights(ranks, 100)
    assert (weights.diff() < 0).all()
    assert weights[-1].item() == pytest.approx(0.9 * 0.2 / (0.9 * 0.2 + 0.1 * 0.8))
    flat = BCL(alpha=0.5, tau_plus=0.1).rank_weights(ranks, 100)
    torch.testing.assert_close(flat, torch.full_like(ranks, 0.9))


def test_the_printed_cdf_is_the_inverted_one_where_both_classes_are_alike():
    ranks = torch.arange(1, 51, dtype=torch.float64)
    for alpha, tau_plus, same in ((0.5, 0.1, True), (0.8, 0.5, True), (0.8, 0.1, False)):
        printed, inverted = (
            BCL(alpha=alpha, tau_plus=tau_plus, form=form).rank_weights(ranks, 50)
            for form in ("printed", "inverted")
        )
        assert torch.allclose(printed, inverted) == same
