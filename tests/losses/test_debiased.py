"""InfoNCE, DCL, HCL and PUCL: false negatives are subtracted."""

import math

import pytest
import torch
from torch.nn.functional import normalize, softplus

from skcontrast import contrastive_loss
from skcontrast.losses import DCL, HCL, PUCL, PositiveDebiased
from skcontrast.schedules import Linear
from skcontrast.similarity import Cosine
from tests.common import random_views
from tests.losses.common import NEGATIVES, value_and_grads


def test_floored_anchors_pass_no_gradient_to_the_negatives():
    z = torch.eye(4, dtype=torch.float64)
    queue = -z[:1] + 0.01
    queue.requires_grad_()
    # The negatives lie at the lowest score: the debiased estimate is below its floor.
    contrastive_loss(z, z, loss=DCL(tau_plus=0.5), queue=queue).backward()
    assert torch.equal(queue.grad, torch.zeros_like(queue))


def test_finite_for_hard_negatives_at_low_temperature():
    views = random_views(64, 8)
    value, grads = value_and_grads(views, torch.float32, loss=HCL(beta=5), similarity=Cosine(0.01))
    exact, _ = value_and_grads(views, torch.float64, loss=HCL(beta=5), similarity=Cosine(0.01))
    assert value.item() == pytest.approx(exact.item(), rel=1e-4)
    assert all(g.isfinite().all() for g in grads)


class OneAttracts(DCL):
    """DCL: all positives correct, the first one attracts; as in docs/losses.rst."""

    def losses(self, rows):
        excess = math.log(rows.n_candidates) + rows.log_expectation(self) - rows.positives[:, 0]
        return softplus(excess)


def test_samples_that_only_correct_are_a_loss_of_ones_own():
    views, queue = random_views(6, 4, n_views=4), random_views(20, 4)[0]
    value, (grad, *_) = value_and_grads(
        views, torch.float64, loss=OneAttracts(tau_plus=0.2), queue=queue, similarity=Cosine(0.5)
    )
    views = [view.double().requires_grad_() for view in views]
    anchor, *others = (normalize(view, dim=1) for view in views)
    scores = anchor @ normalize(queue.double(), dim=1).T / 0.5
    positives = torch.stack([(anchor * view).sum(1) / 0.5 for view in others], 1)
    negative = (scores.exp().mean(1) - 0.2 * positives.exp().mean(1)) / 0.8
    negative = negative.clamp_min(math.exp(-2))
    expected = (1 + len(queue) * negative / positives[:, 0].exp()).log().mean()
    expected.backward()
    torch.testing.assert_close(value, expected)
    torch.testing.assert_close(grad, views[0].grad)


@pytest.mark.parametrize("value", [Linear(0, 0.1), "auto"])
def test_the_effective_prior_needs_numbers(value):
    with pytest.raises(ValueError, match="'tau_plus' parameter of PUCL"):
        _ = PUCL(tau_plus=value).effective_tau_plus


# PositiveDebiased


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
