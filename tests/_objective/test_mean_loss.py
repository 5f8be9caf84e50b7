"""The walk over tiles of anchors: the same values and gradients as in one piece."""

from contextlib import nullcontext

import pytest
import torch

from skcontrast import contrastive_loss, losses
from skcontrast._objective import _mean_loss  # private: the size of the tiles

# private: the value of a contrast that no public call forms
from skcontrast._objective._mean_loss import objective_value
from skcontrast.frameworks import Contrast, in_batch
from skcontrast.similarity import Cosine, VonMisesFisher
from tests._objective.common import NotBilinear
from tests.common import LOSSES as EVERY_LOSS
from tests.common import evaluate, random_views

LOSSES = [
    losses.InfoNCE(),
    losses.DCL(),
    losses.HCL(),
    losses.HCL(detach_weights=True),
    losses.BCL(),
    losses.SoftSupCon(),
    losses.SupCon(),
    losses.SINCERE(),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_tiled_equals_untiled(monkeypatch, loss):
    for n, n_views, rows in [(7, 2, 3), (10, 3, 1), (16, 2, 32), (9, 2, 6)]:
        for similarity in [Cosine(0.3), NotBilinear()]:
            views = [v.requires_grad_() for v in random_views(n, 5, n_views)]
            whole = evaluate(*views, loss=loss, similarity=similarity)
            whole_grads = torch.autograd.grad(whole, views)
            with monkeypatch.context() as patch:
                patch.setattr(_mean_loss, "_TILE_ELEMENTS", 1)
                patch.setattr(_mean_loss, "_MIN_ROWS", rows)
                tiled = evaluate(*views, loss=loss, similarity=similarity)
                tiled_grads = torch.autograd.grad(tiled, views)
            torch.testing.assert_close(
                (tiled, tiled_grads), (whole, whole_grads), rtol=1e-11, atol=1e-13
            )


@pytest.mark.parametrize("name", ["contrastive", "jensen-shannon"])
def test_gradcheck_of_both_objectives_with_a_custom_similarity(name):
    views = torch.stack(random_views(4, 3)).requires_grad_()

    def value(views):
        contrast = in_batch(views)
        return objective_value(contrast, losses.HCL(beta=0.5), NotBilinear(), objective=name)

    assert torch.autograd.gradcheck(value, views)


def test_gradcheck_where_the_highest_score_depends_on_the_anchor():
    views = torch.stack(random_views(4, 3)).requires_grad_()
    loss = losses.PositiveDebiased(tau_plus=0.3)
    assert torch.autograd.gradcheck(
        lambda views: contrastive_loss(*views, loss=loss, similarity=VonMisesFisher()), views
    )


def test_gradient_scales_with_the_gradient_that_comes_back():
    views = [v.requires_grad_() for v in random_views(6, 4)]
    value = contrastive_loss(*views)
    once = torch.autograd.grad(value, views, retain_graph=True)
    thrice = torch.autograd.grad(3 * value, views, retain_graph=True)
    torch.testing.assert_close(thrice, tuple(3 * g for g in once))
    again = torch.autograd.grad(value, views)
    torch.testing.assert_close(again, once)


def test_a_second_derivative_is_refused():
    views = [v.requires_grad_() for v in random_views(6, 4)]
    with pytest.raises(RuntimeError, match="differentiated once"):
        torch.autograd.grad(contrastive_loss(*views), views, create_graph=True)


@pytest.mark.parametrize("which", ["anchors", "candidates"])
def test_one_of_two_tensors_in_one_place_may_be_without_gradient(which):
    views = torch.stack(random_views(6, 4)).flatten(0, 1)
    gradients = []
    for copied in (False, True):
        leaf = views.clone().requires_grad_()
        other = leaf.detach().clone() if copied else leaf.detach()
        pair = (leaf, other) if which == "anchors" else (other, leaf)
        excluded = torch.arange(12)[:, None]
        positives = torch.zeros(12, 1, dtype=torch.float64)
        contrast = Contrast(
            anchors=pair[0], candidates=pair[1], positives=positives, excluded=excluded
        )
        gradients += torch.autograd.grad(objective_value(contrast, losses.DCL(), Cosine()), leaf)
    torch.testing.assert_close(*gradients)


@pytest.mark.parametrize("similarity", [Cosine(), NotBilinear()], ids=lambda s: type(s).__name__)
def test_the_gradient_of_one_tensor_is_the_same_whichever_others_have_one(similarity):
    given = [*random_views(9, 4), torch.linspace(-1, 1, 9).double()[:, None]]

    def gradients(*which):
        leaves = [tensor.clone().requires_grad_(k in which) for k, tensor in enumerate(given)]
        names = ("anchors", "candidates", "positives")
        excluded = torch.arange(9)[:, None]
        contrast = Contrast(**dict(zip(names, leaves, strict=True)), excluded=excluded)
        return torch.autograd.grad(
            objective_value(contrast, losses.InfoNCE(), similarity), [leaves[k] for k in which]
        )

    together = gradients(0, 1, 2)
    assert all(gradient.abs().max() > 1e-3 for gradient in together)
    for k in range(3):
        torch.testing.assert_close(gradients(k)[0], together[k], rtol=1e-12, atol=1e-12)


def test_a_contrast_without_labels_is_refused_where_the_loss_reads_them():
    z = Cosine().embed(torch.stack(random_views(4, 3)))
    with pytest.raises(ValueError, match="The contrast has no labels"):
        objective_value(in_batch(z), losses.Supervised(), Cosine())


def test_scores_of_a_wrong_shape_are_refused_by_the_name_of_the_method():
    members = {"scores": lambda self, u, v: (u @ v.T).sum(1), "pairs": lambda self, u, v: u[:, 0]}
    wrong = type("Wrong", (Cosine,), members)()
    with pytest.raises(ValueError, match=r"Wrong\.scores must return .* \(12, 12\), got"):
        contrastive_loss(*random_views(6, 4), similarity=wrong)


@pytest.mark.parametrize("loss", EVERY_LOSS, ids=repr)
def test_no_step_waits_for_a_gpu(monkeypatch, loss):
    """Tensors without data, in which a step cannot look anything up."""
    monkeypatch.setattr(torch, "autocast", lambda *args, **kwargs: nullcontext())
    classes = torch.empty(300, dtype=torch.int64, device="meta")
    for similarity, same_group in [(Cosine(), "neutral"), (VonMisesFisher(), "positive")]:
        views = torch.empty(2, 300, 5, device="meta", requires_grad=True)
        weights = torch.empty(2, 300, device="meta")
        contrast = in_batch(similarity.embed(views), classes, weights, classes)
        value = objective_value(contrast, loss, similarity, same_group=same_group)
        assert torch.autograd.grad(value, views)[0].shape == views.shape
