"""What holds for every loss: the written-out formula, identities, limits, gradients, refusals."""

from itertools import product

import pytest
import torch

from skcontrast import contrastive_loss, losses
from skcontrast.schedules import Auto, Linear
from skcontrast.similarity import Cosine
from tests.common import BY_DIRECTIONS, LOSSES, evaluate, random_views, some_labels
from tests.losses.common import NEGATIVES, assert_same, value_and_grads
from tests.naive_losses import naive_loss


def test_every_exported_loss_is_tested():
    classes = [thing for thing in vars(losses).values() if isinstance(thing, type)]
    exported = {thing for thing in classes if issubclass(thing, losses.Loss)} - {losses.Loss}
    assert {type(loss) for loss in LOSSES} == exported


class ScaledToMeanOne(losses.NonparametricBCL):
    """Weights that are divided by their mean."""

    sum_of_weights = "N"


IDENTITIES = {
    "DCL(tau_plus=0) = InfoNCE": (losses.DCL(tau_plus=0), losses.InfoNCE()),
    "HCL(beta=0) = DCL": (losses.HCL(tau_plus=0.15, beta=0), losses.DCL(tau_plus=0.15)),
    "HCL(beta=0, tau_plus=0) = InfoNCE": (losses.HCL(tau_plus=0, beta=0), losses.InfoNCE()),
    "HCL(tau_plus=0, beta) = BCL(alpha=.5, beta, detach_weights=False)": (
        losses.HCL(tau_plus=0, beta=0.8),
        losses.BCL(alpha=0.5, beta=0.8, detach_weights=False),
    ),
    "PUCL = DCL(effective_tau_plus)": (
        losses.PUCL(tau_plus=0.3, c=0.4),
        losses.DCL(tau_plus=losses.PUCL(tau_plus=0.3, c=0.4).effective_tau_plus),
    ),
    "PUCL(c=1) = InfoNCE": (losses.PUCL(tau_plus=0.3, c=1), losses.InfoNCE()),
    "PUCL(c=0) = DCL": (losses.PUCL(tau_plus=0.3, c=0), losses.DCL(tau_plus=0.3)),
    "BCL(alpha=.5, beta=0) = InfoNCE": (losses.BCL(alpha=0.5, beta=0), losses.InfoNCE()),
    "NonparametricBCL(alpha=.5, beta=.5) = InfoNCE": (
        losses.NonparametricBCL(alpha=0.5, beta=0.5),
        losses.InfoNCE(),
    ),
    "BCL(alpha, beta=0) = NonparametricBCL(alpha, beta=.5)": (
        losses.BCL(alpha=0.8, beta=0, tau_plus=0.2),
        ScaledToMeanOne(alpha=0.8, beta=0.5, tau_plus=0.2),
    ),
    "SoftRing(sharpness=0) = InfoNCE": (losses.SoftRing(sharpness=0.0), losses.InfoNCE()),
    "SoftRing(tau_plus=0) = InfoNCE": (
        losses.SoftRing(sharpness=3.0, tau_plus=0.0),
        losses.InfoNCE(),
    ),
    "SoftRing(floor=1) = InfoNCE": (losses.SoftRing(sharpness=3.0, floor=1.0), losses.InfoNCE()),
    "Ring(outer=1, inner=0) = InfoNCE": (losses.Ring(outer=1, inner=0), losses.InfoNCE()),
    "PositiveDebiased(negatives=InfoNCE) = PositiveDebiased": (
        losses.PositiveDebiased(tau_plus=0.2, negatives=losses.InfoNCE()),
        losses.PositiveDebiased(tau_plus=0.2),
    ),
    "PositiveDebiased(negatives=DCL(tau_plus=0)) = PositiveDebiased": (
        losses.PositiveDebiased(tau_plus=0.2, negatives=losses.DCL(tau_plus=0)),
        losses.PositiveDebiased(tau_plus=0.2),
    ),
}


@pytest.mark.parametrize("first, second", IDENTITIES.values(), ids=IDENTITIES)
def test_identity(first, second):
    for n_views in [2, 3]:
        views = random_views(13, 7, n_views)
        assert_same(value_and_grads(views, loss=first), value_and_grads(views, loss=second))


def test_equals_the_formula_written_out(loss):
    for n_views, temperature in product([2, 3], [0.2, 1.0]):
        views = [v.requires_grad_() for v in random_views(11, 6, n_views, seed=3)]
        similarity = Cosine(temperature)
        expected = naive_loss(views, loss=loss, similarity=similarity, y=some_labels(11))
        actual = evaluate(*views, loss=loss, similarity=similarity)
        gradients = [torch.autograd.grad(value, views) for value in (actual, expected)]
        assert_same((actual, gradients[0]), (expected, gradients[1]), rtol=1e-9)


# With detached weights the gradient is not the derivative of the value.
@pytest.mark.parametrize(
    "loss", [s for s in LOSSES if not (s.hardness() and s.detach_weights)], ids=repr
)
@BY_DIRECTIONS
def test_gradcheck(fast_mode, loss):
    views = [v.requires_grad_() for v in random_views(5, 4, seed=1)]
    assert torch.autograd.gradcheck(lambda *z: evaluate(*z, loss=loss), views, fast_mode=fast_mode)


def test_invariant_to_the_order_of_the_samples(loss):
    views = random_views(12, 6)
    order = torch.randperm(12, generator=torch.Generator().manual_seed(0))
    y = some_labels(12)
    value, grads = value_and_grads(views, loss=loss, y=y)
    permuted, permuted_grads = value_and_grads([v[order] for v in views], loss=loss, y=y[order])
    assert_same(permuted, value)
    assert_same(permuted_grads, tuple(g[order] for g in grads))


def test_invariant_to_the_order_of_the_queue(loss):
    views, (queue, _) = random_views(6, 5), random_views(40, 5, seed=9)
    queue_y = some_labels(40)
    assert_same(
        value_and_grads(views, loss=loss, queue=queue.flip(0), queue_y=queue_y.flip(0)),
        value_and_grads(views, loss=loss, queue=queue, queue_y=queue_y),
    )


def test_invariant_to_the_length_of_the_embeddings_and_to_rotation(loss):
    views = random_views(8, 5)
    rotation, _ = torch.linalg.qr(random_views(5, 5)[0])
    changed = [7.0 * v @ rotation for v in views]
    assert_same(evaluate(*changed, loss=loss), evaluate(*views, loss=loss))


EXTREMES = {
    "aligned, the negatives orthogonal": [torch.eye(4), torch.eye(4)],
    "opposed": [torch.eye(4), -torch.eye(4)],
    "all ties at the highest score": [torch.ones(4, 4), torch.ones(4, 4)],
    "no direction at all": [torch.zeros(4, 4), torch.eye(4)],
    "two samples": [torch.eye(4)[:2], torch.eye(4)[:2]],
}


def test_finite_at_the_extremes_in_float32(loss):
    for (name, views), temperature in product(EXTREMES.items(), [1 / 80, 0.01, 1.0]):
        similarity = Cosine(temperature)
        value, grads = value_and_grads(views, torch.float32, loss=loss, similarity=similarity)
        finite = [x.isfinite().all() for x in (value, *grads)]
        assert all(finite), (name, temperature)


def test_single_negative(loss):
    n_negatives = 2 if "Ring" in repr(loss) else 1  # an empty ring is refused
    views, (queue, _) = random_views(5, 4), random_views(n_negatives, 4, seed=2)
    value, grads = value_and_grads(views, loss=loss, queue=queue)
    assert value.isfinite() and all(g.isfinite().all() for g in grads)


def test_weights_of_a_different_dtype_are_taken():
    views = random_views(6, 4, dtype=torch.float32)
    weight = torch.arange(6)
    value = contrastive_loss(*views, sample_weight=weight)
    assert value.dtype == torch.float32
    assert_same(value, contrastive_loss(*views, sample_weight=weight.double()))


def test_weights_multiply_the_losses_of_the_samples(loss):
    views = random_views(6, 4)
    queue, queue_y = random_views(20, 4, seed=3)[0], some_labels(20)
    known, labels = {"loss": loss, "queue": queue}, some_labels(6)
    each = [evaluate(*(v[[i]] for v in views), **known, y=labels[[i]]) for i in range(6)]
    weight = torch.linspace(0, 2, 6, dtype=torch.float64)
    together = evaluate(*views, loss=loss, queue=queue, queue_y=queue_y, sample_weight=weight)
    assert_same(together, torch.stack(each) @ weight / 6, rtol=1e-10)


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({}, "Supervised needs labels: pass y"),
        ({"y": torch.arange(3)}, "y must have 4 entries, got 3"),
        ({"y": [0, 1, 0, 1]}, "y must be a tensor of integers"),
        ({"y": torch.rand(4)}, "y must be a tensor of integers"),
        ({"y": torch.arange(4), "queue": torch.ones(2, 3)}, "pass queue_y"),
    ],
)
def test_bad_labels_are_refused(kwargs, message):
    with pytest.raises((TypeError, ValueError), match=message):
        contrastive_loss(*random_views(4, 3), loss=losses.Supervised(), **kwargs)


@pytest.mark.parametrize(
    "weight, message",
    [
        (torch.ones(3), r"must be a tensor of shape \(4,\)"),
        (torch.ones(4, 1), r"must be a tensor of shape \(4,\), got \(4, 1\)"),
        (-torch.ones(4), "must hold no negative numbers"),
        (torch.ones(4, requires_grad=True), r".*pass sample_weight\.detach\(\)"),
    ],
)
def test_bad_weights_are_refused(weight, message):
    with pytest.raises(ValueError, match=f"sample_weight {message}"):
        contrastive_loss(*random_views(4, 3), sample_weight=weight)


# Ranges of numbers: test_parameters.py.
BAD = [
    (losses.DCL(tau_plus="0.1"), "'tau_plus' parameter of DCL", r"\[0.0, 1.0\)"),
    (losses.BCL(form="exact"), "'form' parameter of BCL", "printed"),
    (
        losses.PositiveDebiased(negatives=losses.DCL(tau_plus=7)),
        "'tau_plus' parameter of DCL",
        r"\[0.0, 1.0\)",
    ),
    (losses.PositiveDebiased(negatives=losses.SupCon()), NEGATIVES, "got SupCon"),
    (losses.PositiveDebiased(negatives=losses.PositiveDebiased()), NEGATIVES, "got Positive"),
]


@pytest.mark.parametrize("bad, who, expected", BAD, ids=[repr(b[0]) for b in BAD])
def test_value_out_of_range_is_refused_by_name(bad, who, expected):
    with pytest.raises(ValueError, match=rf"The {who} must be .*{expected}"):
        contrastive_loss(*random_views(4, 3), loss=bad)


AUTO = r"is estimated from the data in fit only.*skcontrast\.estimation"


@pytest.mark.parametrize(
    "loss, message",
    [
        (losses.DCL, r"must be an instance of 'Loss'.*'DCL'.*loss=DCL\(\)"),
        (losses.DCL(tau_plus=Linear(0, 0.1)), "'tau_plus' parameter of DCL is a schedule"),
        (losses.DCL(tau_plus="auto"), AUTO),
        (losses.BCL(alpha=Auto(every=3)), AUTO),
        (losses.PositiveDebiased(negatives=losses.DCL(tau_plus="auto")), AUTO),
    ],
    ids=repr,
)
def test_a_class_a_schedule_and_auto_are_refused_outside_of_fit(loss, message):
    with pytest.raises((TypeError, ValueError), match=message):
        contrastive_loss(*random_views(4, 3), loss=loss)
