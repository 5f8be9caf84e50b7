"""contrastive_loss: precision, views without gradient, refusals."""

import pytest
import torch
from torch.autograd import forward_ad

from skcontrast import contrastive_loss
from skcontrast.losses import BCL, InfoNCE, PositiveDebiased, Ring
from skcontrast.similarity import Cosine, VonMisesFisher
from tests.common import LOSSES, evaluate, random_views


def test_views_of_different_precision_are_promoted():
    views, queue = random_views(6, 4), random_views(9, 4)[0]
    exact = contrastive_loss(*views, queue=queue)
    mixed = contrastive_loss(views[0].float(), views[1], queue=queue.float())
    assert mixed.dtype == torch.float64
    torch.testing.assert_close(mixed, exact, rtol=1e-6, atol=0)


def test_views_without_gradient():
    views = random_views(6, 4)
    value = contrastive_loss(*views)
    assert not value.requires_grad
    leaf = views[0].clone().requires_grad_()
    one_sided = contrastive_loss(leaf, views[1])
    torch.testing.assert_close(one_sided.detach(), value)
    one_sided.backward()
    assert leaf.grad.isfinite().all()


def test_half_precision_views_are_scored_in_float32():
    views = random_views(16, 8)
    value = contrastive_loss(*(v.to(torch.bfloat16) for v in views))
    assert value.dtype == torch.float32
    assert value.item() == pytest.approx(contrastive_loss(*views).item(), rel=2e-2)


Z = torch.ones(3, 2)


@pytest.mark.parametrize(
    "views, queue, message",
    [
        ([Z], None, "At least 2 views are needed, got 1"),
        ([Z, torch.ones(4, 2)], None, "view 2 has 4 rows, view 1 has 3"),
        ([Z, torch.ones(3, 5)], None, r"view 2 must have shape \(n, 2\)"),
        ([torch.ones(3), torch.ones(3)], None, "view 1 must have shape"),
        ([Z, [[1.0]]], None, "view 2 must be a dense .*tensor.*list"),
        ([Z.int()] * 2, None, "view 1 must be a dense floating.*int32"),
        ([torch.eye(3).to_sparse()] * 2, None, "view 1 must be a dense.*sparse_coo"),
        ([torch.ones(1, 2)] * 2, None, "at least 2 samples"),
        ([Z, Z], torch.ones(5, 3), r"queue must have shape \(n, 2\)"),
        ([Z, Z], torch.ones(0, 2), "at least one row"),
        ([torch.ones(3, 0)] * 2, None, "view 1, view 2 must have at least one column"),
    ],
)
def test_bad_views_are_refused_by_name(views, queue, message):
    error = TypeError if "dense" in message else ValueError
    with pytest.raises(error, match=message):
        contrastive_loss(*views, queue=queue)


@pytest.mark.parametrize("y", [torch.zeros(4, dtype=torch.int64), torch.zeros(4)], ids=str)
def test_y_that_a_loss_ignores_is_reported(y):
    views = random_views(4, 3)
    with pytest.warns(UserWarning, match="InfoNCE ignores y: pass a loss that reads classes"):
        value = contrastive_loss(*views, y=y)
    assert value == contrastive_loss(*views)


def test_labels_and_weights_that_do_not_belong_to_the_views_are_refused_by_name():
    views, labels = random_views(4, 3), torch.zeros(4, dtype=torch.int64)
    with pytest.raises(ValueError, match="queue_y describes the samples of a queue: pass queue"):
        contrastive_loss(*views, queue_y=labels)


def in_forward_mode(loss, z):
    with forward_ad.dual_level():
        return loss(forward_ad.make_dual(z, torch.ones_like(z)))


TRANSFORMS = {
    "grad": lambda loss, z: torch.func.grad(loss)(z),
    "vmap": lambda loss, z: torch.func.vmap(loss)(torch.stack([z, z])),
    "jacrev": lambda loss, z: torch.func.jacrev(loss)(z),
    "jvp": lambda loss, z: torch.func.jvp(loss, (z,), (z,)),
    "forward mode": in_forward_mode,
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("loss", [InfoNCE(), PositiveDebiased()], ids=repr)
def test_transforms_of_functions_are_refused_by_torch(loss, transform):
    first, second = random_views(4, 3)
    with pytest.raises(RuntimeError, match=r"setup_context|jvp"):
        transform(lambda z: contrastive_loss(z, second, loss=loss), first)


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_views_that_are_not_finite_or_too_long_for_a_length_have_no_finite_loss(loss):
    for bad in [torch.nan, torch.inf, 1e30]:
        views = random_views(6, 4, dtype=torch.float32)
        views[1][2] = bad
        assert evaluate(*views, loss=loss).isnan()
        assert evaluate(
            *random_views(6, 4, dtype=torch.float32), loss=loss, queue=views[1]
        ).isnan()


@pytest.mark.parametrize("similarity", [Cosine(), VonMisesFisher()], ids=repr)
def test_a_direction_that_is_too_long_is_not_taken_for_zero(similarity):
    z = random_views(6, 4, dtype=torch.float32)[0]
    assert contrastive_loss(1e25 * z, z, similarity=similarity).isnan()
    assert contrastive_loss(1e15 * z, z, similarity=similarity).isfinite()


@pytest.mark.parametrize("loss", [InfoNCE(), Ring(), BCL()], ids=repr)
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf")
def test_a_compiled_training_step_has_the_same_loss_and_gradient(loss):
    weight = torch.eye(4).requires_grad_()
    views = random_views(6, 4, dtype=torch.float32)

    def step(*views):
        return 2 * contrastive_loss(*(v @ weight for v in views), loss=loss)

    expected = torch.autograd.grad(step(*views), weight)[0]
    found = torch.autograd.grad(torch.compile(step, backend="eager")(*views), weight)[0]
    torch.testing.assert_close(found, expected)
